"""The Python blocks of pages that need no Spark run as they stand."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_topology_of_the_page_on_state_runs_as_a_script(tmp_path: Path) -> None:
    (block,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "state.md").read_text(encoding="utf-8"), re.DOTALL)
    script = tmp_path / "totals.py"
    script.write_text(block, encoding="utf-8")
    shown = subprocess.run([sys.executable, str(script)], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert (shown.returncode, shown.stdout, shown.stderr) == (0, "", "")
