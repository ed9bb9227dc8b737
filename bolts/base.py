"""Base classes of bolts, by Storm's names."""

from __future__ import annotations

from stormline.topology.attempt import TransactionAttempt
from stormline.topology.context import TopologyContext
from stormline.topology.contracts import Collector, Conf, IBasicBolt, IBatchBolt


class BaseBasicBolt(IBasicBolt):
    """A bolt that looks at one tuple at a time. Override `execute(tup, collector)`. Storm 1.2.4: BaseBasicBolt."""


class BaseBatchBolt(IBatchBolt):
    """A bolt that looks at one batch. Override `prepare`, `execute(tup)` and `finish_batch`.

    Storm 1.2.4: BaseBatchBolt.
    """


class BaseTransactionalBolt(BaseBatchBolt):
    """The BatchBolt whose batch id is a `TransactionAttempt`, as every batch's is in a topology."""

    def prepare(self, conf: Conf, context: TopologyContext, collector: Collector, batch_id: TransactionAttempt) -> None:
        """Called once for each attempt, before the first tuple; does nothing unless overridden.

        Args:
            conf (Conf): the configuration as this component has it.
            context (TopologyContext): what the task may know about itself and the topology.
            collector (Collector): takes what the bolt emits, until `finish_batch` has returned.
            batch_id (TransactionAttempt): the attempt of the batch.
        """
