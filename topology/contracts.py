"""The contracts between Stormline and user code: Storm's interfaces, by Storm's names."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, overload

from stormline.topology.attempt import TransactionAttempt
from stormline.topology.context import TopologyContext
from stormline.topology.grouping import DEFAULT_STREAM
from stormline.topology.storm_names import StormInterface
from stormline.topology.streams import OutputFieldsDeclarer
from stormline.topology.tuples import Tuple

if TYPE_CHECKING:
    import pyarrow

Conf = Mapping[str, Any]
Metadata = Any  # any value that the topology's serialization takes


class Collector(Protocol):
    """What bolts and emitters emit to; the first value is always the attempt of the batch at hand."""

    @overload
    def emit(self, values: Sequence[Any], stream: str = DEFAULT_STREAM) -> None:
        """Emit one tuple; raises a kind of `EmitError` at once where the declaration does not allow it."""

    @overload
    def emit(self, stream: str, values: Sequence[Any], /) -> None:
        """Emit one tuple, in Storm's order of arguments."""

    def emit_all(self, rows: list[list[Any]], stream: str = DEFAULT_STREAM) -> None:
        """Emit many tuples, faster than one by one. The lists become the engine's: change none of them any more."""

    @overload
    def emit_direct(self, task_id: int, values: Sequence[Any], stream: str = DEFAULT_STREAM) -> None:
        """Emit one tuple of a direct stream to one task."""

    @overload
    def emit_direct(self, task_id: int, stream: str, values: Sequence[Any], /) -> None:
        """Emit one tuple to one task, in Storm's order of arguments."""

    def emit_batch(self, batch: pyarrow.RecordBatch, stream: str = DEFAULT_STREAM) -> None:
        """Emit each row of `batch` as one tuple.

        Its columns are the stream's fields after the first, found by name: the attempt is implied. A `pyarrow.Table`
        is emitted batch by batch; no rows are no tuples. The batch and its memory become the engine's own: a numpy
        array that pyarrow shares must not change any more. An opaque emitter gives all its batches one fixed schema
        (see `IOpaqueEmitter`).

        Args:
            batch: Any number of rows, of any types that tuples can hold: no unions, intervals, views, extensions.
            stream: A stream that was not declared as direct.

        Raises:
            MissingExtra: pyarrow is not installed.
            NotARecordBatch: `batch` is neither a record batch nor a table.
            WrongColumns: its columns are not the fields after the first.
            ColumnCannotTravel: a column's type is one of those that do not travel.
            UndeclaredStream, DirectStreamMismatch, StaleEmit: as for `emit`.
        """

    def report_error(self, error: BaseException) -> None:
        """Write an error to the log and go on."""


class IComponent(StormInterface):
    """Spouts and bolts alike: says what it emits."""

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """Declare each output stream; a component that emits nothing declares none."""

    def get_component_configuration(self) -> Mapping[str, Any] | None:
        """Return settings of this component: they win over the topology's, the declarer's win over them."""
        return None


# ---------------------------------------------------------------------------------------- bolts


class IBasicBolt(IComponent):
    """A bolt that looks at one tuple at a time: prepared once a worker, it serves many batches."""

    def prepare(self, conf: Conf, context: TopologyContext) -> None:
        """Called once in each worker, before the first tuple."""

    @abstractmethod
    def execute(self, tup: Tuple, collector: Collector) -> None:
        """Called once a tuple; what it emits carries the tuple's own attempt first."""

    def cleanup(self) -> None:
        """Called when the worker is done with the topology; not when the worker is killed."""


class IBatchLifecycle(IComponent):
    """What bolts of both kinds that look at one batch have in common: every task of every attempt gets a fresh copy.

    It is the copy of the declared object. Every task finishes every batch, with no tuples too. `finish_batch` runs only
    when the task provably holds all its tuples.

    A committer, and a bolt downstream of one, is *deferred*. It is prepared, executed and finished at the commit, all
    in the driver process and each task in one thread that lives as long as the topology: connections, registries and
    static maps work as written. One that names in `gathers` what it gathers is executed on the executors.
    """

    gathers: Sequence[str] | None = None
    """Names of all the attributes that executing changes, each of plain data (numbers, text, bytes, dates, containers,
    arrays, registered classes). Where the bolt is deferred it is then prepared and executed on the executors, the
    attributes travel, and at the commit a fresh copy is prepared in the driver, given them, and finished. None: it does
    not say.
    """

    @abstractmethod
    def prepare(self, conf: Conf, context: TopologyContext, collector: Collector, batch_id: Any) -> None:
        """Called once, before the first tuple."""

    @abstractmethod
    def finish_batch(self) -> None:
        """Called once, after the last tuple."""


class IBatchBolt(IBatchLifecycle):
    """A bolt that looks at one batch, tuple by tuple; see `IBatchLifecycle` for when and where it is called."""

    @abstractmethod
    def execute(self, tup: Tuple) -> None:
        """Called once a tuple."""


class IArrowBatchBolt(IBatchLifecycle):
    """A bolt that looks at one batch, as record batches: the engine makes some of the tuples that row components emit.

    Its sibling for tuples is `IBatchBolt`: a bolt is one or the other.
    """

    @abstractmethod
    def execute_batch(self, batch: pyarrow.RecordBatch) -> None:
        """Called once for each record batch; each of its rows is one tuple of the attempt at hand.

        Args:
            batch: At least one row, and a column for each field of the stream after the first, in their order. It is
                shared with other bolts, so nothing of it may be changed. Its schema's metadata says who emitted it.

        Raises:
            FailedException: the attempt is to be replayed. Anything else stops the topology.
        """


class ICommitter:
    """Marks a BatchBolt whose `finish_batch` runs only in the commit phase, strictly in the order of txids."""


# ---------------------------------------------------------------------------------------- spouts


class ISpout(IComponent):
    """What spouts of all three kinds have in common.

    Its coordinator and its emitters live in the driver process: one coordinator, and one emitter a task, each made,
    called and closed in one thread of its own, for as long as the topology runs.
    """

    emits_on_executors: bool = False
    """Whether emitters run on the executors, in parallel: then several objects in several processes serve one task, one
    after another. For a spout whose batches depend on their metadata alone, never on what an emitter remembers."""


class ICoordinator(StormInterface):
    """What coordinators of all three kinds of spout have in common. One lives in the driver.

    What a coordinator of another class leaves out is done as here; so too with emitters.
    """

    def is_ready(self) -> bool:
        """Tell whether a new batch may begin; asked only where no metadata is stored for the next txid."""
        return True

    def is_ready_after(self, positions: Mapping[int, Metadata], batches_ahead: int) -> bool:
        """Tell whether a new batch may begin, where that depends on how far each partition has been read.

        It is this that the engine asks; unless overridden it asks `is_ready`.
        """
        return self.is_ready()

    def close(self) -> None:
        """Called when the topology stops."""


class IEmitter(StormInterface):
    """What emitters of all three kinds of spout have in common; see `ISpout` for where they live."""

    def close(self) -> None:
        """Called when the worker is done with the topology; not when the worker is killed."""


class ITransactionalCoordinator(ICoordinator):
    """Decides what the batches are. One lives in the driver."""

    def resume(self, prev_metadata: Metadata) -> None:
        """Called once, before is_ready, with the newest stored metadata; None where no transaction is stored."""

    @abstractmethod
    def initialize_transaction(self, txid: int, prev_metadata: Metadata) -> Metadata:
        """Return what defines batch `txid`: called once a txid, in order; `prev_metadata` is None for txid 1."""


class ITransactionalEmitter(IEmitter):
    """Emits batches: the same txid and metadata must give the same tuples, on every attempt, in every process."""

    @abstractmethod
    def emit_batch(self, attempt: TransactionAttempt, metadata: Metadata, collector: Collector) -> None:
        """Emit this task's share of the batch."""

    def cleanup_before(self, txid: int) -> None:
        """Called after each `emit_batch`, with the last committed txid: what is strictly before it may go."""


class ITransactionalSpout(ISpout):
    """A spout whose coordinator defines each batch by metadata.

    See `ISpout` for where its emitters run.
    """

    Coordinator: TypeAlias = ITransactionalCoordinator
    Emitter: TypeAlias = ITransactionalEmitter

    @abstractmethod
    def get_coordinator(self, conf: Conf, context: TopologyContext) -> ITransactionalCoordinator:
        """Return the coordinator."""

    @abstractmethod
    def get_emitter(self, conf: Conf, context: TopologyContext) -> ITransactionalEmitter:
        """Return the emitter of one task."""


class IPartitionedCoordinator(ICoordinator):
    """Says how many partitions there are. One lives in the driver."""

    @abstractmethod
    def num_partitions(self) -> int:
        """Return the present number of partitions: 0, 1, …; it may grow."""


class IPartitionedEmitter(IEmitter):
    """Emits the partitions of one task: task i of t owns partitions i, i+t, i+2t, …"""

    @abstractmethod
    def emit_partition_batch_new(
        self, attempt: TransactionAttempt, collector: Collector, partition: int, last_metadata: Metadata
    ) -> Metadata:
        """Emit a partition's batch for the first time; `last_metadata` is the partition's previous one or None.

        Returns what says which tuples these are, and where the next batch begins; None only at the beginning of a
        partition that has given nothing yet.
        """

    @abstractmethod
    def emit_partition_batch(
        self, attempt: TransactionAttempt, collector: Collector, partition: int, metadata: Metadata
    ) -> None:
        """Emit again exactly what the call that returned `metadata` emitted."""


class IPartitionedTransactionalSpout(ISpout):
    """A spout over partitions, each of which can replay any batch.

    See `ISpout` for where its emitters run.
    """

    Coordinator: TypeAlias = IPartitionedCoordinator
    Emitter: TypeAlias = IPartitionedEmitter

    @abstractmethod
    def get_coordinator(self, conf: Conf, context: TopologyContext) -> IPartitionedCoordinator:
        """Return the coordinator."""

    @abstractmethod
    def get_emitter(self, conf: Conf, context: TopologyContext) -> IPartitionedEmitter:
        """Return the emitter of one task."""


class IOpaqueCoordinator(ICoordinator):
    """Says when a new batch may begin. One lives in the driver."""


class IOpaqueEmitter(IEmitter):
    """Emits the partitions of one task, each from where its last transaction left off.

    A replay may give other tuples until the commit phase of its transaction begins. From then on it must begin
    with the same tuples in the same order: what it gives beyond those is kept for the next batch, and where it
    cannot give them the attempt fails and is tried again.

    Record batches need a fixed schema, `pa.RecordBatch.from_pylist(rows, schema=…)`: a replay may be cut otherwise, and
    a type inferred from other rows makes the frozen batch another one, which then waits for ever.
    """

    @abstractmethod
    def num_partitions(self) -> int:
        """Return the present number of partitions."""

    @abstractmethod
    def emit_partition_batch(
        self, attempt: TransactionAttempt, collector: Collector, partition: int, last_metadata: Metadata
    ) -> Metadata:
        """Emit from where `last_metadata` (None at first) left off and return the new metadata.

        None: this partition gives nothing now, and its old position is kept; after tuples that is an error.
        """


class IOpaquePartitionedTransactionalSpout(ISpout):
    """A spout over partitions that may vanish or give another batch on replay.

    See `ISpout` for where its emitters run.
    """

    Coordinator: TypeAlias = IOpaqueCoordinator
    Emitter: TypeAlias = IOpaqueEmitter

    @abstractmethod
    def get_coordinator(self, conf: Conf, context: TopologyContext) -> IOpaqueCoordinator:
        """Return the coordinator."""

    @abstractmethod
    def get_emitter(self, conf: Conf, context: TopologyContext) -> IOpaqueEmitter:
        """Return the emitter of one task."""


class ICommitterEmitter(ABC):
    """The emitter of a committer spout; it is an emitter of its spout's kind besides."""

    @abstractmethod
    def commit(self, attempt: TransactionAttempt) -> None:
        """Called in the commit phase, once for each attempt that reaches it."""


class ICommitterTransactionalSpout(ABC):
    """Marks a spout, of any of the three kinds, whose emitter's `commit(attempt)` runs in the commit phase.

    That phase runs in the driver, on the object that has emitted, in its thread; so `emits_on_executors` is refused.
    """

    if not TYPE_CHECKING:  # a type checker would find two in a spout of some kind: to it say ICommitterEmitter
        Emitter = ICommitterEmitter


AnySpout = ITransactionalSpout | IPartitionedTransactionalSpout | IOpaquePartitionedTransactionalSpout
AnyBatchBolt = IBatchBolt | IArrowBatchBolt
AnyBolt = IBasicBolt | AnyBatchBolt
AnyComponent = AnySpout | AnyBolt
