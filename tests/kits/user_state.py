"""Components that keep state of their own beside the topology's, as Storm's do."""

from __future__ import annotations

from typing import Any

from stormline import (
    BaseTransactionalBolt,
    Config,
    Fields,
    ICommitter,
    ITransactionalSpout,
    RotatingTransactionalState,
    TransactionalState,
    TransactionalTopologyBuilder,
    TransactionAttempt,
)
from tests.kits.components import EVENTS, NO_FAULT, Fault

ROWS = 3
ID = Config.TOPOLOGY_TRANSACTIONAL_ID


class PositionsOfStorm(ITransactionalSpout):
    """Keeps its positions as Storm's own executor of partitioned spouts does: each partition's in a rotating state."""

    def __init__(self, batches: int) -> None:
        self.batches = batches
        self.confs: list[Any] = []
        self.emitted: list[Any] = []

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("tx", "value"))

    def get_coordinator(self, conf: Any, context: Any) -> Any:
        return CoordinatorOfStorm(self, conf)

    def get_emitter(self, conf: Any, context: Any) -> Any:
        return EmitterOfStorm(self, conf, context)


class CoordinatorOfStorm:
    def __init__(self, spout: PositionsOfStorm, conf: Any) -> None:
        spout.confs.append(conf)
        self.spout = spout
        self.state = TransactionalState.new_coordinator_state(conf, conf[ID], {})

    def is_ready(self) -> bool:
        return (self.state.get_data("current/txid") or 0) < self.spout.batches

    def initialize_transaction(self, txid: int, prev_metadata: Any) -> int:
        self.state.set_data("current/txid", txid)
        return 2

    def close(self) -> None:
        self.state.close()


class EmitterOfStorm:
    def __init__(self, spout: PositionsOfStorm, conf: Any, context: Any) -> None:
        spout.confs.append(conf)
        self.spout = spout
        self.state = TransactionalState.new_user_state(dict(conf), conf[ID], spout.get_component_configuration())
        self.index = context.this_task_index
        self.tasks = len(context.component_tasks(context.this_component_id))
        self.partitions: dict[int, RotatingTransactionalState] = {}

    def emit_batch(self, attempt: TransactionAttempt, metadata: int, collector: Any) -> None:
        def emit_new(txid: int, last: Any) -> Any:
            return self.emit("new", attempt, collector, partition, [(last or [0, 0])[1], (last or [0, 0])[1] + ROWS])

        for partition in range(self.index, metadata, self.tasks):
            if partition not in self.partitions:
                self.partitions[partition] = RotatingTransactionalState(self.state, f"{partition}")
            stored = self.partitions[partition].get_state_or_create(attempt.transaction_id, emit_new)
            if stored is not None:
                self.emit("again", attempt, collector, partition, stored)

    def emit(self, how: str, attempt: TransactionAttempt, collector: Any, partition: int, position: Any) -> Any:
        self.spout.emitted.append((how, attempt.transaction_id, partition))
        for offset in range(*position):
            collector.emit([attempt, (partition, offset)])
        return position

    def cleanup_before(self, txid: int) -> None:
        for state in self.partitions.values():
            state.cleanup_before(txid)

    def close(self) -> None:
        self.state.close()


def topology(spout: Any, *bolts: tuple[str, Any], id: str = "topo") -> Any:
    builder = TransactionalTopologyBuilder(id, "spout", spout, 2)
    for name, bolt in bolts:
        builder.set_bolt(name, bolt).shuffle_grouping("spout")
    return builder.build_topology()


class Notes(BaseTransactionalBolt, ICommitter):
    """Keeps the number of tuples so far in the topology's own state, with the txid beside it."""

    def __init__(self, waits: bool = False, fault: Fault = NO_FAULT) -> None:
        self.waits = waits
        self.fault = fault

    def declare_output_fields(self, declarer: Any) -> None: ...

    def prepare(self, conf: Any, context: Any, collector: Any, attempt: TransactionAttempt) -> None:
        self.state = TransactionalState.new_user_state(conf, conf[ID])
        self.attempt, self.txid, self.count = attempt, attempt.transaction_id, 0

    def execute(self, tup: Any) -> None:
        self.count += 1

    def finish_batch(self) -> None:
        count, txid = self.state.get_data("notes/count") or (0, 0)
        if self.waits:
            EVENTS["begun"].set()
            assert EVENTS["go on"].wait(20)
        if txid < self.txid:
            self.state.set_data("notes/count", (count + self.count, self.txid))
        self.fault.strike("after", self.attempt)
