"""Errors of the command line; each message names what was got, what was expected, and the remedy."""

from __future__ import annotations

import click

from stormline.topology.errors import StormlineError
from stormline.topology.texts import printable


class ModuleMissing(StormlineError, ModuleNotFoundError):
    """There is no module of this name."""


class AttributeMissing(StormlineError, AttributeError):
    """The module has no attribute of this name."""


class WrongTarget(StormlineError, TypeError):
    """Something in the module is not of the kind that the command needs."""


class TargetRaised(StormlineError):
    """The user's module raised; the message begins with the user's traceback."""


class NoKafka(StormlineError, TypeError):
    """A topology that reads no Kafka was asked how far it lags behind it."""


class NoSinks(StormlineError, TypeError):
    """A topology that writes into no two-phase sink was asked what it has pre-committed."""


class SinkAway(StormlineError, ConnectionError):
    """The sinks of a topology cannot be asked now."""

    __str__ = Exception.__str__


class NoSuchTransaction(StormlineError, LookupError):
    """A label that no two-phase transaction of a topology has."""


class NotDone(StormlineError, TimeoutError):
    """A run was stopped by `--timeout` before it had done what it was to do."""


class StateDirUnusable(StormlineError, OSError):
    """The embedded ZooKeeper could not write into the state directory."""

    __str__ = Exception.__str__


class CannotBundle(StormlineError, ValueError):
    """Something that a zip on Python's path cannot hold, or two files that claim one name in it."""


class CannotWriteBundle(StormlineError, OSError):
    """The files of a bundle could not be written."""

    __str__ = Exception.__str__


class UnsafeConf(StormlineError, ValueError):
    """A setting that must not stand on a command line."""


class SparkSubmitMissing(StormlineError, FileNotFoundError):
    """There is no spark-submit where one is expected."""

    __str__ = Exception.__str__


class Ended(click.ClickException):
    """Ends the command with exit code 1 and the error's own message, without a traceback of ours."""

    exit_code = 1

    def __init__(self, error: StormlineError) -> None:
        super().__init__(str(error))

    def show(self, file: object = None) -> None:
        """Print the message to stderr; a user's traceback stays the first thing printed."""
        click.echo(error_text(self.message), err=True)


def error_text(message: str) -> str:
    """Return what stderr shows of an error: `error: …`, but a user's traceback as it is."""
    message = printable(message)
    return message if message.startswith("Traceback ") else f"error: {message}"
