"""Calls in threads: all run, at most so many at once, the first error is heard of."""

from __future__ import annotations

import subprocess
import sys
import threading
from functools import partial

import pytest

from stormline.runtime.world.daemon_threads import run_side_by_side
from stormline.runtime.world.world import REAL


def test_as_many_as_may_run_do_run_at_once() -> None:
    barrier = threading.Barrier(4)
    done: list[int] = []

    def call(n: int) -> None:
        barrier.wait(10)
        done.append(n)

    run_side_by_side(REAL, [partial(call, n) for n in range(8)], 4)
    assert sorted(done) == list(range(8))


def test_the_first_error_is_raised_when_all_have_ended() -> None:
    done: list[int] = []

    def call(n: int) -> None:
        done.append(n)
        if n in (2, 5):
            raise ValueError(f"call {n}")

    with pytest.raises(ValueError, match="call 2"):
        run_side_by_side(REAL, [partial(call, n) for n in range(8)], 3)
    assert sorted(done) == list(range(8))


def test_one_call_runs_in_the_callers_thread() -> None:
    names: list[str] = []
    run_side_by_side(REAL, [lambda: names.append(threading.current_thread().name)], 9)
    assert names == [threading.current_thread().name]


def test_a_call_that_hangs_does_not_keep_the_process_from_ending() -> None:
    code = (
        "import threading, time\n"
        "from stormline.runtime.world.daemon_threads import run_side_by_side\n"
        "calls = [lambda: time.sleep(600)] * 2\n"
        "threading.Thread(target=run_side_by_side, args=(calls, 2), daemon=True).start()\n"
        "time.sleep(0.2)\n"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=60, check=False).returncode == 0
