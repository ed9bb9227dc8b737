"""Takes down how often which fault came in a run of `make simulate` or `make chaos`: docs/faults.md shows it."""

from __future__ import annotations

import datetime
import json
import subprocess
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]


def record(path: Path, part: str, run: Mapping[str, Any], faults: Counter[str]) -> None:
    """Put one run in place of the last one of its `part` of the file; the other parts stay."""
    parts = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    when = {"date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(), "commit": _commit()}
    parts[part] = {**when, **run, "faults": dict(sorted(faults.items()))}
    path.write_text(json.dumps(parts, indent=2, sort_keys=True, ensure_ascii=False) + "\n", encoding="utf-8")


def _commit() -> str:
    def git(*command: str) -> str:
        return subprocess.run(["git", *command], cwd=ROOT, capture_output=True, text=True).stdout.strip()

    changed = git("status", "--porcelain", "--untracked-files=no")
    return (git("rev-parse", "--short=10", "HEAD") or "unknown") + (" with changes" if changed else "")
