"""The coordinator by hand, as Storm's own test drives its; attempts and failures (law 3, attempts; law 4, failure)."""

from __future__ import annotations

import tracemalloc

from stormline.runtime.coordination import coordinator
from stormline.runtime.coordination.coordinator import (
    ATTEMPTS_PER_EPOCH,
    Action,
    Commit,
    Committed,
    Event,
    Failed,
    GiveUp,
    Initialized,
    Process,
    Processed,
)
from stormline.topology.attempt import TransactionAttempt


class Hand:
    """Drives a coordinator: `next` does what the loop does where there is room and the spout is ready."""

    def __init__(self, pending_max: int, failures_max: int | None = None, epoch: int = 1) -> None:
        self.state, _ = coordinator.start(0, {}, epoch, pending_max, failures_max)
        self.metadata = 10
        self.ready = True

    def next(self) -> list[Action]:
        actions: list[Action] = []
        while self.ready and coordinator.has_room(self.state):
            actions += self._step(Initialized(self.metadata))
        return actions

    def _step(self, event: Event) -> list[Action]:
        self.state, actions = coordinator.step(self.state, event)
        return actions

    def current(self, txid: int) -> TransactionAttempt:
        return self.state.active[txid].attempt

    def processed(self, txid: int) -> list[Action]:
        return self._step(Processed(self.current(txid)))

    def fail(self, txid: int, **more: bool) -> list[Action]:
        return self._step(Failed(self.current(txid), "cause", **more))

    def committed(self, txid: int) -> list[Action]:
        return self._step(Committed(self.current(txid))) + self.next()


def shape(actions: list[Action]) -> list[tuple[object, ...]]:
    """Return actions as (what, txid, metadata)."""
    return [
        ("process", a.attempt.transaction_id, a.metadata)
        if isinstance(a, Process)
        else ("commit" if isinstance(a, Commit) else "give up", a.attempt.transaction_id)
        for a in actions
    ]


def test_the_steps_of_storms_own_test() -> None:
    hand = Hand(pending_max=4)
    assert shape(hand.next()) == [("process", n, 10) for n in (1, 2, 3, 4)]
    assert hand.next() == []
    before = {n: hand.current(n) for n in (1, 2, 3, 4)}
    assert shape(hand.fail(2)) == [("process", n, 10) for n in (2, 3, 4)]
    assert hand.current(1) == before[1]
    assert all(hand.current(n).attempt_id > before[n].attempt_id for n in (2, 3, 4))
    assert hand.processed(2) == []
    assert shape(hand.processed(1)) == [("commit", 1)]
    hand.metadata = 12
    assert shape(hand.committed(1)) == [("commit", 2), ("process", 5, 12)]
    hand.ready = False
    assert hand.committed(2) == []
    assert shape(hand.fail(3)) == [("process", 3, 10), ("process", 4, 10), ("process", 5, 12)]
    hand.ready = True
    assert shape(hand.next()) == [("process", 6, 12)]
    assert shape(hand.processed(3)) == [("commit", 3)]
    assert hand.processed(4) == []
    assert shape(hand.fail(3)) == [("process", 3, 10), ("process", 4, 10), ("process", 5, 12), ("process", 6, 12)]
    assert shape(hand.processed(3)) == [("commit", 3)]
    assert hand.processed(4) == []
    assert hand.next() == []
    assert shape(hand.committed(3)) == [("commit", 4), ("process", 7, 12)]


def test_whatever_belongs_to_an_attempt_that_is_not_current_changes_nothing() -> None:
    hand = Hand(pending_max=3)
    hand.next()
    old = {n: hand.current(n) for n in (1, 2, 3)}
    hand.fail(1)
    for event in (Processed(old[1]), Failed(old[2]), Committed(old[1]), Processed(TransactionAttempt(9, 1))):
        state, actions = coordinator.step(hand.state, event)
        assert (state, actions) == (hand.state, [])


def test_an_attempt_that_was_not_told_to_commit_is_not_committed() -> None:
    hand = Hand(pending_max=2)
    hand.next()
    assert hand._step(Committed(hand.current(1))) == []
    assert hand.state.committed == 0
    hand.processed(2)
    assert hand._step(Committed(hand.current(2))) == []
    assert hand.state.committed == 0


def test_processed_twice_commits_once() -> None:
    hand = Hand(pending_max=2)
    hand.next()
    assert shape(hand.processed(1)) == [("commit", 1)]
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
    (action,) = hand.fail(2)
    assert isinstance(action, GiveUp)
    assert (action.attempt.transaction_id, action.failures, action.cause) == (2, 3, "cause")


def test_failures_that_are_not_the_batchs_fault_do_not_count() -> None:
    hand = Hand(pending_max=1, failures_max=2)
    hand.next()
    for _ in range(5):
        assert shape(hand.fail(1, counts=False)) == [("process", 1, 10)]
    hand.fail(1)
    assert shape(hand.fail(1)) == [("give up", 1)]


def test_a_step_copies_little_of_ten_thousand_active_transactions() -> None:
    state, _ = coordinator.start(0, dict.fromkeys(range(1, 10_001)), epoch=1, pending_max=10_000)
    for txid in range(1, 10_001):
        state, _ = coordinator.step(state, Processed(state.active[txid].attempt))
    before, first = state, state.active[1].attempt
    tracemalloc.start()
    try:
        state, actions = coordinator.step(state, Committed(first))
        state, _ = coordinator.step(state, Initialized(None))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert shape(actions) == [("commit", 2)]
    assert (len(state.active), len(before.active)) == (10_000, 10_000)
    assert peak < 50_000, "a dict of all of them takes 300,000 bytes"
