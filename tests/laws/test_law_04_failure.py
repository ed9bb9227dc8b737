"""Law 4 (failure): an attempt that fails takes the later ones with it, and leaves the earlier ones alone."""

from __future__ import annotations

from typing import Any

from stormline import BaseTransactionalSpout, Fields, ITransactionalCoordinator, ITransactionalEmitter
from stormline.runtime.coordination import coordinator
from stormline.runtime.coordination.coordinator import Failed, Initialized, Process
from tests.laws.kit import TIMEOUT_SECS, fail_once, running, topology_of


def test_the_failed_one_and_all_later_ones_get_new_attempts_with_their_metadata_and_earlier_ones_do_not() -> None:
    state, _ = coordinator.start(0, {}, 4, 1)
    for metadata in "abcd":
        state, _ = coordinator.step(state, Initialized(metadata))
    before = dict(state.active.items())
    after, actions = coordinator.step(state, Failed(before[2].attempt))
    assert after.active[1] == before[1]
    assert [(a.attempt.transaction_id, a.metadata) for a in actions if isinstance(a, Process)] == [
        (2, "b"),
        (3, "c"),
        (4, "d"),
    ]
    for txid in (2, 3, 4):
        assert after.active[txid].attempt.attempt_id > before[txid].attempt.attempt_id
        assert after.active[txid].metadata == before[txid].metadata


class Numbered(BaseTransactionalSpout):
    """Emits its metadata, which is another one each time that the coordinator is asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, int]] = []
        self.emitted: list[tuple[int, int, int]] = []

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("id", "number"))

    def get_coordinator(self, conf: Any, context: Any) -> ITransactionalCoordinator:
        return Coordinator(self)

    def get_emitter(self, conf: Any, context: Any) -> ITransactionalEmitter:
        return Emitter(self)


class Coordinator(ITransactionalCoordinator):
    def __init__(self, spout: Numbered) -> None:
        self.spout = spout

    def is_ready(self) -> bool:
        return len(self.spout.asked) < 12

    def initialize_transaction(self, txid: int, prev_metadata: Any) -> int:
        self.spout.asked.append((txid, 100 + len(self.spout.asked)))
        return self.spout.asked[-1][1]


class Emitter(ITransactionalEmitter):
    def __init__(self, spout: Numbered) -> None:
        self.spout = spout

    def emit_batch(self, attempt: Any, metadata: Any, collector: Any) -> None:
        self.spout.emitted.append((attempt.transaction_id, attempt.attempt_id, metadata))
        collector.emit([attempt, metadata])

    def cleanup_before(self, txid: int) -> None:
        """Keep nothing."""


def test_whatever_fails_each_transaction_has_the_metadata_that_was_stored_for_it() -> None:
    spout = Numbered()
    strike = fail_once(1, 3, 4, 9)
    committed: list[tuple[int, list[int]]] = []

    def commit(attempt: Any, rows: list[int]) -> None:
        strike(attempt)
        committed.append((attempt.transaction_id, rows))

    with running(topology_of(spout, commit)) as handle:
        handle.await_committed(12, TIMEOUT_SECS)
    assert [txid for txid, _ in spout.asked] == list(range(1, 13)), "asked once for each"
    assert {(txid, metadata) for txid, _, metadata in spout.emitted} == set(spout.asked)
    assert len(spout.emitted) > 12, "some came again"
    assert committed == [(txid, [metadata]) for txid, metadata in spout.asked]
