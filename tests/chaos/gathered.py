"""What the committers of the chaos runs share: they gather sums by key, and the ranges that these came from."""

from __future__ import annotations

from pathlib import Path

from stormline import BaseTransactionalBolt, Config, ICommitter, TopologyContext, TransactionAttempt, Tuple
from stormline.topology.contracts import Collector, Conf
from tests.chaos.ledger import Range, Token
from tests.chaos.numbers import Sums


class GatheredSums(BaseTransactionalBolt, ICommitter):
    """Gathers; how that is stored is its subclass's."""

    def __init__(self, folder: Path, gathers: bool) -> None:
        self.folder = folder
        self.gathers = ("sums", "ranges") if gathers else None

    def prepare(self, conf: Conf, context: TopologyContext, collector: Collector, batch_id: TransactionAttempt) -> None:
        self.context, self.attempt = context, batch_id
        self.token = Token(context.epoch, batch_id.transaction_id, batch_id.attempt_id)
        self.commit_id = context.commit_id(batch_id)
        self.topology = context.topology_id
        self.task = context.this_task_index
        self.sums: dict[int, Sums] = {}
        self.ranges: dict[int, Range] = {}

    def execute(self, tup: Tuple) -> None:
        _, group, *rest = tup
        if tup.source_stream_id == "ranges":
            more = Range(*rest)
            self.ranges[group] = self.ranges[group].plus(more) if group in self.ranges else more
        else:
            self.sums[group] = self.sums.get(group, Sums()).plus(Sums(*rest))

    def get_component_configuration(self) -> Config:
        own = Config()
        own.register_serialization(Sums)
        own.register_serialization(Range)
        return own
