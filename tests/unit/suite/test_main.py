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
suite.SUITES = {"test": (tuple(Part(name, (path,)) for name, path in zip("ab", sys.argv[2:])), "not proof")}
del sys.argv[2:]
sys.exit(suite.main())
"""
FAILS = "def test_fails() -> None:\n    assert 1 == 2, 'as was to be shown'\n"
PASSES = "def test_passes() -> None: ...\n"
SLEEPS = "import time\n\ndef test_sleeps() -> None:\n    print('sleeps', flush=True)\n    time.sleep(600)\n"


@pytest.fixture
def program(tmp_path: Path) -> list[str]:
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
