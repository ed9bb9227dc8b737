"""Base classes of bolts, by Storm's names."""

from __future__ import annotations

from stormline.topology.attempt import TransactionAttempt
from stormline.topology.context import TopologyContext
from stormline.topology.contracts import Collector, Conf, IBasicBolt, IBatchBolt


class BaseBasicBolt(IBasicBolt):
    """A bolt that looks at one tuple at a time. Override `execute(tup, collector)`."""


class BaseBatchBolt(IBatchBolt):
    """A bolt that looks at one batch. Override `prepare`, `execute(tup)` and `finish_batch`."""


class BaseTransactionalBolt(BaseBatchBolt):
    """The BatchBolt whose batch id is a `TransactionAttempt`, as every batch's is in a topology."""

    def prepare(self, conf: Conf, context: TopologyContext, collector: Collector, batch_id: TransactionAttempt) -> None:
        """Called once, before the first tuple of the attempt `batch_id`; does nothing unless overridden."""
