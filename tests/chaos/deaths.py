"""Appointed deaths: the harness lays a file, and whoever comes to that point first takes it away and dies."""

from __future__ import annotations

import os
import signal
from pathlib import Path

EXECUTING = "executing"
BEFORE = "before-commit"
WITHIN = "within-commit"
AFTER = "after-commit"
AT_COMMIT = (BEFORE, WITHIN, AFTER)


def appoint(folder: Path, point: str) -> Path:
    """Let the next process that comes to `point` die by SIGKILL; return the file that is gone by then."""
    path = folder / f"die-{point}"
    path.touch()
    return path


def meet(folder: Path, point: str) -> None:
    """Die here, if that is appointed; each appointment is kept once."""
    path = folder / f"die-{point}"
    if path.exists():
        try:
            path.unlink()
        except FileNotFoundError:
            return  # somebody else's
        os.kill(os.getpid(), signal.SIGKILL)
