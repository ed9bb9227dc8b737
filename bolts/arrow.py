"""Bolts that take whole record batches of pyarrow (pip install 'stormline[arrow]')."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from stormline.topology.attempt import TransactionAttempt
from stormline.topology.context import TopologyContext
from stormline.topology.contracts import Collector, Conf, IArrowBatchBolt

if TYPE_CHECKING:
    import pyarrow

ORIGIN_KEYS = (b"stormline.source_component", b"stormline.source_stream_id", b"stormline.source_task")
"""What the metadata of a batch's schema says of its rows; see `source_of`."""


class ArrowBatchBolt(IArrowBatchBolt):
    """A BatchBolt that takes record batches. Override `prepare`, `execute_batch(batch)` and `finish_batch`.

    All else is as for a BatchBolt: a fresh copy for every task of every attempt, replays, phases, groupings. A column
    for each field of the stream after the first, in the order of declaration; the attempt, which is the first
    field of a tuple, was given to `prepare`. How tuples are cut into batches is not defined, and differs from attempt
    to attempt. It may emit batches (`collector.emit_batch`) and tuples. As an `ICommitter`, or declared by
    `set_committer_bolt`, it finishes in the commit phase.

    Batches that were emitted as such keep their types; of a dictionary, what their rows do not need may be gone. Of
    tuples the engine makes batches, each with the types that its values have (`stormline.topology.columns`): a column
    of nothing but None is of the type null, one of int and float of the type double. Tuples that no column holds as
    they are stop the topology: `ColumnCannotTravel`.

    Raises:
        MissingExtra: pyarrow is not installed; when the bolt is declared.
    """


class ArrowTransactionalBolt(ArrowBatchBolt):
    """The `ArrowBatchBolt` whose `prepare` may be left out, as that of `BaseTransactionalBolt`."""

    def prepare(self, conf: Conf, context: TopologyContext, collector: Collector, batch_id: TransactionAttempt) -> None:
        """Called once for each attempt, before the first batch; does nothing unless overridden.

        Args:
            conf (Conf): the configuration as this component has it.
            context (TopologyContext): what the task may know about itself and the topology.
            collector (Collector): takes what the bolt emits, until `finish_batch` has returned.
            batch_id (TransactionAttempt): the attempt of the batch.
        """


class BatchSource(NamedTuple):
    """Who emitted a record batch; see `source_of`.

    Attributes:
        component (str): id of the component.
        stream (str): id of the stream.
        task (int): number of the task, unique in the topology.
    """

    component: str
    stream: str
    task: int


def source_of(batch: pyarrow.RecordBatch) -> BatchSource:
    """Return who emitted the rows of a record batch.

    Args:
        batch (pyarrow.RecordBatch): one that `execute_batch` was given, or one made of it that keeps its schema's
            metadata.
    """
    component, stream, task = (batch.schema.metadata[key].decode() for key in ORIGIN_KEYS)
    return BatchSource(component, stream, int(task))
