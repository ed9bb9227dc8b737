"""`stormline run`: runs a topology on Spark."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import click

from stormline.cli.conf import conf_option
from stormline.cli.findings import print_findings
from stormline.cli.options import state_dir_option
from stormline.cli.target import TARGET_HELP, load_target
from stormline.topology.compiler import compile_topology
from stormline.topology.config import check_config


def _no_nan(context: click.Context, parameter: click.Parameter, value: float | None) -> float | None:
    if value is not None and math.isnan(value):
        raise click.BadParameter("nan is no time")
    return value


@click.command("run", epilog=TARGET_HELP)
@click.argument("target", metavar="MODULE[:ATTR]")
@state_dir_option
@click.option("--fresh", is_flag=True, help="Begin at transaction 1, in a temporary directory removed at the end.")
@click.option(
    "--master", metavar="URL", help="Spark's master. Default: the configuration's spark.master, else local[*]."
)
@conf_option
@click.option("--keep-running", is_flag=True, help="When the spout is drained, wait for more.")
@click.option(
    "--until",
    type=click.IntRange(min=1),
    metavar="TXID",
    help="End once this transaction is committed; some later ones may be, too.",
)
@click.option(
    "--timeout",
    "timeout_secs",
    type=click.FloatRange(min=0, min_open=True),
    callback=_no_nan,
    metavar="SECS",
    help="Stop after this time: with exit code 1 if the run is not done by then; with 0 if it is to keep running.",
)
@click.option("--allow-changed-topology", is_flag=True, help="Go on with the state of a graph that was different.")
@click.option(
    "--progress",
    type=click.Choice(["auto", "live", "json", "none"]),
    default="auto",
    show_default=True,
    help="live: a line that is redrawn on a terminal, else one a second at most; auto: the same, but one every five "
    "seconds. json: an object a wave, and one at the end, on standard output.",
)
@click.option("--verbose", is_flag=True, help="Show what Spark prints, and Stormline's own log.")
@click.pass_context
def run_command(
    context: click.Context,
    /,
    target: str,
    state_dir: Path | None,
    fresh: bool,
    conf: dict[str, Any],
    progress: str,
    **options: Any,
) -> None:
    """Run a topology until its spout is drained.

    Run again, it goes on where it stopped: the state is kept in ZooKeeper, your own or an embedded one. Of the
    module it takes `config` too (a mapping, or a function that returns one), and `report` (a function whose text
    is printed after a run that ended well).

    SIGINT and SIGTERM stop it after the commit that runs, with exit code 130 or 143; a second one stops at once.

    Example: stormline run examples.words --conf topology.max.spout.pending=64
    """
    # Only a run needs kazoo, and later Spark.
    from stormline.cli.run_session import RunOptions
    from stormline.cli.running import check_embedded, run_target
    from stormline.runtime.cluster.local_cluster import zookeeper_hosts
    from stormline.runtime.cluster.state_dir import default_state_dir

    if fresh and state_dir is not None:
        raise click.UsageError("--fresh and --state-dir exclude each other")
    loaded = load_target(target)
    config = {**loaded.config, **conf}
    check_config(config, "the configuration")
    plan = compile_topology(loaded.topology, config)
    theirs = config.pop("spark.master", "local[*]")
    master = options.pop("master") or theirs
    if fresh or state_dir is not None:
        check_embedded("--fresh" if fresh else "--state-dir", config)
    elif zookeeper_hosts(config) is None:
        state_dir = default_state_dir(loaded.topology.id)
    print_findings(plan, target, loaded.module.__name__)
    context.exit(run_target(loaded, config, RunOptions(state_dir, master, **options), progress))
