"""The command `stormline`: a group that registers one command a module."""

from __future__ import annotations

from typing import Any

import click

from stormline.cli.audit import audit_command
from stormline.cli.check import check_command
from stormline.cli.compile import compile_command
from stormline.cli.errors import Ended
from stormline.cli.explain import explain_command
from stormline.cli.lag import lag_command
from stormline.cli.run import run_command
from stormline.cli.state import state_group
from stormline.cli.submit import submit_command
from stormline.cli.transactions import transactions_group
from stormline.cli.usage import CalledWrongly, CommandGroup
from stormline.cli.visualize import visualize_command
from stormline.topology.errors import StormlineError
from stormline.version import __version__

EXIT_CODE_INTERRUPTED = 130
"""As a shell reports it; a run that has begun has its own handlers."""

_HELP_NAMES = ["-h", "--help"]


class _StormlineGroup(CommandGroup):
    """Turns each StormlineError into its message and exit code 1, and each wrong call into one line and exit code 2."""

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        try:
            return super().make_context(*args, **kwargs)
        except click.UsageError as error:
            raise CalledWrongly.of(error) from None

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except StormlineError as error:
            raise Ended(error) from None
        except click.UsageError as error:
            raise CalledWrongly.of(error) from None
        except KeyboardInterrupt:
            ctx.exit(EXIT_CODE_INTERRUPTED)


@click.group(
    cls=_StormlineGroup,
    no_args_is_help=False,
    context_settings={"help_option_names": _HELP_NAMES, "max_content_width": 100},
    epilog="Example: stormline run examples.global_count",
)
@click.version_option(__version__, prog_name="stormline")
def main() -> None:
    """Storm-style transactional topologies on Spark."""


for _command in (
    run_command,
    check_command,
    explain_command,
    visualize_command,
    compile_command,
    submit_command,
    audit_command,
    lag_command,
    state_group,
    transactions_group,
):
    for _part in (_command, *(_command.commands.values() if isinstance(_command, click.Group) else ())):
        _part.context_settings.setdefault("help_option_names", _HELP_NAMES)  # without the group too: click caches them
    main.add_command(_command)

if __name__ == "__main__":
    main()
