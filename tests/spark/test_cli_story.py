"""One topology by its commands, run after run in one directory: stopped at once, failed, stopped gently, resumed."""

from __future__ import annotations

import re
import signal
import time
from dataclasses import dataclass

import pytest

from tests.spark.test_cli_run import HANG_TOLD, SUMS, Numbers


@dataclass(frozen=True)
class Ended:
    """How one of the runs ended, and what was stored then."""

    code: int
    stdout: str
    stderr: str
    sums: list[tuple[int, int]]


@pytest.fixture(scope="module")
def numbers(tmp_path_factory: pytest.TempPathFactory) -> Numbers:
    return Numbers(tmp_path_factory.mktemp("numbers"))


@pytest.fixture(scope="module")
def stopped_at_once(numbers: Numbers) -> Ended:
    """A run that gets two signals while its first commit takes a minute."""
    with numbers.running("--progress", "none", commit_secs=60) as process:
        while process.poll() is None and not numbers.begun.exists():
            time.sleep(0.02)
        process.send_signal(signal.SIGTERM)
        assert process.stderr is not None
        first = process.stderr.readline()
        process.send_signal(signal.SIGTERM)
        stdout, stderr = process.communicate()
    return Ended(process.returncode, stdout, first + stderr, numbers.sums())


@pytest.fixture(scope="module")
def failed(numbers: Numbers, stopped_at_once: Ended) -> Ended:
    """The next run, whose bolt raises in transaction 7."""
    done = numbers.run(fail_at=13)
    return Ended(done.returncode, done.stdout, done.stderr, numbers.sums())


@pytest.fixture(scope="module")
def stopped(numbers: Numbers, failed: Ended) -> Ended:
    """The next run, which gets one signal."""
    with numbers.running("--progress", "none", commit_secs=0.2) as process:
        numbers.await_sums(process, 8)
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate()
    return Ended(process.returncode, stdout, stderr, numbers.sums())


@pytest.fixture(scope="module")
def submitted(numbers: Numbers, stopped: Ended) -> Ended:
    """The rest, submitted to a local master; a task hangs for once in the second wave, when the workers are warm."""
    done = numbers.command("submit", "--conf", "topology.message.timeout.secs=10", hang=len(stopped.sums) + 5)
    return Ended(done.returncode, done.stdout, done.stderr, numbers.sums())


def test_a_second_signal_stops_at_once_and_stores_nothing(stopped_at_once: Ended) -> None:
    first, second = stopped_at_once.stderr.splitlines()
    assert stopped_at_once.code == 143
    assert first == "stopping after the commit of transaction 1; again: stop at once"
    assert second == "stopped at once, at transaction 0; what is committed stays committed: run again to go on"
    assert (stopped_at_once.stdout, stopped_at_once.sums) == ("", [])


def test_a_bolt_that_raises_shows_the_users_traceback_after_what_was_committed(failed: Ended) -> None:
    assert (failed.code, failed.stdout) == (1, "")
    lines = failed.stderr.splitlines()
    assert lines[:2] == ["numbers: state in .stormline/numbers", "numbers: begins at transaction 1"]
    start = lines.index("Traceback (most recent call last):")
    assert lines[start - 1].endswith("; committed up to txid 6")
    assert "numbers.py" in lines[start + 1]
    assert lines[start + 2] == '    raise ZeroDivisionError(f"cannot add {number}")'
    assert lines[-1].startswith("topology 'numbers' stopped: ZeroDivisionError in execute of 'add', task ")
    assert failed.sums == SUMS[:6]


def test_a_signal_stops_after_the_commit_that_runs(stopped: Ended) -> None:
    assert (stopped.code, stopped.stdout) == (130, "")
    stopping, *_, end = stopped.stderr.splitlines()
    assert stopping.startswith("stopping after the commit of transaction ")
    assert stopping.endswith("; again: stop at once")
    assert end == f"stopped at transaction {len(stopped.sums)}; run again to go on"
    assert 8 <= len(stopped.sums) < 20
    assert stopped.sums == SUMS[: len(stopped.sums)]


@pytest.mark.proof
def test_submit_on_a_local_master_goes_on_with_what_run_left(submitted: Ended, stopped: Ended) -> None:
    assert submitted.code == 0, submitted.stdout + submitted.stderr
    assert "numbers: state in .stormline/numbers\n" in submitted.stdout
    assert f"numbers: goes on at transaction {len(stopped.sums) + 1}\n" in submitted.stdout
    left = 20 - len(stopped.sums)
    assert f"numbers: {left} transactions, {4 * left} tuples in " in submitted.stdout
    assert submitted.sums == SUMS


@pytest.mark.proof
def test_a_hang_in_a_python_worker_is_named_with_its_line(submitted: Ended, stopped: Ended) -> None:
    hangs = rf"finish_batch of 'add', task \d+, for [\d.]+ s, in transaction {len(stopped.sums) + 5}:\d+, at "
    hangs += r"\S+/numbers\.py:\d+ in finish_batch"
    for told in HANG_TOLD:
        assert re.search(told + hangs, submitted.stdout + submitted.stderr), submitted.stdout + submitted.stderr
