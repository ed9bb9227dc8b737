"""Every error that Stormline raises; each message names who, what was got, what was expected, the remedy."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class StormlineError(Exception):
    """Base of all errors that Stormline itself raises."""


class FailedException(Exception):
    """Raised by user code to fail the current attempt: the batch is replayed, and the later ones with it."""


class ReportedFailedException(FailedException):
    """A `FailedException` that is also written to the log."""


def shown(value: object, chars_max: int = 80) -> str:
    """Return the repr of a value, cut: those of stored values run code of the user's, which may raise."""
    try:
        return f"{value!r:.{chars_max}}"
    except Exception as error:
        return f"whose repr raises {type(error).__name__}"


def did_you_mean(got: object, known: Iterable[str]) -> str:
    """Return "; did you mean 'x'?" for the nearest known name, or an empty text."""
    near = difflib.get_close_matches(str(got), list(known), n=1, cutoff=0.6)
    return f"; did you mean {near[0]!r}?" if near else ""


# ---------------------------------------------------------------------------------------- declaring


class DeclarationError(StormlineError, ValueError):
    """A topology was declared wrongly; nothing has run."""


class InvalidId(DeclarationError):
    """A component, stream or topology id that cannot be used."""


class DuplicateComponent(DeclarationError):
    """Two components share an id."""


class InvalidComponent(DeclarationError, TypeError):
    """An object that is not the kind of bolt or spout the call takes."""


class InvalidGathers(DeclarationError, TypeError):
    """A `gathers` that does not name attributes, or stands where nothing is gathered."""


class InvalidEffects(DeclarationError, TypeError):
    """An `effects_in` that is no store."""


class InvalidSpout(DeclarationError, TypeError):
    """A spout whose coordinator or emitter lacks what is called, or whose settings contradict one another."""


class InvalidParallelism(DeclarationError):
    """A parallelism or number of tasks that is not a whole number of at least 1."""


class InvalidStream(DeclarationError):
    """A stream declared twice, or with unusable fields."""


class NoRemoteDRPC(DeclarationError, NotImplementedError):
    """A DRPC topology for servers, which there are none of."""


class DuplicateGrouping(DeclarationError):
    """Two groupings on one (component, stream) of one bolt."""


class UnknownComponent(DeclarationError, KeyError):
    """A grouping, or a question to the context, names a component that does not exist."""

    __str__ = Exception.__str__


class UnknownStream(DeclarationError, KeyError):
    """A stream that its component does not declare."""

    __str__ = Exception.__str__


class UnknownField(DeclarationError, KeyError):
    """A field that the stream does not have."""

    __str__ = Exception.__str__

    @classmethod
    def among(cls, field: object, fields: Iterable[str], where: str) -> UnknownField:
        """Return the error for a field that is not there.

        Args:
            field (object): the name that was asked for.
            fields (Iterable[str]): the names that there are.
            where (str): what has these fields, for the message.
        """
        names = list(fields)
        return cls(f"{where} has no field {field!r}; its fields are {names}{did_you_mean(field, names)}")


class UnknownPosition(StormlineError, IndexError):
    """A tuple has no value at this position."""


class InvalidGrouping(DeclarationError):
    """A grouping that does not fit its stream."""


class CyclicTopology(DeclarationError):
    """The graph of bolts has a cycle."""


class UnreachableBolt(DeclarationError):
    """A bolt that no tuple of the spout can reach."""


class NotShippable(DeclarationError, TypeError):
    """A component that cannot be pickled, so it cannot be sent to the executors."""


class InvalidConfig(DeclarationError):
    """A configuration value of the wrong type or out of range."""


class UnknownConfigKey(DeclarationError, KeyError):
    """A key under `topology.` or `transactional.` that nobody reads."""

    __str__ = Exception.__str__


class SecretMissing(StormlineError, LookupError):
    """There is no secret where a setting refers to one."""

    __str__ = Exception.__str__


class InvalidRegistration(DeclarationError):
    """A class that cannot be registered for serialization as asked."""


# ---------------------------------------------------------------------------------------- emitting


class EmitError(StormlineError, ValueError):
    """A bolt or an emitter emitted something its declaration does not allow."""


class WrongArity(EmitError):
    """As many values as declared fields are needed."""


class UndeclaredStream(EmitError):
    """The component does not declare this stream."""


class DirectStreamMismatch(EmitError):
    """`emit` on a direct stream, or `emit_direct` on a regular one, or to a task that does not listen."""


class WrongAttempt(EmitError):
    """The first value emitted is not the attempt of the batch at hand."""


class StaleEmit(EmitError):
    """Emitted by an attempt that has already ended."""


class UnknownAttempt(StormlineError, LookupError):
    """The commit id of an attempt was asked for in a process that does not work on it."""


class InvalidChoice(EmitError):
    """A custom grouping chose a task that is none of the bolt's."""


class WrongColumns(WrongArity):
    """A record batch needs one column for each declared field after the first."""


class NotARecordBatch(EmitError, TypeError):
    """`emit_batch` got something that is no `pyarrow.RecordBatch`."""


class WrongValueType(StormlineError, TypeError):
    """A typed getter met a value of another type."""


# ---------------------------------------------------------------------------------------- bytes


class SerializationError(StormlineError):
    """A value cannot be written, or bytes cannot be read."""


class UnregisteredClass(SerializationError, TypeError):
    """A value of a class that was not registered."""


class HandleUnusable(SerializationError, TypeError):
    """What `pre_commit` of a two-phase sink returned cannot be stored."""


class ColumnCannotTravel(SerializationError, TypeError):
    """Values that no column of a record batch holds as they are, or a column whose values no tuple can hold."""


class NotGathered(SerializationError, TypeError):
    """A deferred bolt with `gathers` holds what does not travel: no plain data, or what `gathers` does not name."""


class CorruptData(SerializationError, ValueError):
    """Bytes that are not what Stormline writes."""


# ---------------------------------------------------------------------------------------- optional packages


class MissingExtra(StormlineError, ImportError):
    """An optional package is needed and not installed."""

    @classmethod
    def of(cls, extra: str, who: str, package: str = "pyarrow") -> MissingExtra:
        """Return the error for a package that is not there.

        Args:
            extra (str): the extra of Stormline's that installs it.
            who (str): what needs it, for the message.
            package (str): name of the package.
        """
        return cls(f"{who} needs the package {package}, which is not installed: pip install 'stormline[{extra}]'")
