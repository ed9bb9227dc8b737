"""The coordinator by hand, as Storm's own test drives its; attempts and failures (law 3, attempts; law 4, failure)."""

from __future__ import annotations

import tracemalloc

import pytest

from stormline.runtime.coordination import coordinator
from stormline.runtime.coordination.commit_queue import Begin, CommitQueue
from stormline.runtime.coordination.coordinator import (
    ATTEMPTS_PER_EPOCH,
    Action,
    AwaitCommit,
    Committed,
    Event,
    Failed,
    GiveUp,
    Initialized,
    Process,
    Processed,
    Revoke,
)
from stormline.runtime.messages.wave import AttemptResult
from stormline.topology.attempt import TransactionAttempt

Said = list[tuple[object, ...]]


class Hand:
    """Drives coordinator and commit queue as loop and committer do; each call returns what is to be done by them.

    `next` does what the loop does where there is room and the spout is ready.
    """

    def __init__(self, pending_max: int, failures_max: int | None = None) -> None:
        self.state, _ = coordinator.start(0, {}, 1, pending_max, failures_max)
        self.commits = CommitQueue(0, 0)
        self.metadata = 10
        self.ready = True

    def next(self) -> Said:
        said: Said = []
        while self.ready and coordinator.has_room(self.state):
            said += self.step(Initialized(self.metadata))
        return said

    def step(self, event: Event) -> Said:
        self.state, actions = coordinator.step(self.state, event)
        for action in actions:
            if isinstance(action, AwaitCommit):
                self.commits.add(action.result)
            elif isinstance(action, Revoke):
                self.commits.revoke(action.txid)
        return shape(actions) + self.begun()

    def begun(self) -> Said:
        step = self.commits.next(connected=True, proof_secs=0.0)
        return [("commit", step.results[0].attempt.transaction_id)] if isinstance(step, Begin) else []

    def current(self, txid: int) -> TransactionAttempt:
        return self.state.active[txid].attempt

    def processed(self, txid: int) -> Said:
        return self.step(Processed(AttemptResult(self.current(txid))))

    def fail(self, txid: int, **more: bool) -> Said:
        running = self.commits.running
        if running is not None and running.last == self.current(txid):
            assert self.commits.finished(failed=True) is None
        return self.step(Failed(self.current(txid), "cause", **more))

    def committed(self, txid: int) -> Said:
        record = self.commits.finished(failed=False)
        assert record is not None
        assert record.attempt == self.current(txid)
        self.commits.recorded(written=True)
        return self.step(Committed(record.attempt)) + self.next()


def shape(actions: list[Action]) -> Said:
    """Return what is to be processed and given up: (what, txid, metadata)."""
    said: Said = []
    for action in actions:
        if isinstance(action, Process):
            said.append(("process", action.attempt.transaction_id, action.metadata))
        elif isinstance(action, GiveUp):
            said.append(("give up", action.attempt.transaction_id))
    return said


def test_the_steps_of_storms_own_test() -> None:
    hand = Hand(pending_max=4)
    assert hand.next() == [("process", n, 10) for n in (1, 2, 3, 4)]
    assert hand.next() == []
    before = {n: hand.current(n) for n in (1, 2, 3, 4)}
    assert hand.fail(2) == [("process", n, 10) for n in (2, 3, 4)]
    assert hand.current(1) == before[1]
    assert all(hand.current(n).attempt_id > before[n].attempt_id for n in (2, 3, 4))
    assert hand.processed(2) == []
    assert hand.processed(1) == [("commit", 1)]
    hand.metadata = 12
    assert hand.committed(1) == [("commit", 2), ("process", 5, 12)]
    hand.ready = False
    assert hand.committed(2) == []
    assert hand.fail(3) == [("process", 3, 10), ("process", 4, 10), ("process", 5, 12)]
    hand.ready = True
    assert hand.next() == [("process", 6, 12)]
    assert hand.processed(3) == [("commit", 3)]
    assert hand.processed(4) == []
    assert hand.fail(3) == [("process", 3, 10), ("process", 4, 10), ("process", 5, 12), ("process", 6, 12)]
    assert hand.processed(3) == [("commit", 3)]
    assert hand.processed(4) == []
    assert hand.next() == []
    assert hand.committed(3) == [("commit", 4), ("process", 7, 12)]


def test_whatever_belongs_to_an_attempt_that_is_not_current_changes_nothing() -> None:
    hand = Hand(pending_max=3)
    hand.next()
    old = {n: hand.current(n) for n in (1, 2, 3)}
    hand.fail(1)
    events: tuple[coordinator.Event, ...] = (
        Failed(old[2]),
        Committed(old[1]),
        *(Processed(AttemptResult(a)) for a in (old[1], TransactionAttempt(9, 1))),
    )
    for event in events:
        state, actions = coordinator.step(hand.state, event)
        assert (state, actions) == (hand.state, [])


def test_what_has_not_been_processed_or_is_not_next_cannot_be_committed() -> None:
    hand = Hand(pending_max=2)
    hand.next()
    for txid in (1, 2):
        with pytest.raises(AssertionError):
            hand.step(Committed(hand.current(txid)))
        hand.processed(2)


def test_processed_twice_commits_once() -> None:
    hand = Hand(pending_max=2)
    hand.next()
    assert hand.processed(1) == [("commit", 1)]
    assert hand.processed(1) == []


def test_attempt_ids_of_a_later_epoch_are_greater_than_all_of_an_earlier_one() -> None:
    hand = Hand(pending_max=1)
    hand.next()
    for _ in range(1000):
        hand.fail(1)
    state, actions = coordinator.start(0, {1: 10}, epoch=2, pending_max=1)
    assert shape(actions) == [("process", 1, 10)]
    assert state.active[1].attempt == TransactionAttempt(1, ATTEMPTS_PER_EPOCH + 1)
    assert state.active[1].attempt.attempt_id > hand.current(1).attempt_id


def test_a_start_takes_up_all_stored_batches_even_beyond_pending() -> None:
    state, actions = coordinator.start(7, {8: "a", 9: "b", 10: "c"}, epoch=3, pending_max=2)
    assert shape(actions) == [("process", 8, "a"), ("process", 9, "b"), ("process", 10, "c")]
    assert not coordinator.has_room(state)
    assert coordinator.next_txid(state) == 11


def test_a_batch_that_has_failed_as_often_as_it_may_is_given_up() -> None:
    hand = Hand(pending_max=2, failures_max=3)
    hand.next()
    hand.fail(2)
    hand.fail(1)
    hand.fail(2)
    _, actions = coordinator.step(hand.state, Failed(hand.current(2), "cause"))
    assert actions == [GiveUp(hand.current(2), 3, "cause")]


def test_failures_that_are_not_the_batchs_fault_do_not_count() -> None:
    hand = Hand(pending_max=1, failures_max=2)
    hand.next()
    for _ in range(5):
        assert hand.fail(1, counts=False) == [("process", 1, 10)]
    hand.fail(1)
    assert hand.fail(1) == [("give up", 1)]


def test_a_step_copies_little_of_ten_thousand_active_transactions() -> None:
    state, _ = coordinator.start(0, dict.fromkeys(range(1, 10_001)), epoch=1, pending_max=10_000)
    for txid in range(1, 10_001):
        state, _ = coordinator.step(state, Processed(AttemptResult(state.active[txid].attempt)))
    before, first = state, state.active[1].attempt
    tracemalloc.start()
    try:
        state, actions = coordinator.step(state, Committed(first))
        state, _ = coordinator.step(state, Initialized(None))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert actions == []
    assert (len(state.active), len(before.active)) == (10_000, 10_000)
    assert peak < 50_000, "a dict of all of them takes 300,000 bytes"
