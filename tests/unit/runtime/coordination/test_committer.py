"""The committer: in which order it begins and records commits, on a store and commit phases that fail on order."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from stormline.runtime.coordination import committer as module
from stormline.runtime.coordination.commit_queue import PROOF_SECS, PROOF_TRIES
from stormline.runtime.errors import SessionLost
from stormline.runtime.messages.wave import AttemptResult, Failure
from stormline.runtime.world.world import REAL
from tests.kits.committing import Rig, Run
from tests.kits.components import eventually


@pytest.fixture
def rig(monkeypatch: pytest.MonkeyPatch) -> Iterator[Rig]:
    monkeypatch.setattr(module, "CommitPhase", Run)
    made = Rig()
    yield made
    made.committer.close()


def test_each_commit_is_recorded_before_the_next_one_begins(rig: Rig) -> None:
    rig.add(1, 2, 3)
    assert [str(ended.attempt) for ended in rig.await_ended(3)] == ["1:1", "2:1", "3:1"]
    assert rig.env.trail == [(what, f"{txid}:1") for txid in (1, 2, 3) for what in ("phase", "record")]
    assert rig.signals >= 1
    assert not rig.committer.busy
    assert (rig.committer.txid_begun, rig.committer.txid_committed) == (3, 3)


def test_a_commit_waits_for_its_turn(rig: Rig) -> None:
    rig.add(2)
    rig.committer.revoke(1)
    rig.add(1)
    rig.await_ended(1)
    assert rig.env.trail == [("phase", "1:1"), ("record", "1:1")]


def test_after_a_failed_commit_nothing_begins_but_another_attempt_of_it(rig: Rig) -> None:
    failure = Failure("b", 3, "no")
    rig.scripts[2] = lambda run: failure if run.attempt.attempt_id == 1 else None
    rig.add(1, 2, 3)
    ended = rig.await_ended(2)
    assert [e.failure for e in ended] == [None, failure]
    assert rig.committer.busy
    rig.committer.revoke(2)
    assert not rig.committer.busy
    assert (rig.committer.txid_begun, rig.committer.txid_committed) == (2, 1)
    rig.add(2, 3, attempt=2)
    rig.await_ended(4)
    assert rig.env.trail[-4:] == [("phase", "2:2"), ("record", "2:2"), ("phase", "3:2"), ("record", "3:2")]
    assert ("record", "2:1") not in rig.env.trail


def test_commits_from_a_txid_on_are_taken_back_and_earlier_ones_are_not(rig: Rig) -> None:
    rig.store.gate.clear()
    rig.add(1, 2, 3, 4)
    rig.committer.revoke(3)
    rig.store.gate.set()
    rig.await_ended(2)
    assert [name for what, name in rig.env.trail if what == "phase"] == ["1:1", "2:1"]


def test_after_a_stop_no_further_commit_begins(rig: Rig) -> None:
    rig.store.gate.clear()
    rig.add(1, 2)
    rig.committer.stop()
    rig.add(3)
    rig.store.gate.set()
    eventually(lambda: rig.committer.take_ended() is not None and not rig.committer.busy)
    assert [name for what, name in rig.env.trail if what == "phase"] in ([], ["1:1"])


def test_while_the_connection_is_suspended_no_commit_begins_and_it_can_be_taken_back(rig: Rig) -> None:
    rig.store.up = False
    rig.add(1)
    assert not threading.Event().wait(3 * module.LOOK_SECS)
    assert rig.env.trail == []
    rig.committer.revoke(1)
    rig.store.up = True
    rig.add(1, attempt=2)
    rig.await_ended(1)
    assert rig.env.trail == [("phase", "1:2"), ("record", "1:2")]


def test_a_machine_that_slept_proves_its_ownership_before_the_next_commit(rig: Rig) -> None:
    awake = REAL.passed_secs()
    rig.env.passed_secs = lambda: awake
    rig.add(1)
    eventually(lambda: ("record", "1:1") in rig.env.trail)
    assert rig.await_ended(1)[0].failure is None
    rig.store.error = SessionLost("taken over meanwhile")
    rig.env.passed_secs = lambda: awake + 3600
    rig.add(2)
    assert isinstance(rig.await_ended(2)[1].error, SessionLost)
    assert ("phase", "2:1") not in rig.env.trail


def test_a_driver_that_slept_while_it_proved_its_ownership_proves_it_again(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1000.0]
    rig.env.passed_secs = lambda: now[0]
    write = rig.store.write
    asked = []

    def slept(ops: Any) -> None:
        asked.append(ops)
        write(ops)
        now[0] += 3600
        rig.store.error = SessionLost("taken over meanwhile")

    monkeypatch.setattr(rig.store, "write", slept)
    rig.add(1)
    assert isinstance(rig.await_ended(1)[0].error, SessionLost)
    assert asked == [[], []]
    assert rig.env.trail == []


def test_where_every_proof_takes_too_long_commits_go_on(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    rig.env.passed_secs = lambda: now[0]
    write = rig.store.write
    asked = []

    def slow(ops: Any) -> None:
        asked.append(ops)
        now[0] += 2 * PROOF_SECS
        write(ops)

    monkeypatch.setattr(rig.store, "write", slow)
    rig.add(1)
    assert rig.await_ended(1)[0].error is None
    assert asked[:-1] == [[]] * PROOF_TRIES
    assert rig.env.trail == [("phase", "1:1"), ("record", "1:1")]


def test_a_driver_whose_ownership_cannot_be_proved_begins_no_commit(rig: Rig) -> None:
    rig.store.error = SessionLost("the session has ended")
    rig.add(1, 2)
    assert rig.await_ended(1)[0].error is rig.store.error
    assert rig.env.trail == []
    assert not rig.committer.busy


def test_a_record_that_cannot_be_written_ends_all_commits(rig: Rig) -> None:
    def lose(run: Run) -> None:
        rig.store.error = SessionLost("the session has ended")

    rig.scripts[1] = lose
    rig.add(1, 2)
    ended = rig.await_ended(1)
    assert (ended[0].failure, ended[0].error) == (None, rig.store.error)
    assert rig.env.trail == [("phase", "1:1")]


def test_an_error_of_our_own_is_a_fatal_failure(rig: Rig) -> None:
    def raises(run: Run) -> None:
        raise RuntimeError("a bug of ours")

    rig.scripts[1] = raises
    rig.add(1)
    failure = rig.await_ended(1)[0].failure
    assert failure is not None
    assert failure.fatal
    assert "a bug of ours" in failure.traceback


def test_bolts_that_cannot_be_made_end_all_commits_with_the_error(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(env: Any, result: AttemptResult, engine: Any) -> Run:
        raise TypeError("cannot be copied")

    monkeypatch.setattr(module, "CommitPhase", fails)
    rig.add(1, 2)
    error = rig.await_ended(1)[0].error
    assert isinstance(error, TypeError)
    assert rig.env.trail == []
    assert not rig.committer.busy


def test_signals_are_fewer_than_commits_that_follow_one_another(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SIGNAL_SECS", 60.0)
    rig.store.gate.clear()
    rig.add(*range(1, 101))
    rig.store.gate.set()
    rig.await_ended(100)
    assert rig.signals <= 2  # the first one, and that nothing is left
