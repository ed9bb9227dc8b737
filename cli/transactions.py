"""`stormline transactions`: what a topology has pre-committed in two-phase sinks, for operators."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from stormline.cli.conf import conf_option
from stormline.cli.errors import NoSinks, NoSuchTransaction, SinkAway
from stormline.cli.held_values import WHOLE, table_text
from stormline.cli.options import format_option, state_dir_option
from stormline.cli.stored_state import stored_state
from stormline.cli.target import TARGET_HELP, load_target, raised
from stormline.cli.usage import CommandGroup
from stormline.state.errors import StoreUnavailable
from stormline.topology.compiler import compile_topology
from stormline.topology.errors import FailedException, StormlineError, did_you_mean
from stormline.topology.two_phase_commit import CommitOutcome

if TYPE_CHECKING:
    from stormline.runtime.coordination.stored_transactions import StoredTransaction
    from stormline.runtime.tasks.driver_sinks import DriverSinks

_stopped = click.option(
    "--stopped", is_flag=True, help="Say that the topology does not run, and so is at work on nothing."
)


@click.group("transactions", cls=CommandGroup, no_args_is_help=False, epilog=TARGET_HELP)
def transactions_group() -> None:
    """Show, commit or abort what a topology has pre-committed in two-phase sinks.

    It asks the sinks and reads ZooKeeper, and owns nothing: the topology may run meanwhile. A topology that is started
    does all of it by itself; docs/two_phase_commit.md.

    Example: stormline transactions list examples.order_files
    """


@transactions_group.command("list", epilog=TARGET_HELP)
@click.argument("target", metavar="MODULE[:ATTR]")
@state_dir_option
@conf_option
@format_option
def transactions_list_command(target: str, state_dir: Path | None, conf: dict[str, Any], form: str) -> None:
    """List what is pre-committed: its label, what becomes of it, and for how long it has been so.

    Example: stormline transactions list examples.order_files
    """
    with _known(target, state_dir, conf) as (known, _):
        rows = [
            {
                "txid": each.txid,
                "bolt": each.handle.component,
                "label": each.handle.label,
                "standing": each.standing.value,
                "prepared": each.prepared,
                "age_secs": None if each.age_secs is None else round(each.age_secs, 1),
            }
            for each in known
        ]
    if form == "json":
        click.echo(json.dumps(rows, indent=2))
    elif rows:
        click.echo(table_text(list(rows[0]), [list(row.values()) for row in rows], WHOLE))
    else:
        click.echo("nothing is pre-committed")


@transactions_group.command("commit", epilog=TARGET_HELP)
@click.argument("target", metavar="MODULE[:ATTR]")
@click.argument("label")
@_stopped
@state_dir_option
@conf_option
@click.pass_context
def transactions_commit_command(
    context: click.Context, /, target: str, label: str, stopped: bool, state_dir: Path | None, conf: dict[str, Any]
) -> None:
    """Commit what is decided, as the topology does when it starts.

    The exit code is 1 where its sink has not.

    Example: stormline transactions commit examples.order_files LABEL --stopped
    """
    from stormline.runtime.coordination.stored_transactions import commit_by_hand

    with _known(target, state_dir, conf) as (known, sinks):
        outcome = commit_by_hand(_one(known, label), sinks, stopped)
    click.echo(f"{label}: {outcome.value}")
    context.exit(0 if outcome in (CommitOutcome.DONE, CommitOutcome.ALREADY) else 1)


@transactions_group.command("abort", epilog=TARGET_HELP)
@click.argument("target", metavar="MODULE[:ATTR]")
@click.argument("label")
@_stopped
@state_dir_option
@conf_option
def transactions_abort_command(
    target: str, label: str, stopped: bool, state_dir: Path | None, conf: dict[str, Any]
) -> None:
    """Abort what was left behind. What is on record is refused: its rows would be lost.

    Example: stormline transactions abort examples.order_files LABEL
    """
    from stormline.runtime.coordination.stored_transactions import abort_by_hand

    with _known(target, state_dir, conf) as (known, sinks):
        abort_by_hand(_one(known, label), sinks, stopped)
    click.echo(f"{label}: it is aborted")


@contextmanager
def _known(
    target: str, state_dir: Path | None, conf: dict[str, Any]
) -> Iterator[tuple[list[StoredTransaction], DriverSinks]]:
    """Give what is known of a topology's transactions, and its sinks."""
    from stormline.runtime.cluster.state_dir import default_state_dir
    from stormline.runtime.coordination.stored_transactions import stored_transactions
    from stormline.runtime.tasks.task_environment import TaskEnvironment

    loaded = load_target(target)
    topology, config = loaded.topology, {**loaded.config, **conf}
    env = TaskEnvironment(compile_topology(topology, config), epoch=0)
    if not env.sinks.components:
        raise NoSinks(
            f"no bolt of topology {topology.id!r} writes into a two-phase sink (TwoPhaseCommitBolt): it pre-commits "
            "nothing"
        )
    interrupted = False
    try:
        with stored_state(topology, config, state_dir or default_state_dir(topology.id)) as state:
            yield stored_transactions(state, env.sinks), env.sinks
    except StormlineError:
        raise
    except FailedException as error:  # nothing is tried again here
        why = error.why if isinstance(error, StoreUnavailable) else str(error)
        raise SinkAway(
            f"a two-phase sink of topology {topology.id!r} cannot be asked now: {why}; whether it has done what it was "
            "asked for is not known: see that its server answers, and ask again"
        ) from error
    except Exception as error:
        raise raised(error, f"a two-phase sink of topology {topology.id!r} failed") from error
    except KeyboardInterrupt:
        interrupted = True
        raise
    finally:
        if not interrupted:  # a sink that hangs, and is called in one thread, could not be closed
            env.close()


def _one(known: list[StoredTransaction], label: str) -> StoredTransaction:
    labels = {each.handle.label: each for each in known}
    if label not in labels:
        raise NoSuchTransaction(
            f"no transaction {label!r} is on record or listed by a sink{did_you_mean(label, labels)}; "
            "`stormline transactions list` names them"
        )
    return labels[label]
