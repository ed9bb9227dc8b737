"""Committers that send each other all that can travel between processes, and note what came and what they know."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow

from stormline import ArrowTransactionalBolt, Fields, ICommitter
from tests.kits.placement import FencedStore, Keep


@dataclass(frozen=True)
class Pair:
    """A class that crosses only once it is registered."""

    left: int
    right: Any


class Sends(Keep):
    """Emits over each kind of stream."""

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("tx", "value"))
        declarer.declare_stream("spread", Fields("tx", "value"))
        declarer.declare_stream("straight", Fields("tx", "value"), direct=True)

    def finish_batch(self) -> None:
        last = self.context.component_tasks("to")[-1]
        self.collector.emit([self.attempt, Pair(1, (2,))])
        self.collector.emit_direct(last, [self.attempt, 3], "straight")
        self.collector.emit([self.attempt, 7], "spread")


class SendsColumns(ArrowTransactionalBolt, ICommitter):
    """Takes record batches, keeps them for the commit, and emits one there."""

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("tx", "value"))

    def prepare(self, conf: Any, context: Any, collector: Any, batch_id: Any) -> None:
        self.collector = collector
        self.values: list[int] = []

    def execute_batch(self, batch: Any) -> None:
        self.values += batch.column("value").to_pylist()

    def finish_batch(self) -> None:
        if self.values:
            self.collector.emit_batch(pyarrow.RecordBatch.from_pydict({"value": [10 * n for n in self.values]}))


class Takes(Keep):
    """Notes what it gets."""

    def execute(self, tup: Any) -> None:
        self.values.append(f"{tup.source_stream_id} {tup[1]} {tup.source_component}")

    def finish_batch(self) -> None:
        for value in self.values:
            who = f"to {self.context.this_task_index}"
            FencedStore(self.path).note(self.attempt.transaction_id, who, value)


class Knows(Keep):
    """Notes what its context says."""

    def finish_batch(self) -> None:
        context = self.context
        context.set_task_data("kept", context.this_task_index)
        self.collector.report_error(ValueError("seen, and gone on"))
        text = f"epoch {context.epoch}, task {context.this_task_index} of {context.component_tasks('know')}"
        text += f", mine {self.conf['mine']}, kept {context.get_task_data('kept')}"
        FencedStore(self.path).note(self.attempt.transaction_id, "know", text)
        self.collector.emit([self.attempt, text])


class Fussy:
    """Can be packed, and not be unpacked."""

    def __setstate__(self, state: Any) -> None:
        raise ValueError("not this state")


class Choosy(Keep):
    """Its state can be packed, and does not fit where it is unpacked."""

    def prepare(self, conf: Any, context: Any, collector: Any, batch_id: Any) -> None:
        super().prepare(conf, context, collector, batch_id)
        self.fussy = Fussy()
