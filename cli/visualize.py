"""`stormline visualize`: writes the graph of a topology."""

from __future__ import annotations

from pathlib import Path

import click

from stormline.cli.target import TARGET_HELP, load_target
from stormline.topology.compiler import compile_topology
from stormline.topology.visualize import FORMATS

_SUFFIXES = {
    ".svg": "svg",
    ".dot": "dot",
    ".gv": "dot",
    ".mmd": "mermaid",
    ".md": "mermaid",
    ".txt": "mermaid",
    "": "mermaid",
}


@click.command("visualize", epilog=TARGET_HELP)
@click.argument("target", metavar="MODULE[:ATTR]")
@click.option(
    "--format", "form", type=click.Choice(list(FORMATS)), help="Default: what FILE's suffix says, else mermaid."
)
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Default: standard output."
)
def visualize_command(target: str, form: str | None, output: Path | None) -> None:
    """Draw the graph of a topology.

    Groupings stand on the edges, and colours tell the two phases apart. Mermaid is for Markdown, DOT for
    Graphviz, and SVG a picture that needs neither.

    Example: stormline visualize examples.words -o words.svg
    """
    loaded = load_target(target)
    plan = compile_topology(loaded.topology, loaded.config)
    if form is None:
        suffix = output.suffix if output else ""
        if suffix not in _SUFFIXES:
            raise click.UsageError(
                f"what FILE's suffix {suffix!r} stands for is not known; give --format {'|'.join(FORMATS)}"
            )
        form = _SUFFIXES[suffix]
    text = FORMATS[form](plan)
    if output is None:
        click.echo(text, nl=False)
        return
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise click.FileError(str(output), error.strerror) from None
