"""Running: starts a peer's command in its environment and reads what it measured."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from typing import IO

from benchmarks.peers.environments import HOME, ROOT, TAIL, known
from benchmarks.peers.protocol import Measurement

SECS_MAX = 180.0
"""Time for one start of a peer, with all works that it measures; one that needs more has failed."""
GRACE_SECS = 5.0


class PeerFailed(Exception):
    """A peer's command ended badly, too late, or without a measurement that it was to make."""


def measure(peer: str, work: str) -> Measurement:
    """Measure one work of a peer, in a process of its own; raises as `measure_all` does."""
    (measurement,) = measure_all(peer, [work])
    return measurement


def measure_all(peer: str, works: Sequence[str], *options: str, secs_max: float = SECS_MAX) -> Iterator[Measurement]:
    """Measure works of a peer one after another in one start; give each measurement, in the order of `works`.

    What was measured before the peer failed is given before the error is raised. `options` are for its command.

    Raises:
        UnknownPeer: there is no such peer.
        PeerFailed: a count was wrong, or the peer could not measure.
    """
    wanted = known(peer)
    command = [wanted.python(HOME / peer), "-m", wanted.module, "--work", ",".join(works), *options]
    return measured(command, peer, works, secs_max)


def measured(command: Sequence[str], peer: str, works: Sequence[str], secs_max: float) -> Iterator[Measurement]:
    """Run a peer's command and give the measurements that it prints."""
    printed, failure = outcome(command, peer, secs_max)
    lines = [line for line in printed.splitlines() if line.startswith("{")]
    for work, line in zip(works, lines, strict=False):
        try:
            measurement = Measurement.from_line(line)
        except ValueError as error:
            raise PeerFailed(f"{peer} printed what is no measurement: {error}") from error
        if (measurement.peer, measurement.work) != (peer, work):
            raise PeerFailed(f"asked {peer} for {work}, and got {measurement.work} of {measurement.peer}")
        yield measurement
    if failure:
        raise PeerFailed(failure)
    if len(lines) != len(works):
        raise PeerFailed(f"asked {peer} for {len(works)} measurements, and got {len(lines)}")


def outcome(command: Sequence[str], peer: str, secs_max: float) -> tuple[str, str]:
    """Run a command to its end; return what it printed, and why it failed if it did.

    Nothing that it started in its process group is left behind, however this ends.
    """
    with temporary() as printed, temporary() as errors:
        process = _started(command, printed, errors)
        failure = ""
        try:
            status = process.wait(secs_max)
            if status:
                failure = f"{peer} ended with status {status}: {content(errors)[-TAIL:].strip()}"
        except subprocess.TimeoutExpired:
            failure = f"{peer} did not end within {secs_max:g} s"
        finally:
            end_group(process)
        return content(printed), failure


@contextlib.contextmanager
def running(peer: str, arguments: Sequence[str], line: str, secs_max: float = SECS_MAX) -> Iterator[None]:
    """Have a peer's command run in the block, which begins when it has printed `line`.

    Raises:
        PeerFailed: it has ended, or has not printed that in time.
    """
    wanted = known(peer)
    with temporary() as printed, temporary() as errors:
        process = _started([wanted.python(HOME / peer), "-m", wanted.module, *arguments], printed, errors)
        try:
            deadline = time.monotonic() + secs_max
            while line not in content(printed).splitlines():
                if process.poll() is not None or time.monotonic() > deadline:
                    raise PeerFailed(f"{peer} has not said {line!r}: {content(errors)[-TAIL:]}")
                time.sleep(0.1)
            yield
            if process.poll() is not None:
                raise PeerFailed(f"{peer} has ended with status {process.returncode}: {content(errors)[-TAIL:]}")
        finally:
            end_group(process)


def _started(command: Sequence[str], printed: IO[str], errors: IO[str]) -> subprocess.Popen[bytes]:
    """Start a command in a process group of its own, with our code on its path."""
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    return subprocess.Popen(
        command,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path},
        stdin=subprocess.DEVNULL,
        stdout=printed,
        stderr=errors,
        start_new_session=True,
    )


def temporary() -> IO[str]:
    """Return a file for what a command says, whatever bytes that is."""
    return tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")


def content(file: IO[str]) -> str:
    """Return all that was written to a file by whoever has it."""
    file.seek(0)
    return file.read()


def end_group(process: subprocess.Popen[bytes]) -> None:
    """End a process, which leads its group, and all of the group: first asked to, so that it removes its files."""
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(GRACE_SECS)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
