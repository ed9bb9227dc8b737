"""`stormline explain`: prints the compiled plan."""

from __future__ import annotations

import click

from stormline.cli.conf import conf_option
from stormline.cli.target import TARGET_HELP, load_target
from stormline.topology.compiler import compile_topology
from stormline.topology.explain import explain


@click.command("explain", epilog=TARGET_HELP)
@click.argument("target", metavar="MODULE[:ATTR]")
@conf_option
def explain_command(target: str, conf: dict[str, object]) -> None:
    """Print the compiled plan: what runs where.

    It shows phases, stages, tasks, and how tuples move from task to task. Starts neither Spark nor ZooKeeper.

    Example: stormline explain examples.global_count
    """
    loaded = load_target(target)
    click.echo(explain(compile_topology(loaded.topology, {**loaded.config, **conf})), nl=False)
