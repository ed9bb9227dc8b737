"""Options that several commands have."""

from __future__ import annotations

from pathlib import Path

import click

state_dir_option = click.option(
    "--state-dir",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Where the embedded ZooKeeper keeps the state. Default: .stormline/TOPOLOGY_ID in the current directory.",
)
format_option = click.option(
    "--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True, help="How to print it."
)
