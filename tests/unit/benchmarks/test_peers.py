"""The peers' protocol, environments and processes, without the engines."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from benchmarks.peers import PEERS, Measurement, PeerFailed, measure, measure_all, prepare
from benchmarks.peers.environments import READY, NotPrepared, Peer, UnknownPeer, install
from benchmarks.peers.protocol import WORDS, WrongCount, checked, jobs, word_counts
from benchmarks.peers.running import measured, running

LINE = Measurement("fake", "1.0", "words", 200, 2, 0.5, {"total": 200, "distinct": 10}, "as documented").as_line()
STORED = dict(word_counts(0, 1_500))


def say(*lines: str, then: str = "") -> list[str]:
    """Return the command of a peer that prints lines."""
    return [sys.executable, "-c", f"print({chr(10).join(lines)!r}, flush=True)\n{then}"]


class TestLine:
    def test_a_line_is_read_as_it_was_written(self) -> None:
        read = Measurement.from_line(LINE)
        assert read.as_line() == LINE
        assert (read.tuples_per_sec, read.batches_per_sec) == (400, 4)

    @pytest.mark.parametrize(
        ("line", "message"),
        [
            ("no JSON", "not JSON: 'no JSON'"),
            ("[]", "not an object of peer, version"),
            (json.dumps({"peer": "fake"}), "not an object of peer, version"),
            (LINE.replace("200", '"many"', 1), "wrong type of tuples"),
            (LINE.replace('"words"', '"sums"'), "no such work, or no time"),
            (LINE.replace("0.5", "0"), "no such work, or no time"),
            (LINE.replace("0.5", "NaN"), "no such work, or no time"),
        ],
    )
    def test_anything_else_is_an_error_that_shows_it(self, line: str, message: str) -> None:
        with pytest.raises(ValueError, match=message):
            Measurement.from_line(line)


class TestCounts:
    def test_right_counts_give_their_checksum(self) -> None:
        assert checked(WORDS, word_counts(0, 1_500), STORED) == {"total": 1_500, "distinct": 1_000}
        assert checked("global_count", word_counts(0, 1_500), {"global": 1_500}) == {"total": 1_500, "distinct": 1}

    @pytest.mark.parametrize(
        ("stored", "message"),
        [
            ({**STORED, "word0": 3}, "words: the count of 'word0' is 3, not 2"),
            ({**STORED, "else": 1}, "words: the count of 'else' is 1, not 0"),
            ({key: count for key, count in STORED.items() if key != "word0"}, "the count of 'word0' is 0, not 2"),
        ],
        ids=["wrong", "too many", "missing"],
    )
    def test_a_wrong_count_is_named(self, stored: dict[str, int], message: str) -> None:
        with pytest.raises(WrongCount, match=message):
            checked(WORDS, word_counts(0, 1_500), stored)


DEFAULTS = {"global_count": (3, 100), "words": (5, 10)}


class TestCommandLine:
    def test_each_work_has_its_own_defaults(self) -> None:
        read = jobs(None, DEFAULTS, forms=("row", "batch"), argv=[])
        assert [(job.work, job.batches, job.batch_tuples, job.form) for job in read] == [
            ("global_count", 3, 100, "row"),
            ("words", 5, 10, "row"),
        ]

    @pytest.mark.parametrize("argv", [["--work", "sums"], ["--batches", "0"], ["--form", "sql"]])
    def test_what_a_peer_cannot_do_ends_it(self, argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
        with pytest.raises(SystemExit):
            jobs(None, DEFAULTS, argv=argv)
        assert argv[1] in capsys.readouterr().err


class TestRunning:
    def test_measurements_are_read_from_among_other_lines(self) -> None:
        assert [m.secs for m in measured(say("starting", LINE), "fake", ["words"], 30)] == [0.5]

    def test_a_bad_status_is_an_error_with_what_was_said_and_what_was_measured_is_kept(self) -> None:
        command = say(LINE, then="raise SystemExit('WrongCount: one is lost')")
        measurements = measured(command, "fake", ["words", "global_count"], 30)
        assert next(measurements).work == "words"
        with pytest.raises(PeerFailed, match="fake ended with status 1: WrongCount: one is lost"):
            next(measurements)

    @pytest.mark.parametrize(
        ("lines", "works", "message"),
        [
            ([], ["words"], "asked fake for 1 measurements, and got 0"),
            ([LINE, LINE], ["words"], "asked fake for 1 measurements, and got 2"),
            ([LINE], ["global_count"], "asked fake for global_count, and got words of fake"),
            (["{}"], ["words"], "fake printed what is no measurement: not an object"),
        ],
    )
    def test_other_measurements_than_asked_for_are_an_error(
        self, lines: list[str], works: list[str], message: str
    ) -> None:
        with pytest.raises(PeerFailed, match=message):
            list(measured(say(*lines), "fake", works, 30))

    def test_a_peer_that_hangs_is_ended_with_all_that_it_started(self, tmp_path: Path) -> None:
        start = (
            "import subprocess, sys; child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])"
        )
        leave = f"open({str(tmp_path / 'pid')!r}, 'w').write(str(child.pid)); child.wait()"
        with pytest.raises(PeerFailed, match="fake did not end within 2 s"):
            list(measured([sys.executable, "-c", f"{start}; {leave}"], "fake", ["words"], 2))
        assert ended(int((tmp_path / "pid").read_text()))

    def test_a_peer_that_runs_beside_is_ended_with_the_block(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        program = tmp_path / "endless.py"
        leave = f"open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid()))"
        program.write_text(f"import os, time\n{leave}\nprint('up', flush=True)\ntime.sleep(60)\n")
        monkeypatch.setitem(PEERS, "endless", Peer("endless"))
        monkeypatch.setenv("PYTHONPATH", str(tmp_path))
        with running("endless", (), "up"):
            pid = int((tmp_path / "pid").read_text())
            assert not ended(pid)
        assert ended(pid)

    def test_a_peer_that_does_not_come_up_is_told_with_what_it_said(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(PEERS, "absent", Peer("benchmarks.peers.absent"))
        message = "(?s)absent has not said 'up': .*No module named benchmarks.peers.absent"
        with pytest.raises(PeerFailed, match=message), running("absent", (), "up"):
            pass

    def test_ctrl_c_ends_the_peer_too(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        started: list[Any] = []

        def interrupted(process: Any, timeout: float | None = None) -> int:
            monkeypatch.undo()
            started.append(process)
            raise KeyboardInterrupt

        monkeypatch.setattr("subprocess.Popen.wait", interrupted)
        with pytest.raises(KeyboardInterrupt):
            list(measured(say(then="import time; time.sleep(60)"), "fake", ["words"], 30))
        assert started[0].returncode is not None

    def test_an_unknown_peer_is_named_beside_those_that_there_are(self) -> None:
        message = "there is no peer 'heron'; there are structured_streaming, bytewax, pyflink, storm, kafka_streaming"
        with pytest.raises(UnknownPeer, match=message):
            measure("heron", "words")
        with pytest.raises(UnknownPeer, match=message):
            measure_all("heron", ["words"])
        with pytest.raises(UnknownPeer, match=message):
            prepare("heron")


def ended(pid: int) -> bool:
    """Return whether a process ends within a second; one that nobody has waited for yet has ended too."""
    deadline = time.monotonic() + 1
    while time.monotonic() < deadline:
        try:
            os.kill(pid, 0)
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except (ProcessLookupError, FileNotFoundError):
            return True
        os.sched_yield()
    return False


class Installer:
    """Takes down the commands; makes the folder that the first would; fails where it is told to."""

    def __init__(self, fails_at: int | None = None) -> None:
        self.commands: list[Sequence[str]] = []
        self._fails_at = fails_at

    def __call__(self, command: Sequence[str]) -> None:
        self.commands.append(command)
        if len(self.commands) == self._fails_at:
            raise NotPrepared("no wheel for this Python")


class TestPrepare:
    def test_the_second_time_there_is_nothing_to_do(self, tmp_path: Path) -> None:
        installer = Installer()
        for _ in range(2):
            prepare("bytewax", home=tmp_path, run=installer)
        venv, pip = installer.commands
        assert venv[1:3] == ["-m", "venv"]
        assert pip[-1] == "bytewax==0.21.1"
        assert pip[0] == str(tmp_path / "bytewax" / "bin" / "python")

    def test_storm_is_compiled_by_maven(self, tmp_path: Path) -> None:
        installer = Installer()
        prepare("storm", home=tmp_path, run=installer)
        ((_, *arguments),) = installer.commands
        assert arguments[-2:] == [f"-Dbench.dir={tmp_path / 'storm'}", "compile"]

    def test_structured_streaming_runs_in_the_harness_own_environment(self, tmp_path: Path) -> None:
        prepare("structured_streaming", home=tmp_path, run=Installer(fails_at=1))
        assert PEERS["structured_streaming"].python(tmp_path) == sys.executable
        assert list(tmp_path.iterdir()) == []

    def test_the_jars_of_sparks_kafka_source_are_fetched_by_spark(self, tmp_path: Path) -> None:
        installer = Installer()
        for _ in range(2):
            prepare("kafka_streaming", home=tmp_path, run=installer)
        ((*_, home, jars),) = installer.commands
        assert home == str(tmp_path / "kafka_streaming")
        assert jars.startswith("org.apache.spark:spark-sql-kafka-0-10_2.13:")
        assert PEERS["kafka_streaming"].python(tmp_path) == sys.executable

    def test_one_that_was_broken_off_is_made_anew(self, tmp_path: Path) -> None:
        with pytest.raises(NotPrepared, match="no wheel"):
            prepare("bytewax", home=tmp_path, run=Installer(fails_at=2))
        (tmp_path / "bytewax" / "half").touch()
        installer = Installer()
        prepare("bytewax", home=tmp_path, run=installer)
        assert len(installer.commands) == 2
        assert [path.name for path in (tmp_path / "bytewax").iterdir()] == [READY]

    def test_other_packages_are_another_environment(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        installer = Installer()
        prepare("bytewax", home=tmp_path, run=installer)
        monkeypatch.setitem(PEERS, "bytewax", Peer("module", ("bytewax==1.0",)))
        prepare("bytewax", home=tmp_path, run=installer)
        assert [command[-1] for command in installer.commands[1::2]] == ["bytewax==0.21.1", "bytewax==1.0"]

    def test_a_failed_command_is_told_with_what_it_said(self) -> None:
        with pytest.raises(NotPrepared, match=r"(?s)-c .* ended with status 1: no such package"):
            install([sys.executable, "-c", "raise SystemExit('no such package')"])

    def test_an_absent_command_is_told_with_the_remedy(self, tmp_path: Path) -> None:
        with pytest.raises(NotPrepared, match="mvn was not found: install it, and put it on the PATH"):
            install([str(tmp_path / "mvn")])

    def test_a_command_that_hangs_is_told(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("benchmarks.peers.environments.INSTALL_SECS_MAX", 0.2)
        with pytest.raises(NotPrepared, match=r"did not end within 0\.2 s"):
            install([sys.executable, "-c", "import time; time.sleep(60)"])


def test_the_package_needs_nothing_but_the_standard_library() -> None:
    code = (
        "import sys, benchmarks.peers\n"
        "ours = {name.split('.')[0] for name in sys.modules} - set(sys.stdlib_module_names)\n"
        "print(sorted(name for name in ours if not name.startswith('_')))"
    )
    done = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "['benchmarks']"
