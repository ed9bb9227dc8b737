"""The bolts that write into a two-phase commit sink: tuple by tuple, or by whole record batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from stormline.topology.context import TopologyContext
from stormline.topology.contracts import Collector, Conf, IArrowBatchBolt, IRowsBolt
from stormline.topology.tuples import Tuple, TupleSource
from stormline.topology.two_phase_bolt import TwoPhaseCommitter

if TYPE_CHECKING:
    import pyarrow


class TwoPhaseCommitBolt(TwoPhaseCommitter, IRowsBolt):
    """Writes each tuple into a `TwoPhaseCommitSink`: on the executors, and visible at the commit of its batch.

    It is a leaf: it emits nothing, and stands behind no committer.
    """

    def prepare(self, conf: Conf, context: TopologyContext, collector: Collector, batch_id: Any) -> None:
        """Do nothing: the sink was opened before.

        Args:
            conf (Conf): the configuration as this component has it.
            context (TopologyContext): what the task may know about itself and the topology.
            collector (Collector): nothing is emitted.
            batch_id (Any): the attempt of the batch.
        """

    def execute(self, tup: Tuple) -> None:
        """Write one tuple.

        Args:
            tup (Tuple): what has arrived.
        """
        self.turn.invoke(tup)

    def execute_rows(self, rows: Sequence[list[Any]], source: TupleSource) -> None:
        """Write many tuples of one stream at once, as the engine gives them; a subclass's own `execute` gets each.

        Args:
            rows (Sequence[list[Any]]): the values of each tuple, its attempt first.
            source (TupleSource): who emitted them.
        """
        if type(self).execute is TwoPhaseCommitBolt.execute:
            self.turn.invoke_rows(rows, source)
            return
        for values in rows:
            self.execute(Tuple(values, source))

    def finish_batch(self) -> None:
        """Pre-commit what was written for this attempt."""
        self.turn.finish()


class TwoPhaseCommitArrowBolt(TwoPhaseCommitter, IArrowBatchBolt):
    """The `TwoPhaseCommitBolt` that takes whole record batches of pyarrow: its sink has `invoke_batch`."""

    def prepare(self, conf: Conf, context: TopologyContext, collector: Collector, batch_id: Any) -> None:
        """Do nothing: the sink was opened before.

        Args:
            conf (Conf): the configuration as this component has it.
            context (TopologyContext): what the task may know about itself and the topology.
            collector (Collector): nothing is emitted.
            batch_id (Any): the attempt of the batch.
        """

    def execute_batch(self, batch: pyarrow.RecordBatch) -> None:
        """Write one record batch.

        Args:
            batch (pyarrow.RecordBatch): what has arrived.
        """
        self.turn.invoke_batch(batch)

    def finish_batch(self) -> None:
        """Pre-commit what was written for this attempt."""
        self.turn.finish()
