"""Fresh processes, timed from their start to a line that they print."""

from __future__ import annotations

import contextlib
import os
import subprocess
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import psutil

ROOT = Path(__file__).resolve().parents[2]


def secs_until(line: str, command: Sequence[str], timeout_secs: float = 120.0) -> float:
    """Start a process at the project's root; return the seconds until it has printed `line`. Waits for its end.

    Raises:
        RuntimeError: it ended without the line, or badly; the message holds the end of what it said.
        TimeoutError: not within `timeout_secs`; it is killed then.
    """
    begun = time.perf_counter()
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    timed_out = threading.Event()

    def stop() -> None:
        timed_out.set()
        end_tree(process.pid)

    timer = threading.Timer(timeout_secs, stop)
    timer.start()
    try:
        with process:
            secs, said = _listen(process, line, begun)
    finally:
        timer.cancel()
        timer.join()
    if timed_out.is_set():
        raise TimeoutError(f"{' '.join(command)} did not end within {timeout_secs:g} s")
    if secs is None or process.returncode != 0:
        raise RuntimeError(f"exit code {process.returncode} of {' '.join(command)}: {said[-2000:]}")
    return secs


def _listen(process: subprocess.Popen[str], line: str, begun: float) -> tuple[float | None, str]:
    """Read all that a process says; return the seconds until it said `line`, and its standard error."""
    assert process.stdout is not None
    assert process.stderr is not None
    errors, said = process.stderr, list[str]()
    reader = threading.Thread(target=lambda: said.extend(errors), daemon=True)
    reader.start()
    secs = None
    for printed in process.stdout:
        if secs is None and printed.rstrip("\n") == line:
            secs = time.perf_counter() - begun
    reader.join()
    return secs, "".join(said)


def end_tree(pid: int) -> None:
    """Kill a process and all that descend from it; no harm where they have gone."""
    with contextlib.suppress(psutil.NoSuchProcess):
        process = psutil.Process(pid)
        for each in [*process.children(recursive=True), process]:
            with contextlib.suppress(psutil.NoSuchProcess):
                each.kill()
