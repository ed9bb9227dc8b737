"""The contracts of bolts: Storm's interfaces, by Storm's names, and their sibling for record batches."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from stormline.topology.collector import Collector
from stormline.topology.commit_participants import CommitTarget
from stormline.topology.component import Conf, IComponent
from stormline.topology.context import TopologyContext
from stormline.topology.tuples import Tuple, TupleSource

if TYPE_CHECKING:
    import pyarrow


class IBasicBolt(IComponent):
    """A bolt that looks at one tuple at a time: prepared once a worker, it serves many batches.

    It never learns where a batch ends. Storm 1.2.4: IBasicBolt.
    """

    effects_in: CommitTarget | None = None
    """Of one downstream of a committer; see `IBatchLifecycle`."""

    def prepare(self, conf: Conf, context: TopologyContext) -> None:
        """Called once in each worker, before the first tuple.

        Args:
            conf (Conf): the configuration as this component has it.
            context (TopologyContext): what the task may know about itself and the topology.

        Raises:
            FailedException: the attempt at hand is to be replayed. Anything else stops the topology.
        """

    @abstractmethod
    def execute(self, tup: Tuple, collector: Collector) -> None:
        """Called once a tuple.

        Args:
            tup (Tuple): what has arrived; its first value is the attempt of its batch.
            collector (Collector): takes what the bolt emits, at once or later in this call; the first value is the
                tuple's own attempt.

        Raises:
            FailedException: the attempt is to be replayed. Anything else stops the topology.
        """

    def cleanup(self) -> None:
        """Called when the worker is done with the topology; not when the worker is killed."""


class IBatchLifecycle(IComponent):
    """What bolts of both kinds that look at one batch have in common: every task of every attempt gets a fresh copy.

    It is the copy of the declared object. Every task finishes every batch, with no tuples too, unless it
    `skips_empty`. `finish_batch` runs only when the task provably holds all its tuples.

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

    effects_in: CommitTarget | None = None
    """The one store that all effects of its commit phase are in, by the maps and the transaction of that store; also
    where it has none. Where all deferred bolts of a topology name the same, transactions that wait for their commits
    become durable together, in one step of that store (topology.commit.group.max), and one that the store holds already
    is not run again. None: it does not say.
    """

    skips_empty: bool = False
    """Whether a task has nothing to do for a batch of which it gets no tuple: it is neither prepared for it nor does it
    finish it. A deferred bolt finishes every batch all the same.
    """

    @abstractmethod
    def prepare(self, conf: Conf, context: TopologyContext, collector: Collector, batch_id: Any) -> None:
        """Called once for each attempt, before the first tuple.

        Args:
            conf (Conf): the configuration as this component has it.
            context (TopologyContext): what the task may know about itself and the topology.
            collector (Collector): takes what the bolt emits, until `finish_batch` has returned.
            batch_id (Any): the `TransactionAttempt` of the batch; in a DRPC topology, the request's id.

        Raises:
            FailedException: the attempt is to be replayed. Anything else stops the topology.
        """

    @abstractmethod
    def finish_batch(self) -> None:
        """Called once for each attempt, after the last tuple, with no tuples too; of a committer, in the commit phase.

        Storm 1.2.4: a committer's finishBatch is called for one transaction at a time, strictly in the order of txids.

        Raises:
            FailedException: the attempt is to be replayed. Anything else stops the topology.
        """


class IBatchBolt(IBatchLifecycle):
    """A bolt that looks at one batch, tuple by tuple; see `IBatchLifecycle` for when and where it is called.

    Storm 1.2.4: IBatchBolt. Its sibling for record batches is `IArrowBatchBolt`: a bolt is one or the other.
    """

    @abstractmethod
    def execute(self, tup: Tuple) -> None:
        """Called once a tuple.

        Args:
            tup (Tuple): what has arrived; its first value is the attempt of the batch.

        Raises:
            FailedException: the attempt is to be replayed. Anything else stops the topology.
        """


class IRowsBolt(IBatchBolt):
    """A BatchBolt that takes many tuples at once, as the engine has them: to make each costs more than to look at it.

    Where hooks hear of each tuple it is given them one by one.
    """

    @abstractmethod
    def execute_rows(self, rows: Sequence[list[Any]], source: TupleSource) -> None:
        """Execute many tuples of one stream, as `execute` would one after another.

        Args:
            rows (Sequence[list[Any]]): the values of each tuple, the attempt first.
            source (TupleSource): who emitted them.

        Raises:
            FailedException: the attempt is to be replayed. Anything else stops the topology.
        """


class IArrowBatchBolt(IBatchLifecycle):
    """A bolt that looks at one batch, as record batches: the engine makes some of the tuples that row components emit.

    Its sibling for tuples is `IBatchBolt`: a bolt is one or the other.
    """

    @abstractmethod
    def execute_batch(self, batch: pyarrow.RecordBatch) -> None:
        """Called once for each record batch; each of its rows is one tuple of the attempt at hand.

        Args:
            batch (pyarrow.RecordBatch): at least one row, and a column for each field of the stream after the first, in
                their order. It is shared with other bolts, so nothing of it may be changed. `source_of(batch)` says who
                emitted it.

        Raises:
            FailedException: the attempt is to be replayed. Anything else stops the topology.
        """


class ICommitter:
    """Marks a BatchBolt whose `finish_batch` runs only in the commit phase, strictly in the order of txids.

    Storm 1.2.4: ICommitter. `set_committer_bolt` makes a committer of any BatchBolt.
    """


AnyBatchBolt = IBatchBolt | IArrowBatchBolt
AnyBolt = IBasicBolt | AnyBatchBolt
