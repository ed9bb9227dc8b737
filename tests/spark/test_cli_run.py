"""`stormline run` as a user runs it: a process of its own, on Spark, in an empty directory.

Each start of Spark takes seconds: tests/spark/test_cli_story.py tries the most in a few runs; what is a proof here
tries it again thing by thing.
"""

import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from stormline.cli.rules import copied_object

ROOT = Path(__file__).resolve().parents[2]
STORMLINE = [sys.executable, "-m", "stormline.cli.main"]
NUMBERS = "tests.topologies.numbers"
SECS_MAX = 120


class Numbers:
    """The topology of tests/topologies/numbers.py, in a directory of its own."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.database = directory / "numbers.sqlite"
        self.begun = directory / "numbers.sqlite.begun"

    def environment(self, **settings: Any) -> dict[str, str]:
        here = {"PYTHONPATH": str(ROOT), "NUMBERS_DB": str(self.database)}
        return {**os.environ, **here, **{f"NUMBERS_{key.upper()}": str(value) for key, value in settings.items()}}

    def run(self, *options: str, **settings: Any) -> subprocess.CompletedProcess[str]:
        return self.command("run", *options, **settings)

    def command(self, command: str, *options: str, **settings: Any) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*STORMLINE, command, NUMBERS, "--master", "local[2]", *options],
            cwd=self.directory,
            env=self.environment(**settings),
            capture_output=True,
            text=True,
            timeout=SECS_MAX,
        )

    @contextmanager
    def running(self, *options: str, **settings: Any) -> Iterator[subprocess.Popen[str]]:
        """Start a run that is killed at the end if it has not ended."""
        process = subprocess.Popen(
            [*STORMLINE, "run", NUMBERS, "--master", "local[2]", *options],
            cwd=self.directory,
            env=self.environment(**settings),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        watchdog = threading.Timer(SECS_MAX, process.kill)
        watchdog.start()
        try:
            with process:
                yield process
        finally:
            watchdog.cancel()
            process.kill()

    def sums(self) -> list[tuple[int, int]]:
        if not self.database.exists():
            return []
        with closing(sqlite3.connect(self.database)) as db:
            if not db.execute("select * from sqlite_master").fetchall():
                return []
            return db.execute("select txid, sum from sums order by txid").fetchall()

    def await_sums(self, process: subprocess.Popen[str], least: int) -> None:
        while len(self.sums()) < least:
            assert process.poll() is None, process.communicate()
            time.sleep(0.02)


@pytest.fixture
def numbers(tmp_path: Path) -> Numbers:
    return Numbers(tmp_path)


HANG_TOLD = (
    "WARNING stormline executor: topology numbers has long been in ",
    r"within 10 s \(topology\.message\.timeout\.secs\); it is in ",
)

# Batch n takes two numbers of each partition: 2n-2, 2n-1 of the one, and 40 more of the other.
SUMS = [(n, 2 * (2 * n - 2) + 1 + 2 * (2 * n + 38) + 1) for n in range(1, 21)]


def test_a_run_ends_when_its_spout_is_drained_and_prints_the_report(numbers: Numbers) -> None:
    done = numbers.run("--progress", "json")
    assert done.returncode == 0, done.stderr
    *objects, report = done.stdout.splitlines()
    assert json.loads(report) == {"event": "report", "text": f"20 sums make {sum(range(80))}"}
    *waves, end = map(json.loads, objects)
    assert waves
    assert {wave["event"] for wave in waves} == {"wave"}
    assert [wave["waves"] for wave in waves] == list(range(1, len(waves) + 1))
    assert (end["event"], end["topology"], end["txid_committed"]) == ("end", "numbers", 20)
    assert (end["transactions"], end["tuples"], end["replays"], end["processing"]) == (20, 80, 0, 0)
    assert end["transactions_per_sec"] > 0
    assert numbers.sums() == SUMS
    assert (numbers.directory / ".stormline" / "numbers").is_dir()


@pytest.mark.proof
def test_what_will_not_do_what_it_seems_is_said_once_and_stops_nothing(tmp_path: Path) -> None:
    done = subprocess.run(
        [*STORMLINE, "run", "tests.checked.wrong.copies", "--fresh", "--master", "local[2]"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=SECS_MAX,
    )
    assert done.returncode == 0, done.stderr
    lines = done.stderr.splitlines()
    assert len([line for line in lines if line.endswith("[copied-object]")]) == 4
    assert lines.count(f"    {copied_object.REMEDY}") == 1
    assert lines.count("4 findings; it runs all the same: see `stormline check tests.checked.wrong.copies`") == 1


@pytest.mark.proof
@pytest.mark.parametrize(("number", "exit_code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_stops_after_the_commit_that_runs_and_the_next_run_goes_on(
    numbers: Numbers, number: signal.Signals, exit_code: int
) -> None:
    with numbers.running("--progress", "none", commit_secs=0.2) as process:
        numbers.await_sums(process, 2)
        process.send_signal(number)
        stdout, stderr = process.communicate()
    assert process.returncode == exit_code, stderr
    stopped = numbers.sums()
    assert 2 <= len(stopped) < 20
    assert stdout == ""
    stopping, *between, end = stderr.splitlines()
    # A Python worker whose task was cancelled, on a slow machine, prints that its pipe broke: PySpark's own line.
    assert not between or between[-1].startswith("BrokenPipeError: "), stderr
    assert stopping.startswith("stopping after the commit of transaction ")
    assert stopping.endswith("; again: stop at once")
    assert end == f"stopped at transaction {len(stopped)}; run again to go on"
    if number is signal.SIGINT:
        done = numbers.run()
        assert done.returncode == 0, done.stderr
        assert numbers.sums() == SUMS
        first, second, *_, last = done.stderr.splitlines()
        assert first == "numbers: state in .stormline/numbers"
        assert second == f"numbers: goes on at transaction {len(stopped) + 1}"
        assert last.startswith(f"numbers: {20 - len(stopped)} transactions, {4 * (20 - len(stopped))} tuples in ")
        assert last.endswith("; committed up to txid 20")


@pytest.mark.proof
def test_a_second_signal_stops_at_once_and_the_next_run_goes_on(numbers: Numbers) -> None:
    with numbers.running("--progress", "none", commit_secs=60) as process:
        while process.poll() is None and not numbers.begun.exists():
            time.sleep(0.02)
        process.send_signal(signal.SIGTERM)
        assert process.stderr is not None
        assert "stopping after the commit of transaction 1" in process.stderr.readline()
        began = time.monotonic()
        process.send_signal(signal.SIGTERM)
        _, stderr = process.communicate()
    assert time.monotonic() - began < 10
    assert process.returncode == 143
    assert stderr == "stopped at once, at transaction 0; what is committed stays committed: run again to go on\n"
    assert numbers.sums() == []
    again = numbers.run("--progress", "none")
    assert (again.returncode, again.stdout) == (0, f"20 sums make {sum(range(80))}\n")
    assert again.stderr == "", "nothing but the report is shown where no progress is wanted"
    assert numbers.sums() == SUMS


@pytest.mark.proof
def test_a_bolt_that_raises_shows_the_users_traceback_first_and_leaves_a_state_to_go_on_with(numbers: Numbers) -> None:
    failed = numbers.run("--progress", "none", fail_at=13)
    assert failed.returncode == 1
    assert failed.stdout == ""
    first, second, third, *_ = failed.stderr.splitlines()
    assert first == "Traceback (most recent call last):"
    assert "numbers.py" in second
    assert third == '    raise ZeroDivisionError(f"cannot add {number}")'
    assert failed.stderr.splitlines()[-1].startswith(
        "topology 'numbers' stopped: ZeroDivisionError in execute of 'add', task "
    )
    assert numbers.sums() == SUMS[:6]
    shown = numbers.run(fail_at=13).stderr.splitlines()
    assert shown[1] == "numbers: goes on at transaction 7"
    assert shown[shown.index("Traceback (most recent call last):") - 1].endswith("; committed up to txid 6")
    assert numbers.run().returncode == 0
    assert numbers.sums() == SUMS


def test_a_signal_while_spark_starts_ends_the_process_at_once(numbers: Numbers) -> None:
    with numbers.running("--progress", "live") as process:
        assert process.stderr is not None
        assert process.stderr.readline() == "numbers: state in .stormline/numbers\n"
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate()
    assert process.returncode == 130
    assert stderr == "stopped before the topology began; run again to begin\n"
    assert numbers.sums() == []


@pytest.mark.proof
def test_submit_on_a_local_master_keeps_its_state_as_run_does(numbers: Numbers) -> None:
    first = numbers.run("--until", "3", commit_secs=0.2)
    assert first.returncode == 0, first.stderr
    committed = len(numbers.sums())
    assert 3 <= committed < 20
    submitted = numbers.command("submit")
    assert submitted.returncode == 0, submitted.stdout + submitted.stderr
    assert "numbers: state in .stormline/numbers\n" in submitted.stdout
    assert f"numbers: {20 - committed} transactions, " in submitted.stdout
    assert numbers.sums() == SUMS
    again = numbers.command("submit", "--progress", "json")
    assert again.returncode == 0, again.stdout + again.stderr
    ends = [json.loads(line) for line in again.stdout.splitlines() if line.startswith("{")]
    assert [(end["transactions"], end["txid_committed"]) for end in ends if end["event"] == "end"] == [(0, 20)]


def test_what_python_workers_print_does_not_tear_the_line_of_a_terminal(numbers: Numbers) -> None:
    controller, terminal = os.openpty()
    process = subprocess.Popen(
        [*STORMLINE, "run", NUMBERS, "--master", "local[2]"],
        cwd=numbers.directory,
        env=numbers.environment(warn=1, commit_secs=0.05),
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
    )
    os.close(terminal)
    watchdog = threading.Timer(SECS_MAX, process.kill)
    watchdog.start()
    shown = b""
    try:
        while chunk := _read(controller):
            shown += chunk
    finally:
        assert process.wait() == 0, shown
        watchdog.cancel()
        os.close(controller)
    assert " committed · ".encode() in shown, "the live line was there to be torn"
    warned = [before for before, _ in zip(shown.split(b"warned of "), range(shown.count(b"warned of ")), strict=False)]
    assert warned
    # Each begins a line: after the line before, or where the live line has just been erased.
    torn = [before[-60:] for before in warned if not before.endswith((b"\n", b"\r\x1b[2K", b"\x1b[2K"))]
    assert not torn


@pytest.mark.proof
def test_a_hang_in_a_python_worker_is_named_with_its_line_and_the_run_goes_on(numbers: Numbers) -> None:
    done = numbers.run("--conf", "topology.message.timeout.secs=10", hang=6)  # of the second wave: the workers are warm
    assert done.returncode == 0, done.stderr
    assert numbers.sums() == SUMS
    hangs = r"finish_batch of 'add', task \d+, for [\d.]+ s, in transaction 6:\d+, at "
    hangs += r"\S+/numbers\.py:\d+ in finish_batch"
    for told in HANG_TOLD:
        assert re.search(told + hangs, done.stderr), done.stderr


def _read(controller: int) -> bytes:
    try:
        return os.read(controller, 65536)
    except OSError:  # Linux says so that nobody holds the terminal any more
        return b""
