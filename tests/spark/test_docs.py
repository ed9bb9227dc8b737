"""The Python blocks of the README and of the page on programs run as they stand."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


PAGES = ("README.md", "docs/programs.md")
BLOCKS = [
    block
    for page in PAGES
    for block in re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL)
]


ONE_AFTER_ANOTHER = """
import runpy, sys

scripts = sys.argv[1:]
del sys.argv[1:]
for script in scripts:
    runpy.run_path(script, run_name="__main__")
"""


def test_the_topologies_of_the_pages_run_as_scripts(tmp_path: Path) -> None:
    scripts = []
    for number, block in enumerate(BLOCKS):
        scripts.append(tmp_path / f"topology_{number}.py")
        scripts[-1].write_text(block, encoding="utf-8")
    assert len(scripts) == 3
    # In one process, so that Spark's JVM starts once.
    command = [sys.executable, "-c", ONE_AFTER_ANOTHER, *map(str, scripts)]
    shown = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=240)
    assert shown.returncode == 0, shown.stderr
    assert shown.stderr == ""
    assert shown.stdout == ""


@pytest.mark.proof
@pytest.mark.parametrize("block", BLOCKS, ids=["rows", "columns", "program"])
def test_each_of_them_runs_by_itself(tmp_path: Path, block: str) -> None:
    script = tmp_path / "my_topology.py"
    script.write_text(block, encoding="utf-8")
    shown = subprocess.run([sys.executable, str(script)], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert shown.returncode == 0, shown.stderr
    assert shown.stderr == ""
    assert shown.stdout == ""
