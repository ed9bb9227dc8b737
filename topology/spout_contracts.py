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
        """Return whether a new batch may begin; True, unless overridden.

        Asked only where no metadata is stored for the next txid: replays and restarts bypass it. It may sleep. Storm
        1.2.4: isReady of the three coordinators.

        Returns:
            whether there is something for a new batch. False: it is asked again later, and no txid is used up.

        Raises:
            FailedException: it is asked again later. Anything else stops the topology.
        """
        return True

    def is_ready_after(self, positions: Mapping[int, Metadata], batches_ahead: int) -> bool:
        """Return whether a new batch may begin, where that depends on how far each partition has been read.

        It is this that the engine asks; unless overridden it asks `is_ready`. Storm has no such method: there a spout
        that has nothing left goes on with empty batches.

        Args:
            positions (Mapping[int, Metadata]): metadata of each partition, by its number, in the newest batch of which
                it is known; empty where no batch is, and for a spout without partitions.
            batches_ahead (int): number of batches that have begun after that one, and whose metadata is not known yet.

        Returns:
            as for `is_ready`.

        Raises:
            FailedException: it is asked again later. Anything else stops the topology.
        """
        return self.is_ready()

    def close(self) -> None:
        """Called when the topology stops; not when the driver is killed. Storm 1.2.4 has it too, and never calls it."""


class IEmitter(StormInterface):
    """What emitters of all three kinds of spout have in common; see `ISpout` for where they live."""

    def close(self) -> None:
        """Called when the process that emits is done with the topology; not when it is killed."""


class ITransactionalCoordinator(ICoordinator):
    """Decides what the batches are: the coordinator of an `ITransactionalSpout`. One lives in the driver."""

    def resume(self, prev_metadata: Metadata) -> None:
        """Called once, before the first question whether it is ready; does nothing unless overridden.

        Args:
            prev_metadata (Metadata): the newest stored metadata, of a batch that is committed or will be replayed; None
                where no transaction is stored.
        """

    @abstractmethod
    def initialize_transaction(self, txid: int, prev_metadata: Metadata) -> Metadata:
        """Return what defines a batch: called once a txid, in order.

        It is stored before the batch is processed, so a restarted driver does not ask again for a txid that has begun.

        Args:
            txid (int): id of the transaction: 1, 2, 3, …
            prev_metadata (Metadata): what the call for the txid before returned; None for txid 1.

        Returns:
            metadata that with the txid alone lets every emitter, in every process, emit its share of the batch again.

        Raises:
            FailedException: it is asked again later. Anything else stops the topology.
        """


class ITransactionalEmitter(IEmitter):
    """Emits batches: the emitter of an `ITransactionalSpout`, one a task.

    The same txid and metadata must give the same tuples, on every attempt, in every process.
    """

    @abstractmethod
    def emit_batch(self, attempt: TransactionAttempt, metadata: Metadata, collector: Collector) -> None:
        """Emit this task's share of a batch.

        Args:
            attempt (TransactionAttempt): which try of which transaction; the first value of every tuple.
            metadata (Metadata): what `initialize_transaction` returned for this txid.
            collector (Collector): takes the tuples.

        Raises:
            FailedException: the attempt is to be replayed. Anything else stops the topology.
        """

    def cleanup_before(self, txid: int) -> None:
        """Called after each `emit_batch`: what the emitter keeps of earlier transactions may go.

        Args:
            txid (int): the last committed txid, 0 before the first; what is strictly before it may go.
        """


class ITransactionalSpout(ISpout):
    """A spout whose coordinator defines each batch by metadata. See `ISpout` for where its emitters run.

    Storm 1.2.4: ITransactionalSpout.
    """

    Coordinator: TypeAlias = ITransactionalCoordinator
    Emitter: TypeAlias = ITransactionalEmitter

    @abstractmethod
    def get_coordinator(self, conf: Conf, context: TopologyContext) -> ITransactionalCoordinator:
        """Return the coordinator: called once, in the driver, in the thread in which it will be called.

        Args:
            conf (Conf): the configuration as this spout has it.
            context (TopologyContext): what the spout's first task may know about itself and the topology.
        """

    @abstractmethod
    def get_emitter(self, conf: Conf, context: TopologyContext) -> ITransactionalEmitter:
        """Return the emitter of one task: called in the thread in which it will be called.

        Args:
            conf (Conf): the configuration as this spout has it.
            context (TopologyContext): what this task may know about itself and the topology.
        """


class IAnyPartitionedCoordinator(ICoordinator):
    """What coordinators of both kinds of partitioned spout have in common."""

    def resume_partitions(self, described: Metadata) -> None:
        """Called once, before the first question whether it is ready; does nothing unless overridden.

        Args:
            described (Metadata): what `describe_partitions` returned for the newest stored batch; None where there is
                none.
        """

    def describe_partitions(self, described: Metadata) -> Metadata:
        """Return what the partitions of a new batch are, for emitters to be told by `begin_batch`; None: nothing.

        Called once a txid, in order, and stored before the batch is processed: a number means the same partition in
        every process and for ever, so let it only be added to. Storm's Trident: getPartitionsForBatch.

        Args:
            described (Metadata): what was returned for the txid before; None for txid 1.

        Raises:
            FailedException: it is asked again later. Anything else stops the topology.
        """
        return None

    def positions_committed(self, positions: Mapping[int, Metadata]) -> None:
        """Called now and then, before it is asked whether it is ready; does nothing unless overridden.

        For telling others how far the topology has come; what counts is in the topology's own state.

        Args:
            positions (Mapping[int, Metadata]): metadata of each partition after the last committed batch, by number;
                other ones than in the call before.

        Raises:
            FailedException: it is logged. Anything else stops the topology.
        """


class IAnyPartitionedEmitter(IEmitter):
    """What emitters of both kinds of partitioned spout have in common."""

    def begin_batch(
        self, described: Metadata, positions: Mapping[int, Metadata], stored: Mapping[int, Metadata]
    ) -> None:
        """Called before a batch's partitions are asked for, where the coordinator describes them.

        Args:
            described (Metadata): what `describe_partitions` returned for this batch.
            positions (Mapping[int, Metadata]): by their numbers, what was returned for the partitions of this task in
                the batch before; they may not be there now.
            stored (Mapping[int, Metadata]): what an earlier attempt returned for this batch, of those partitions that
                must be as they were.

        Raises:
            FailedException: the attempt is to be replayed. Anything else stops the topology.
        """


class IPartitionedCoordinator(IAnyPartitionedCoordinator):
    """Says how many partitions an `IPartitionedTransactionalSpout` has. One lives in the driver."""

    @abstractmethod
    def num_partitions(self) -> int:
        """Return the present number of partitions: 0, 1, …; it may grow from batch to batch.

        Raises:
            FailedException: it is asked again later. Anything else stops the topology.
        """


class IPartitionedEmitter(IAnyPartitionedEmitter):
    """Emits the partitions of one task: task i of t owns partitions i, i+t, i+2t, …

    Storm 1.2.4: IPartitionedTransactionalSpout.Emitter.
    """

    @abstractmethod
    def emit_partition_batch_new(
        self, attempt: TransactionAttempt, collector: Collector, partition: int, last_metadata: Metadata
    ) -> Metadata:
        """Emit a partition's batch for the first time.

        Args:
            attempt (TransactionAttempt): which try of which transaction; the first value of every tuple.
            collector (Collector): takes the tuples.
            partition (int): number of the partition, from 0.
            last_metadata (Metadata): what was returned for this partition in the transaction before; None at its
                beginning.

        Returns:
            metadata that says which tuples these are, and where the next batch begins; None only at the beginning of a
            partition that has given nothing yet.

        Raises:
            FailedException: the attempt is to be replayed. Anything else stops the topology.
        """

    @abstractmethod
    def emit_partition_batch(
        self, attempt: TransactionAttempt, collector: Collector, partition: int, metadata: Metadata
    ) -> None:
        """Emit again exactly what the call that returned `metadata` emitted.

        Args:
            attempt (TransactionAttempt): which try of which transaction; the first value of every tuple.
            collector (Collector): takes the tuples.
            partition (int): number of the partition, from 0.
            metadata (Metadata): what `emit_partition_batch_new` returned for this partition and transaction.

        Raises:
            FailedException: the attempt is to be replayed. Anything else stops the topology.
        """


class IPartitionedTransactionalSpout(ISpout):
    """A spout over partitions, each of which can replay any batch. See `ISpout` for where its emitters run.

    Storm 1.2.4: IPartitionedTransactionalSpout.
    """

    Coordinator: TypeAlias = IPartitionedCoordinator
    Emitter: TypeAlias = IPartitionedEmitter

    @abstractmethod
    def get_coordinator(self, conf: Conf, context: TopologyContext) -> IPartitionedCoordinator:
        """Return the coordinator: called once, in the driver, in the thread in which it will be called.

        Args:
            conf (Conf): the configuration as this spout has it.
            context (TopologyContext): what the spout's first task may know about itself and the topology.
        """

    @abstractmethod
    def get_emitter(self, conf: Conf, context: TopologyContext) -> IPartitionedEmitter:
        """Return the emitter of one task: called in the thread in which it will be called.

        Args:
            conf (Conf): the configuration as this spout has it.
            context (TopologyContext): what this task may know about itself and the topology.
        """


class IOpaqueCoordinator(IAnyPartitionedCoordinator):
    """Says when a new batch of an `IOpaquePartitionedTransactionalSpout` may begin. One lives in the driver."""


class IOpaqueEmitter(IAnyPartitionedEmitter):
    """Emits the partitions of one task, each from where its last transaction left off.

    Storm 1.2.4: IOpaquePartitionedTransactionalSpout.Emitter. As there, a replay may give other tuples, but only until
    the commit phase of its transaction begins. From then on it must begin with the same tuples in the same order: what
    it gives beyond those is kept for the next batch, and where it cannot give them the attempt fails and is tried
    again.

    Record batches need a fixed schema, `pa.RecordBatch.from_pylist(rows, schema=…)`: a replay may be cut otherwise, and
    a type inferred from other rows makes the frozen batch another one, which then waits for ever.
    """

    @abstractmethod
    def num_partitions(self) -> int:
        """Return the present number of partitions: 0, 1, …; it may grow, and shrink for a while."""

    @abstractmethod
    def emit_partition_batch(
        self, attempt: TransactionAttempt, collector: Collector, partition: int, last_metadata: Metadata
    ) -> Metadata:
        """Emit from where the partition's last transaction left off.

        Args:
            attempt (TransactionAttempt): which try of which transaction; the first value of every tuple.
            collector (Collector): takes the tuples.
            partition (int): number of the partition, from 0.
            last_metadata (Metadata): what was returned for this partition in the last transaction in which it gave
                something; None at first.

        Returns:
            metadata of the position after these tuples. None: the partition gives nothing now, and keeps its old
            position; after tuples that is an error.

        Raises:
            FailedException: the attempt is to be replayed. Anything else stops the topology.
        """


class IOpaquePartitionedTransactionalSpout(ISpout):
    """A spout over partitions that may vanish or give another batch on replay. See `ISpout` for where its emitters run.

    Storm 1.2.4: IOpaquePartitionedTransactionalSpout.
    """

    Coordinator: TypeAlias = IOpaqueCoordinator
    Emitter: TypeAlias = IOpaqueEmitter

    @abstractmethod
    def get_coordinator(self, conf: Conf, context: TopologyContext) -> IOpaqueCoordinator:
        """Return the coordinator: called once, in the driver, in the thread in which it will be called.

        Args:
            conf (Conf): the configuration as this spout has it.
            context (TopologyContext): what the spout's first task may know about itself and the topology.
        """

    @abstractmethod
    def get_emitter(self, conf: Conf, context: TopologyContext) -> IOpaqueEmitter:
        """Return the emitter of one task: called in the thread in which it will be called.

        Args:
            conf (Conf): the configuration as this spout has it.
            context (TopologyContext): what this task may know about itself and the topology.
        """


class ICommitterEmitter(ABC):
    """The emitter of a committer spout; it is an emitter of its spout's kind besides."""

    @abstractmethod
    def commit(self, attempt: TransactionAttempt) -> None:
        """Called in the commit phase, once for each attempt that reaches it, in the order of txids.

        Args:
            attempt (TransactionAttempt): the try of the transaction that commits now.

        Raises:
            FailedException: the attempt is to be replayed. Anything else stops the topology.
        """


class ICommitterTransactionalSpout(ABC):
    """Marks a spout, of any of the three kinds, whose emitter's `commit(attempt)` runs in the commit phase.

    That phase runs in the driver, on the object that has emitted, in its thread; so `emits_on_executors` is refused.
    """

    if not TYPE_CHECKING:  # a type checker would find two in a spout of some kind: to it say ICommitterEmitter
        Emitter = ICommitterEmitter


AnySpout = ITransactionalSpout | IPartitionedTransactionalSpout | IOpaquePartitionedTransactionalSpout
