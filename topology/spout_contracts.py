"""The contracts of spouts, their coordinators and their emitters: Storm's interfaces, by Storm's names."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeAlias

from stormline.topology.attempt import TransactionAttempt
from stormline.topology.collector import Collector
from stormline.topology.component import Conf, IComponent, Metadata
from stormline.topology.context import TopologyContext
from stormline.topology.storm_names import StormInterface


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
