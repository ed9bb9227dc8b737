"""The committer's commits that do not end in time: they are not recorded, and what comes later waits."""

from __future__ import annotations

import threading

import pytest

from stormline.runtime.coordination import committer as module
from stormline.topology.attempt import TransactionAttempt
from tests.kits.committing import PATIENCE_SECS, Rig, Run
from tests.kits.components import eventually


def test_a_commit_that_ends_after_its_deadline_is_not_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CommitPhase", Run)
    rig, gate = Rig(timeout_secs=0.05), threading.Event()

    def waits(run: Run) -> None:
        gate.wait(PATIENCE_SECS)

    rig.scripts[1] = waits
    rig.add(1)
    eventually(lambda: rig.committer.overdue() == TransactionAttempt(1, 1))
    assert rig.committer.overdue() is None
    gate.set()
    failure = rig.await_ended(1)[0].failure
    assert failure is not None
    assert failure.message == "it ended after its deadline"
    rig.scripts.clear()
    rig.add(1, attempt=2)
    rig.await_ended(2)
    assert rig.env.trail == [("phase", "1:1"), ("phase", "1:2"), ("record", "1:2")]
    rig.committer.close()


def test_a_commit_that_is_being_recorded_is_not_overdue(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CommitPhase", Run)
    rig, begun = Rig(timeout_secs=0.01), threading.Event()

    def close_the_gate(run: Run) -> None:
        rig.store.gate.clear()
        begun.set()

    rig.scripts[1] = close_the_gate
    rig.add(1)
    assert begun.wait(PATIENCE_SECS)
    eventually(lambda: rig.committer.deadline() is None)
    assert not threading.Event().wait(0.05)
    assert rig.committer.overdue() is None
    rig.store.gate.set()
    assert rig.await_ended(1)[0].failure is None
    rig.committer.close()


def test_after_a_commit_that_hangs_nothing_begins_before_it_has_ended_and_it_is_told_of(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "CommitPhase", Run)
    rig, gate = Rig(timeout_secs=0.05), threading.Event()

    def hangs(run: Run) -> None:
        if run.attempt.attempt_id == 1:
            gate.wait(PATIENCE_SECS)

    rig.scripts[1] = hangs
    rig.add(1)
    eventually(lambda: rig.committer.overdue() is not None)
    assert rig.committer.hangs
    rig.add(1, attempt=2)

    def told() -> bool:
        rig.committer.tell_if_hung()
        return caplog.text.count("the commit of 1:1 has run for ") >= 2

    eventually(told)
    assert "all later transactions, wait for its end" in caplog.text
    assert "It is in the call that this run is in" in caplog.text
    assert ("phase", "1:2") not in rig.env.trail
    gate.set()
    rig.add(2)
    eventually(lambda: ("record", "2:1") in rig.env.trail)
    assert ("record", "1:2") in rig.env.trail
    assert ("record", "1:1") not in rig.env.trail
    rig.committer.close()


def test_a_commit_that_still_runs_when_the_topology_ends_is_not_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CommitPhase", Run)
    rig, begun, gate = Rig(), threading.Event(), threading.Event()

    def waits(run: Run) -> None:
        begun.set()
        gate.wait(PATIENCE_SECS)

    rig.scripts[1] = waits
    rig.add(1)
    assert begun.wait(PATIENCE_SECS)
    rig.committer.close()
    gate.set()
    assert rig.await_ended(1)[0].failure is not None
    assert rig.env.trail == [("phase", "1:1")]
