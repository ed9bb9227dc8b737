"""Processes: each has a group of its own, dies with the harness, and bears a mark by which none can be missed."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil

ROOT = Path(__file__).resolve().parents[2]
MARK = "STORMLINE_CHAOS"
_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None)


def die_with_parent() -> None:
    """Let the kernel kill this process when the thread that started it ends. Called in the child."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def start(command: Sequence[str | Path], log: Path, env: Mapping[str, str], **more: Any) -> subprocess.Popen[bytes]:
    """Start a process, in a group of its own, which adds what it prints to `log`.

    The calling thread must outlive it.
    """
    with log.open("ab") as output:
        more = {"stdin": subprocess.DEVNULL, **more}
        return subprocess.Popen(
            [*map(str, command)], env={**os.environ, **env}, stdout=output, stderr=subprocess.STDOUT,
            start_new_session=True, preexec_fn=die_with_parent, **more,
        )  # fmt: skip


def marked(mark: str) -> list[psutil.Process]:
    """Return all living processes that bear a mark, but for this one."""
    found = []
    wanted = f"{MARK}={mark}".encode()
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and int(folder.name) != os.getpid():
            with contextlib.suppress(OSError, psutil.NoSuchProcess):
                if wanted in (folder / "environ").read_bytes().split(b"\0"):
                    process = psutil.Process(int(folder.name))
                    if process.status() != psutil.STATUS_ZOMBIE:
                        found.append(process)
    return found


def describe(process: psutil.Process) -> str:
    """Return a line about a process."""
    try:
        return f"{process.pid} {' '.join(process.cmdline())[:160]}"
    except psutil.Error:
        return f"{process.pid} (ended)"


def end_all(mark: str) -> list[str]:
    """Kill all that bear a mark; return what they were."""
    names = []
    for _ in range(5):
        left = marked(mark)
        if not left:
            break
        for process in left:
            names.append(describe(process))
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        time.sleep(0.2)
    return names


def wait_until(condition: Callable[[], Any], timeout_secs: float, poll_secs: float = 0.05) -> Any:
    """Wait until a condition is true, and return it; its last value where it is not in time."""
    deadline = time.monotonic() + timeout_secs
    while not (held := condition()) and time.monotonic() < deadline:
        time.sleep(poll_secs)
    return held
