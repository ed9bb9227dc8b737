"""What a run shows of itself: as lines, as a live line, as JSON."""

import io
import json
import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console

from stormline.cli.rates import Rates
from stormline.cli.reporter import (
    JsonReporter,
    LineReporter,
    LiveReporter,
    Reporter,
    progress_line,
    reporter_for,
    summary,
)
from stormline.runtime.coordination.progress import Snapshot


class TestReporters:
    SNAPSHOT = Snapshot("words", 1200, 1000, 30000, 64, 2, 20, 10.0, 100.0, 3000.0)

    def test_json_is_one_object_a_wave_and_one_at_the_end(self, capsys: pytest.CaptureFixture[str]) -> None:
        with JsonReporter() as reporter:
            reporter.starting("words", "state in x")
            reporter.wave(self.SNAPSHOT)
            reporter.look(self.SNAPSHOT)
            reporter.ended(replace(self.SNAPSHOT, processing=0))
        wave, end = map(json.loads, capsys.readouterr().out.splitlines())
        assert wave["event"] == "wave"
        assert (end["event"], end["processing"]) == ("end", 0)
        assert (wave["txid_committed"], wave["transactions_per_sec"], wave["replays"]) == (1200, 100.0, 2)

    def test_json_ends_with_the_counts_of_a_run_that_failed(self, capsys: pytest.CaptureFixture[str]) -> None:
        with JsonReporter() as reporter:
            reporter.failed(self.SNAPSHOT)
        assert json.loads(capsys.readouterr().out)["event"] == "end"

    def test_a_run_goes_on_when_nobody_reads_its_json(self) -> None:
        program = (
            "import sys\n"
            "from stormline.cli.reporter import JsonReporter, Snapshot\n"
            "sys.stdin.readline()\n"
            "for n in range(3): JsonReporter().wave(Snapshot('t', *range(9)))\n"
            "print('went on', file=sys.stderr)"
        )
        pipes: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        with subprocess.Popen([sys.executable, "-c", program], text=True, **pipes) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            assert process.stderr is not None
            process.stdout.close()
            process.stdin.write("\n")
            process.stdin.close()
            assert process.stderr.read() == "went on\n"
        assert process.returncode == 0

    def test_a_line_says_all_there_is_to_know(self) -> None:
        assert progress_line(self.SNAPSHOT, 150.0, 4500.0) == (
            "words  txid 1,200 committed · 150.0 transactions/s (avg 100.0) · 4,500 tuples/s (avg 3,000) · "
            "64 in processing · 2 replays · 10 s"
        )
        assert summary(self.SNAPSHOT) == (
            "words: 1,000 transactions, 30,000 tuples in 10.0 s: 100.0 transactions/s, 3,000 tuples/s, 2 replays; "
            "committed up to txid 1,200"
        )

    def test_what_metrics_have_counted_follows_the_summary(self, capfd: pytest.CaptureFixture[str]) -> None:
        counted: dict[str, dict[str, Any]] = {
            "split": {"words": 1234567, "sizes": {"count": 3, "mean": 0.12345}},
            "store": {"mode": "fast"},
        }
        with LineReporter() as reporter:
            reporter.ended(replace(self.SNAPSHOT, metrics=counted))
        assert capfd.readouterr().err.splitlines()[1:] == [
            "  split  words: 1,234,567",
            "  split  sizes: count 3, mean 0.1235",
            "  store  mode: fast",
        ]

    def test_json_holds_what_metrics_have_counted(self, capsys: pytest.CaptureFixture[str]) -> None:
        with JsonReporter() as reporter:
            reporter.ended(replace(self.SNAPSHOT, metrics={"split": {"words": 3, "newest": {1}}}))
        assert json.loads(capsys.readouterr().out)["metrics"] == {"split": {"words": 3, "newest": "{1}"}}

    def lines(self, line_secs: float, *looks: Snapshot) -> list[str]:
        with LineReporter(line_secs) as reporter:
            vars(reporter)["console"] = Console(file=io.StringIO(), width=200)
            for snapshot in looks:
                reporter.look(snapshot)
            assert isinstance(reporter.console.file, io.StringIO)
            return reporter.console.file.getvalue().splitlines()

    @pytest.mark.parametrize(("line_secs", "shown"), [(1.0, ["0", "10", "20", "25"]), (2.5, ["0", "25"])])
    def test_lines_come_at_most_every_few_seconds_and_only_when_something_was_committed(
        self, line_secs: float, shown: list[str]
    ) -> None:
        looks = [
            replace(self.SNAPSHOT, elapsed_secs=tenth / 10, txid_committed=min(tenth, 25), processing=tenth % 2)
            for tenth in range(60)
        ]
        assert [line.split()[2] for line in self.lines(line_secs, *looks)] == shown

    def test_a_line_comes_also_while_nothing_is_committed_unless_the_run_waits_for_rows(self) -> None:
        looks = [replace(self.SNAPSHOT, elapsed_secs=float(second), processing=3) for second in range(25)]
        assert [line.rsplit(" · ", 1)[1] for line in self.lines(5.0, *looks)] == ["0 s", "10 s", "20 s"]
        idle = [replace(self.SNAPSHOT, elapsed_secs=float(second), processing=0) for second in range(25)]
        assert len(self.lines(5.0, *idle)) == 1

    def test_what_is_printed_is_what_was_said(self, capfd: pytest.CaptureFixture[str]) -> None:
        said = "attempt 6:100: fails on h:1234: [bold]no[/bold] :warning: " + "x" * 200
        with LineReporter() as reporter:
            reporter.notice(said)
        live = LiveReporter()
        with live:
            live.starting("a:100:[b]", "state in x")
            drawn = live._spinner.text
        assert capfd.readouterr().err.splitlines()[0] == said
        assert str(drawn) == "a:100:[b]  starting Spark"

    def test_rates_are_those_of_the_last_seconds(self) -> None:
        rates = Rates()
        for second in range(1, 11):
            slow = rates.look(
                replace(self.SNAPSHOT, elapsed_secs=float(second), transactions=second, tuples=2 * second)
            )
        assert slow == (1.0, 2.0)
        for second in range(11, 17):
            fast = rates.look(
                replace(self.SNAPSHOT, elapsed_secs=float(second), transactions=10 + (second - 10) * 100, tuples=0)
            )
        assert fast[0] == 100.0

    def test_where_there_is_no_terminal_a_run_says_where_it_begins_how_it_goes_and_how_it_ends(
        self, capfd: pytest.CaptureFixture[str]
    ) -> None:
        kinds = {"auto": LineReporter, "none": Reporter, "live": LineReporter, "json": JsonReporter}
        for progress, kind in kinds.items():
            with reporter_for(progress) as reporter:
                assert type(reporter) is kind
        for end in (Reporter.ended, Reporter.failed):
            with reporter_for("auto") as reporter:
                reporter.starting("words", "state in x")
                reporter.begun("words", 201)
                reporter.wave(self.SNAPSHOT)
                reporter.look(self.SNAPSHOT)
                getattr(reporter, end.__name__)(self.SNAPSHOT)
            out, err = capfd.readouterr()
            assert out == ""
            assert err.splitlines() == [
                "words: state in x",
                "words: goes on at transaction 201",
                progress_line(self.SNAPSHOT, 100.0, 3000.0),
                summary(self.SNAPSHOT),
            ]
        with reporter_for("auto") as reporter:
            reporter.begun("words", 1)
        assert capfd.readouterr().err == "words: begins at transaction 1\n"

    def test_nothing_is_shown_where_nothing_is_asked_for(self, capfd: pytest.CaptureFixture[str]) -> None:
        with reporter_for("none") as reporter:
            reporter.starting("words", "state in x")
            reporter.begun("words", 1)
            reporter.wave(self.SNAPSHOT)
            reporter.look(self.SNAPSHOT)
            reporter.ended(self.SNAPSHOT)
            reporter.failed(self.SNAPSHOT)
        assert capfd.readouterr() == ("", "")

    def test_what_the_driver_warns_of_goes_above_the_live_line(self, monkeypatch: pytest.MonkeyPatch) -> None:
        class Terminal(io.StringIO):
            def isatty(self) -> bool:
                return True

        monkeypatch.setattr(sys, "stderr", before := Terminal())
        with LiveReporter() as reporter:
            said: list[str] = []
            monkeypatch.setattr(reporter.console, "print", lambda *what, **_: said.extend(map(str, what)))
            reporter.begun("words", 1)
            print("careful", file=sys.stderr)
        assert said == ["words: begins at transaction 1", "careful"]
        assert before.getvalue() == ""
        assert sys.stderr is before
