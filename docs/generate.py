"""Writes the pages of docs/ that come from the code: `python -m docs.generate`. A test compares."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click
from click.testing import CliRunner

from docs import fault_page
from stormline.cli.main import main
from stormline.runtime.spark.settings import PREFERRED, REQUIRED
from stormline.topology.config import KNOWN_KEYS

HERE = Path(__file__).parent


def configuration() -> str:
    """Return the page of all settings."""
    lines = [
        "# Configuration",
        "",
        "Precedence: topology (the `config` given at submission) < a component's `get_component_configuration()` < its",
        "declarer (`add_configuration`). An unknown key under `topology.` or `transactional.` is an error; other keys",
        "are your own and reach `conf` in `prepare`. `spark.*` keys are passed to Spark.",
        "",
        "| key | default | meaning |",
        "|---|---|---|",
    ]
    used = {key: known for key, known in KNOWN_KEYS.items() if known.used}
    lines += [f"| `{key}` | `{known.default!r}` | {known.meaning} |" for key, known in used.items()]
    lines += ["", "Accepted for ported topologies, without effect on Spark:", ""]
    lines += [f"- `{key}`" for key, known in KNOWN_KEYS.items() if not known.used]
    lines += ["", "Spark settings without which a topology refuses to start on a cluster:", ""]
    lines += [f"- `{key}={value}`" for key, value in REQUIRED.items()]
    lines += ["", "Spark settings that Stormline sets where you do not:", ""]
    lines += [f"- `{key}={value}`" for key, value in PREFERRED.items()]
    return "\n".join(lines) + "\n"


def commands() -> str:
    """Return the page of all commands: their own help."""
    parts = [f"# Commands\n\n```text\n{_help()}```\n"]
    parts += [f"## stormline {' '.join(names)}\n\n```text\n{_help(*names)}```\n" for names in _names(main)]
    return "\n".join(parts)


def _names(group: click.Group) -> Iterator[tuple[str, ...]]:
    for name, command in sorted(group.commands.items()):
        yield (name,)
        if isinstance(command, click.Group):
            yield from ((name, *rest) for rest in _names(command))


def _help(*command: str) -> str:
    shown = CliRunner().invoke(main, [*command, "--help"], prog_name="stormline", terminal_width=100)
    assert shown.exit_code == 0, shown.output
    return shown.output


PAGES = {"configuration.md": configuration, "commands.md": commands, "faults.md": fault_page.page}


def write() -> None:
    """Write all pages."""
    for name, page in PAGES.items():
        (HERE / name).write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    write()
