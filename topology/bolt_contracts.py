"""The contracts of bolts: Storm's interfaces, by Storm's names, and their sibling for record batches."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from stormline.topology.collector import Collector
from stormline.topology.component import Conf, IComponent
from stormline.topology.context import TopologyContext
from stormline.topology.tuples import Tuple

if TYPE_CHECKING:
    import pyarrow


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


AnyBatchBolt = IBatchBolt | IArrowBatchBolt
AnyBolt = IBasicBolt | AnyBatchBolt
