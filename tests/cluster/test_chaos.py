"""Real faults against a real cluster: see tests/chaos. `make chaos FAULTS=1000` runs more of them."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
RUN_SECS = 900.0
END_SECS = 60.0


# There may be nobody to kill at the moment, so a few faults fewer may be done.
@pytest.mark.parametrize(
    ("faults", "seed", "done_min", "topologies", "tuples"),
    # The 8 of this seed: driver, executor, PostgreSQL and Redis die, and few of them take long. Among 40 is each kind.
    [(8, 107239, 5, 2, 100_000), pytest.param(40, 7, 32, 5, 500_000, marks=pytest.mark.proof)],
)
def test_after_real_faults_each_of_many_tuples_counts_once(
    faults: int, seed: int, done_min: int, topologies: int, tuples: int, needs_postgresql: None, tmp_path: Path
) -> None:
    command = [sys.executable, "-m", "tests.chaos", "--faults", str(faults), "--seed", str(seed)]
    command += ["--tuples", str(tuples)]
    with subprocess.Popen(
        [*command, "--keep", str(tmp_path / "chaos")], cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True,
    ) as run:  # fmt: skip
        try:
            output, _ = run.communicate(timeout=RUN_SECS)
        except subprocess.TimeoutExpired:
            run.send_signal(signal.SIGTERM)
            output, _ = run.communicate(timeout=END_SECS)
    print(output)
    assert run.returncode == 0, output[-6000:]
    assert "verdict: every tuple counts once" in output
    told = re.search(r"(\d+) faults in \d+ s, one each [\d.]+ s; ([\d,]+) tuples in", output)
    assert told is not None
    assert int(told[1]) >= done_min
    assert int(told[2].replace(",", "")) >= topologies * tuples
    groups = re.search(r"(\d+) groups of transactions", output)
    assert (groups is not None and int(groups[1]) > 0) == (topologies > 2), "two are on two stores each, others on one"
