"""`python -m tests.suite`, with parts as small as can be."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.suite.parts import ROOT

# As python -m tests.suite, with other parts.
PROGRAM = """
import sys
from tests.suite import __main__ as suite
from tests.suite.parts import Part
suite.files = lambda parts: {part: part.paths for part in parts}
parts = tuple(Part(name, (path,), in_real_time=True) for name, path in zip("ab", sys.argv[2:4]))
suite.SUITES = {"test": (parts, "not proof")}
del sys.argv[2:4]
sys.exit(suite.main())
"""
FAILS = "def test_fails() -> None:\n    assert 1 == 2, 'as was to be shown'\n"
FAILS_ONCE = """
from pathlib import Path

RAN = Path(__file__).with_name("ran")

def test_passes() -> None:
    assert not RAN.exists(), "run once more, though it had passed"

def test_fails_once() -> None:
    before = RAN.exists()
    RAN.touch()
    assert before, "as was to be shown"

"""
PASSES = "def test_passes() -> None: ...\n"
SLEEPS = "import time\n\ndef test_sleeps() -> None:\n    print('sleeps', flush=True)\n    time.sleep(600)\n"


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # they take a second of each run, for nothing here
    paths = []
    for name, text in (("passes", PASSES), ("fails", FAILS)):
        paths.append(str(tmp_path / f"test_{name}.py"))
        Path(paths[-1]).write_text(text)
    return [sys.executable, "-c", PROGRAM, "test", *paths]


def test_a_failure_is_shown_whole_and_makes_it_fail(program: list[str]) -> None:
    done = subprocess.run(program, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 1, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].startswith("test: 2 parts, ")
    assert any(line.startswith("ok     a: 1 passed, ") for line in lines)
    assert any(line.startswith("FAILED b: 1 failure, ") for line in lines)
    assert "E       AssertionError: as was to be shown" in lines
    assert lines[-1].startswith("FAILED: b; logs are in ")


def test_a_few_that_pass_when_they_are_run_once_more_are_told_of_and_do_not_make_it_fail(
    program: list[str], tmp_path: Path
) -> None:
    (tmp_path / "test_fails.py").write_text(FAILS_ONCE)
    done = subprocess.run(program, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout
    *lines, told = done.stdout.splitlines()
    assert any(line.startswith("FAILED b: 1 passed, 1 failure, ") for line in lines)
    assert told.startswith("UNSTABLE: ")
    assert "::test_fails_once failed, and passed when it was run once more: AssertionError: as was to be shown" in told


def test_where_many_fail_none_is_run_once_more(program: list[str], tmp_path: Path) -> None:
    many = FAILS_ONCE + "".join(f"def test_{name}() -> None:\n    assert False\n\n" for name in "abc")
    (tmp_path / "test_fails.py").write_text(many)
    done = subprocess.run(program, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 1
    assert "UNSTABLE" not in done.stdout
    assert done.stdout.count("short test summary info") == 1


def test_ctrl_c_ends_what_runs(program: list[str], tmp_path: Path) -> None:
    (tmp_path / "test_passes.py").write_text(SLEEPS)
    with subprocess.Popen(program, cwd=ROOT, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        for line in running.stdout:
            if line.startswith("FAILED b"):
                break
        running.send_signal(signal.SIGINT)
        rest = running.stdout.read()
    assert running.returncode == 130
    assert rest.startswith("stopped; logs are in ")


def test_what_is_not_done_in_time_is_named_and_makes_it_fail(program: list[str], tmp_path: Path) -> None:
    (tmp_path / "test_passes.py").write_text(SLEEPS)
    done = subprocess.run([*program, "--within", "1"], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 1, done.stderr
    assert any(
        line.startswith("FAILED a: ") and " ended: the 1 s for all " in line for line in done.stdout.splitlines()
    )
    assert " a" in done.stdout.splitlines()[-1].partition("FAILED:")[2], done.stdout
