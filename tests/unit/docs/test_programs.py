"""The Python blocks of a page are one program, which runs from top to bottom."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[3] / "docs"


@pytest.mark.parametrize("name", ["porting.md", "sources.md", "spouts.md", "state.md", "two_phase_commit.md"])
def test_the_python_blocks_of_a_page_run_one_after_another(name: str, tmp_path: Path) -> None:
    text = (DOCS / name).read_text(encoding="utf-8")
    blocks = list(re.finditer(r"```python\n(.*?)```", text, re.DOTALL))
    assert blocks
    script = ""
    for block in blocks:
        # So that the lines of a traceback are the page's own.
        script += "\n" * (text[: block.start(1)].count("\n") - script.count("\n")) + block[1]
    path = tmp_path / "page.py"
    path.write_text(script, encoding="utf-8")
    shown = subprocess.run([sys.executable, str(path)], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout == ""
    assert "Traceback" not in shown.stderr  # of what is only logged; what fails on order is logged, too
