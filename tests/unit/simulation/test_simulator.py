"""Whole histories: they repeat themselves, and where Stormline's own code is broken on purpose they break a law.

Laws by number, as docs/laws.md has them: law 5 (complete input).
"""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest

from stormline.runtime.commit.commit_phase import CommitTask
from stormline.runtime.processing.stage_runner import StageRunner
from tests.fault_matrix.recorded import ROOT
from tests.simulation import databases
from tests.simulation.campaign import failure_text
from tests.simulation.databases import Cell, Row, Token
from tests.simulation.simulator import simulate

pytestmark = pytest.mark.usefixtures("quiet")


def violation_in(seeds: int) -> str:
    return next((outcome.violation for seed in range(seeds) if (outcome := simulate(seed)).violation), "none")


def test_a_history_repeats_itself_to_the_bit() -> None:
    first, again, other = simulate(3), simulate(3), simulate(4)
    assert (first.checksum, first.history, first.faults) == (again.checksum, again.history, again.faults)
    assert first.checksum != other.checksum


def test_a_history_is_the_same_in_another_process() -> None:
    program = "from tests.simulation.simulator import simulate; print(simulate(3).checksum)"
    told = [
        subprocess.run(
            [sys.executable, "-c", program], env={**os.environ, "PYTHONHASHSEED": seed}, cwd=ROOT,
            capture_output=True, check=True, text=True, timeout=120,
        ).stdout
        for seed in ("1", "2")
    ]  # fmt: skip
    assert told == [f"{simulate(3).checksum}\n"] * 2


def test_a_violation_is_told_with_the_command_that_repeats_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(StageRunner, "_check_counts", lambda self: None)
    broken = next(outcome for seed in range(200) if (outcome := simulate(seed)).violation)
    text = failure_text(broken)
    assert f"seed {broken.seed} broke a law: {broken.violation}" in text
    assert f"python -m tests.simulation --seed {broken.seed}" in text


def test_without_faults_all_is_committed_in_few_steps() -> None:
    outcome = simulate(5, faults_on=False)
    assert outcome.violation is None
    assert outcome.txids > 0
    assert outcome.replays == 0
    assert outcome.faults.total() == 0


def equal_txid_only(cell: Cell, token: Token, rows: tuple[Row, ...]) -> None:
    """As Storm's TransactionalMap: an old txid is applied again."""
    if cell.txid != token.txid:
        cell.value, cell.txid = cell.value + rows, token.txid


@pytest.mark.proof
def test_a_database_that_compares_txids_for_equality_only_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(databases.RULES, "keyed", equal_txid_only)
    assert "keyed" in violation_in(2000)


def test_a_stage_that_does_not_count_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(StageRunner, "_check_counts", lambda self: None)
    assert violation_in(200).startswith("law")


def test_a_commit_that_skips_an_effect_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    finish = CommitTask._finish

    def skip(self: Any) -> None:
        if self._planned.id != "ledger":
            finish(self)

    monkeypatch.setattr(CommitTask, "_finish", skip)
    assert violation_in(20).startswith("law 5")


def test_a_topology_that_makes_no_progress_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.simulation.simulator.CALM_SECS", 5.0)
    monkeypatch.setattr("tests.simulation.simulator.Simulator._start", lambda self: None)
    assert simulate(1).violation is not None
    assert "liveness: 0 is committed" in str(simulate(1).violation)
