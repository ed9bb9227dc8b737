"""`stormline check`, and what `submit` prints of it; `run` does in tests/spark/test_cli_run.py."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from stormline.cli import findings
from stormline.cli.main import main
from stormline.cli.rules.every import check_plan
from stormline.cli.target import load_target
from stormline.topology.compiler import compile_topology
from stormline.topology.plan import Plan

ROOT = Path(__file__).resolve().parents[3]
CLOCKS = "tests.checked.wrong.clocks"


@pytest.fixture(autouse=True)
def from_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def call(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments, prog_name="stormline")


def test_a_topology_without_findings_ends_with_0() -> None:
    done = call("check", "examples.words")
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout == "no findings in topology 'top-n-words', 4 components\n"


def test_findings_end_with_1_and_their_number() -> None:
    done = call("check", CLOCKS)
    assert (done.exit_code, done.stderr) == (1, "")
    lines = done.stdout.splitlines()
    assert lines[0] == (
        "tests/checked/wrong/clocks.py:12: emitter of spout 'words': Emitter.emit_batch, by the call in line 25 emits "
        "what time.time() gives [unrepeatable-batch]"
    )
    assert lines[-1] == "5 findings in topology 'clocks', 2 components"


def test_json_is_for_programs() -> None:
    done = call("check", CLOCKS, "--format", "json")
    assert done.exit_code == 1
    said = json.loads(done.stdout)
    assert (said["topology"], said["unread"]) == ("clocks", [])
    first = said["findings"][0]
    assert (first["path"], first["line"], first["rule"], first["component"]) == (
        "tests/checked/wrong/clocks.py",
        12,
        "unrepeatable-batch",
        "words",
    )
    assert len(said["findings"]) == 5


def test_settings_count_that_decide_where_a_bolt_runs() -> None:
    done = call("check", "examples.global_count", "--conf", "topology.commit.placement=executors")
    assert done.exit_code == 1
    assert "[static-state]" in done.stdout


def test_what_could_not_be_read_is_a_note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "unreadable.py").write_text(
        "from stormline import BaseBasicBolt\nfrom tests.checked import spouts\n"
        "Print = type('Print', (BaseBasicBolt,), {'execute': print, '__module__': __name__})\n"
        "topology = spouts.chain('unreadable', Print())\n"
    )
    done = call("check", "unreadable")
    assert done.exit_code == 0
    assert done.stdout.splitlines() == [
        "note: bolt 'bolt': the source of Print cannot be read, so it was not checked",
        "no findings in topology 'unreadable', 2 components",
    ]


def test_a_topology_that_cannot_be_built_is_an_error() -> None:
    done = call("check", "examples.wrods")
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr == "error: there is no module 'examples.wrods'; did you mean 'examples.words'?\n"


def test_submit_prints_the_findings_once_on_standard_error() -> None:
    done = call("submit", CLOCKS, "--dry-run")
    assert done.exit_code == 0
    assert done.stderr.count("[sleeping-is-ready]") == 2
    assert done.stderr.count("[unrepeatable-batch]") == 3
    assert done.stderr.splitlines()[-1] == (f"5 findings; it runs all the same: see `stormline check {CLOCKS}`")
    assert "[sleeping-is-ready]" not in done.stdout


def test_run_prints_the_findings_once_and_runs_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[str] = []

    def runs(loaded: Any, *rest: Any) -> int:
        ran.append(loaded.topology.id)
        return 0

    monkeypatch.setattr("stormline.cli.running.run_target", runs)
    done = call("run", CLOCKS, "--fresh", "--master", "local[2]")
    assert (done.exit_code, len(ran)) == (0, 1)
    assert done.stderr.count("[unrepeatable-batch]") == 3
    assert done.stderr.splitlines()[-1] == f"5 findings; it runs all the same: see `stormline check {CLOCKS}`"


def test_submit_prints_nothing_where_there_is_nothing() -> None:
    assert call("submit", "examples.words", "--dry-run").stderr == ""


def plan_of(target: str) -> Plan:
    return compile_topology(load_target(target).topology)


def test_of_many_findings_a_run_prints_the_first(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "tests" / "checked" / "site-packages"))
    plan = plan_of("tests.checked.wrong.state_of_modules")
    number = len(check_plan(plan, "tests.checked.wrong.state_of_modules").findings)
    findings.print_findings(plan, "shop", "tests.checked.wrong.state_of_modules")
    printed = capsys.readouterr().err.splitlines()
    assert len(printed) == findings.SHOWN_MAX + 2
    assert [line.startswith("    ") for line in printed] == [False, True, *[False] * findings.SHOWN_MAX]
    assert printed[-1] == (
        f"{number} findings, the first 10 of them above; it runs all the same: see `stormline check shop`"
    )


def test_a_mistake_in_the_reading_stops_no_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(plan: Plan, module: str) -> None:
        raise RecursionError("too deep")

    monkeypatch.setattr("stormline.cli.rules.every.check_plan", fails)
    findings.print_findings(plan_of("examples.words"), "examples.words", "examples.words")
    assert capsys.readouterr().err == "not checked: RecursionError while reading (too deep); please report it\n"
