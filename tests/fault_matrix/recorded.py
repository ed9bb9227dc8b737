"""Takes down how often which fault came in a run of `make simulate` or `make chaos`: docs/faults.md shows it."""

from __future__ import annotations

import datetime
import json
import platform
import subprocess
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


def record(path: Path, part: str, run: Mapping[str, Any], faults: Counter[str]) -> None:
    """Put one run in place of the last one of its `part` of the file; the other parts stay.

    Seeds that begin where the last ones ended, at the same commit, are added to those: many can run in parts.
    """
    parts = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    when = {"date": datetime.datetime.now(datetime.UTC).date().isoformat(), "commit": _commit(path)}
    now = {**when, "python": platform.python_version(), **run, "faults": dict(sorted(faults.items()))}
    parts[part] = _added(parts[part], now) if part in parts and _goes_on(parts[part], now) else now
    path.write_text(json.dumps(parts, indent=2, sort_keys=True, ensure_ascii=False) + "\n", encoding="utf-8")


def _goes_on(last: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
    if "seeds" not in last or last["first seed"] + last["seeds"] != now.get("first seed"):
        return False
    return all(last.get(key) == now[key] for key in ("commit", "python"))


def _added(last: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, Any]:
    faults = Counter(last["faults"]) + Counter(now["faults"])
    sums = {key: last[key] + now[key] for key in ("seeds", "secs", "violations")}
    return {**now, "first seed": last["first seed"], **sums, "faults": dict(sorted(faults.items()))}


def _commit(written: Path) -> str:
    def git(*command: str) -> str:
        return subprocess.run(["git", *command], cwd=ROOT, capture_output=True, text=True).stdout.strip()

    status = git("status", "--porcelain", "--untracked-files=no").splitlines()
    changed = [line for line in status if not written.resolve().match(line.split()[-1])]
    return (git("rev-parse", "--short=10", "HEAD") or "unknown") + (" with changes" if changed else "")
