"""CalledWrongly and CommandGroup: a command line that no command takes is told of in one line."""

from __future__ import annotations

from collections.abc import Iterable
from typing import IO, Any

import click

from stormline.topology.errors import did_you_mean


class CalledWrongly(click.UsageError):
    """Ends the command with exit code 2 and one line, where click would print the usage and a hint beside it."""

    @classmethod
    def of(cls, error: click.UsageError) -> CalledWrongly:
        """Return the error with the nearest option, and where all are told of."""
        if isinstance(error, cls):
            return error
        context = error.ctx
        if isinstance(error, click.NoSuchOption):
            problem = no_option(error.option_name, () if context is None else options_of(context.command))
        else:
            problem = " ".join(error.format_message().split()).removesuffix(".")
        where = "" if context is None else f" (all of them: {context.command_path} --help)"
        return cls(problem + where, context)

    def show(self, file: IO[Any] | None = None) -> None:
        """Print the line to stderr."""
        click.echo(f"error: {self.message}", file=file, err=file is None)


class CommandGroup(click.Group):
    """Names the nearest command where there is none of the name given."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that the arguments name."""
        if args and not args[0].startswith("-") and args[0] not in self.commands:
            ctx.fail(f"there is no command {args[0]!r}{did_you_mean(args[0], self.commands)}")
        return super().resolve_command(ctx, args)


def no_option(option: str, known: Iterable[str]) -> str:
    """Say that there is no such option, and which may be meant."""
    return f"there is no option {option!r}{did_you_mean(option, known)}"


def options_of(command: click.Command) -> list[str]:
    """Return the names of a command's options."""
    return [
        name
        for parameter in command.params
        if isinstance(parameter, click.Option)
        for name in (*parameter.opts, *parameter.secondary_opts)
    ]
