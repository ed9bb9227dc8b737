"""The options that a bundle's entry takes, and `stormline submit` with it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])

DRIVER_PID_FILE = "STORMLINE_DRIVER_PID_FILE"
"""Environment variable by which `stormline submit` learns the driver's process id."""

ENTRY_OPTIONS = (
    click.option(
        "--zookeeper",
        metavar="HOST:PORT[,HOST:PORT...]",
        help="Where the state is kept, over what the configuration says. Without a port: 2181, or the configuration's.",
    ),
    click.option(
        "--state-dir",
        type=click.Path(path_type=Path, file_okay=False),
        help="Without ZooKeeper servers: keep the state here, by a ZooKeeper within the driver. Default on a local "
        "master: .stormline/TOPOLOGY_ID in the current directory, as `stormline run` has it.",
    ),
    click.option(
        "--keep-running/--until-drained",
        help="When the spout is drained, wait for more, or end (default).",
    ),
    click.option("--allow-changed-topology", is_flag=True, help="Go on with the state of another graph of this id."),
    click.option(
        "--progress",
        type=click.Choice(["live", "json", "none"]),
        help="Print a line a second at most (live, the default), or a JSON object a wave, or nothing.",
    ),
    click.option("--verbose", is_flag=True, help="Show what Spark prints."),
)


def with_entry_options(command: F) -> F:
    """Give a command the options of the entry; `submit` passes them on."""
    for option in reversed(ENTRY_OPTIONS):
        command = option(command)
    return command


def as_arguments(options: Mapping[str, Any]) -> list[str]:
    """Return the values of these options as a command line."""
    arguments: list[str] = []
    for name, value in options.items():
        flag = f"--{name.replace('_', '-')}"
        if value is True:
            arguments.append(flag)
        elif value not in (None, False):
            arguments += [flag, str(value)]
    return arguments
