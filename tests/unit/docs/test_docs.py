"""Docs cannot rot: what comes from the code is generated, and everything there is is named."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from docs import generate
from stormline.cli.rules.every import RULES
from stormline.topology.config import KNOWN_KEYS

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize("name", sorted(generate.PAGES))
def test_a_generated_page_is_up_to_date(name: str) -> None:
    # White space is not compared: each version of click wraps in its own way.
    made, kept = generate.PAGES[name](), (ROOT / "docs" / name).read_text(encoding="utf-8")
    assert kept.split() == made.split(), "run `make docs`"


def test_every_key_is_in_the_docs() -> None:
    page = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    assert [key for key in KNOWN_KEYS if f"`{key}`" not in page] == []


def test_every_rule_of_the_check_is_in_the_docs() -> None:
    page = (ROOT / "docs" / "check.md").read_text(encoding="utf-8")
    assert re.findall(r"^## (.+)$", page, re.MULTILINE) == [rule.RULE for rule in RULES]


def test_links_of_the_docs_lead_somewhere() -> None:
    for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


PAGES_THAT_RUN = ("drpc.md", "metrics.md")


@pytest.mark.parametrize("name", PAGES_THAT_RUN)
def test_the_python_blocks_of_a_page_run_as_one_script(tmp_path: Path, name: str) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / name).read_text(encoding="utf-8"), re.DOTALL)
    assert blocks
    script = tmp_path / "as_on_the_page.py"
    script.write_text("\n".join(blocks), encoding="utf-8")
    shown = subprocess.run([sys.executable, str(script)], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert (shown.returncode, shown.stdout, shown.stderr) == (0, "", "")


def test_modules_that_the_architecture_names_exist() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    rooms = ("topology", "runtime", "cli", "spouts", "bolts", "state")
    for name in re.findall(r"\b([a-z_]+\.py)\b", text):
        assert any(found for room in rooms for found in (ROOT / room).rglob(name)), name


def test_the_architecture_reads_like_the_tree() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    tree = text[text.index("    cli/ ") : text.index("    topology/ ")]
    in_text = dict(re.findall(r"^ {8}([a-z]+)/ +(.+)$", tree, re.MULTILINE))
    for root in ("cli", "runtime", "state"):
        for room in (path for path in (ROOT / root).iterdir() if (path / "__init__.py").is_file()):
            modules = {path.stem for path in room.glob("*.py")}
            named = in_text.pop(room.name).partition(":")[2]
            assert set(re.findall(r"[a-z]+(?:_[a-z]+)+", named)) <= modules, room
    assert not in_text
