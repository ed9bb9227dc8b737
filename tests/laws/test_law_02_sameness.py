"""Law 2 (sameness): once a commit effect may have happened, the batch is the same for ever. See docs/laws.md."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import pytest

from stormline import (
    BaseOpaquePartitionedTransactionalSpout,
    FailedException,
    Fields,
    IOpaqueCoordinator,
    IOpaqueEmitter,
    TransactionalTopologyBuilder,
    TransactionAttempt,
)
from stormline.runtime.coordination.batch_store import BATCHES
from stormline.runtime.errors import TopologyFailed
from stormline.runtime.state.memory_store import MemoryStateServer, MemoryStateStore
from stormline.runtime.state.rotating_state import RotatingState
from stormline.runtime.state.state_store import Op, Put
from tests.laws.kit import ID, TIMEOUT_SECS, Commits, running, stored, topology_of

OTHER_ROWS = [7, 8, 9]


class Coordinator(IOpaqueCoordinator):
    def __init__(self, source: Source) -> None:
        self.source = source

    def is_ready(self) -> bool:
        return self.source.begun < self.source.batches


class Emitter(IOpaqueEmitter):
    """Emits all rows there are from where the batch before ended, as they are now."""

    def __init__(self, source: Source) -> None:
        self.source = source

    def num_partitions(self) -> int:
        return 1

    def emit_partition_batch(self, attempt: TransactionAttempt, collector: Any, partition: int, last: Any) -> int:
        self.source.begun = max(self.source.begun, attempt.transaction_id)
        begin = last or 0
        rows = self.source.rows[begin:]
        self.source.emitted.append((attempt.transaction_id, rows))
        for row in rows:
            collector.emit([attempt, row])
        if rows == OTHER_ROWS:
            self.source.gave_others.set()
        return begin + len(rows)


class Source(BaseOpaquePartitionedTransactionalSpout):
    """An opaque spout whose source changes under its hands."""

    def __init__(self, rows: list[int], batches: int) -> None:
        self.rows, self.batches, self.begun = rows, batches, 0
        self.emitted: list[tuple[int, list[int]]] = []
        self.gave_others = threading.Event()

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("id", "number"))

    def get_coordinator(self, conf: Any, context: Any) -> Coordinator:
        return Coordinator(self)

    def get_emitter(self, conf: Any, context: Any) -> Emitter:
        return Emitter(self)


def test_what_comes_after_the_first_effect_is_the_same_batch_whatever_the_source_has_by_then() -> None:
    source = Source([1, 2, 3], batches=1)
    effects: list[list[int]] = []

    def commit(attempt: TransactionAttempt, rows: list[int]) -> None:
        effects.append(rows)
        if len(effects) == 1:
            source.rows = [1, 2, 3, 4, 5]
            raise FailedException("after an effect")

    with running(topology_of(source, commit), topology__max__spout__pending=1) as handle:
        handle.await_committed(1, TIMEOUT_SECS)
    assert source.emitted[-1] == (1, [1, 2, 3, 4, 5]), "the source had more when it was asked again"
    assert effects == [[1, 2, 3], [1, 2, 3]]


def test_rows_that_come_otherwise_after_an_effect_are_waited_for() -> None:
    source = Source([1, 2, 3], batches=1)
    effects: list[list[int]] = []

    def commit(attempt: TransactionAttempt, rows: list[int]) -> None:
        effects.append(rows)
        if len(effects) == 1:
            source.rows = list(OTHER_ROWS)
            raise FailedException("after an effect")

    with running(topology_of(source, commit), topology__max__spout__pending=1) as handle:
        assert source.gave_others.wait(TIMEOUT_SECS)
        assert handle.txid_committed == 0
        source.rows = [1, 2, 3]
        handle.await_committed(1, TIMEOUT_SECS)
    assert effects == [[1, 2, 3], [1, 2, 3]]


def test_no_commit_begins_before_all_that_defines_its_batch_is_durable(monkeypatch: pytest.MonkeyPatch) -> None:
    server = MemoryStateServer()
    began = threading.Event()
    found: list[Any] = []
    write = MemoryStateStore.write

    def slow_write(store: MemoryStateStore, ops: Sequence[Op]) -> None:
        if any(isinstance(op, Put) and isinstance(op.value, dict) and op.value.get("fixed") for op in ops):
            assert not began.wait(0.2), "the commit began while its batch was being stored"
        write(store, ops)

    def commit(attempt: TransactionAttempt, rows: list[int]) -> None:
        began.set()
        path = RotatingState(MemoryStateStore.open(MemoryStateServer(), ID), BATCHES).path(attempt.transaction_id)
        found.append(stored(server, path))

    monkeypatch.setattr(MemoryStateStore, "write", slow_write)
    with running(topology_of(Source([1, 2, 3], batches=1), commit), server, topology__max__spout__pending=1) as handle:
        handle.await_committed(1, TIMEOUT_SECS)
    (batch,) = found
    assert (batch["fixed"], batch["rows"]) == (True, 3)
    assert batch["commit_id"] > 0
    ((partition, position, rows, checksum, gave),) = batch["partitions"]
    assert (partition, position, rows, gave) == (0, 3, 3, True)
    assert checksum > 0


def test_the_next_driver_gives_the_batch_that_the_dead_one_had_begun_to_commit_under_the_same_id() -> None:
    server = MemoryStateServer()
    source = Source([1, 2, 3], batches=1)
    effects: list[tuple[int, list[int]]] = []

    class Dies(Commits):
        def prepare(self, conf: Any, context: Any, collector: Any, attempt: TransactionAttempt) -> None:
            super().prepare(conf, context, collector, attempt)
            self.commit_id = context.commit_id(attempt)

        def finish_batch(self) -> None:
            effects.append((self.commit_id, self.rows))
            if len(effects) == 1:
                raise ZeroDivisionError("the driver ends here, after an effect")

    builder = TransactionalTopologyBuilder(ID, "spout", source)
    builder.set_bolt("dies", Dies()).global_grouping("spout")
    with (
        running(builder.build_topology(), server, topology__max__spout__pending=1) as handle,
        pytest.raises(TopologyFailed, match="the driver ends here"),
    ):
        handle.await_committed(1, TIMEOUT_SECS)
    source.rows = [1, 2, 3, 4, 5]
    with running(builder.build_topology(), server, topology__max__spout__pending=1) as handle:
        handle.await_committed(1, TIMEOUT_SECS)
    assert source.emitted[-1] == (1, [1, 2, 3, 4, 5])
    assert [rows for _, rows in effects] == [[1, 2, 3], [1, 2, 3]]
    assert effects[0][0] == effects[1][0] > 0
