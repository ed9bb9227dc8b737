"""The topology that is broken: numbers → add (by key) → store, maps (committers, by key) → PostgreSQL, Redis.

`store` keeps its own fence, ledger and ranges, which the harness watches and checks; `maps` leaves all that to stores.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

from stormline import (
    BaseBatchBolt,
    BaseTransactionalBolt,
    Config,
    FailedException,
    Fields,
    ICommitter,
    TopologyContext,
    TransactionalTopologyBuilder,
    TransactionAttempt,
    Tuple,
)
from stormline.topology.contracts import Collector, Conf
from stormline.topology.streams import OutputFieldsDeclarer
from stormline.topology.topology import Topology
from tests.chaos import deaths
from tests.chaos.design import IDEMPOTENT, ON_EXECUTORS, Design
from tests.chaos.ledger import Ledger, Range, Token
from tests.chaos.numbers import MODULUS, Sums
from tests.chaos.source import read_source
from tests.chaos.spouts import IdempotentNumbers, OpaqueNumbers
from tests.chaos.stores import Places, StoreByMaps

SOURCE = "source.json"


class Poisoned(ValueError):
    """What a tuple that no code was written for does."""


class AddNumbers(BaseBatchBolt):
    """Adds the numbers of a batch that reach one task: by key, and the ranges that they came from."""

    def __init__(self, folder: Path, partitions: int) -> None:
        self.folder = folder
        self.partitions = partitions

    def prepare(self, conf: Conf, context: TopologyContext, collector: Collector, batch_id: TransactionAttempt) -> None:
        source = read_source(self.folder / SOURCE)
        self.bad = {*source.poison, *source.failing}
        self.poison = source.poison
        self.collector = collector
        self.attempt = batch_id
        self.sums: defaultdict[int, list[int]] = defaultdict(lambda: [0, 0, 0])
        self.numbers: defaultdict[int, list[int]] = defaultdict(list)

    def execute(self, tup: Tuple) -> None:
        _, number, key = tup
        if number in self.bad:
            if number in self.poison:
                raise Poisoned(f"the number {number} is poisoned")
            raise FailedException(f"the number {number} fails")
        sums = self.sums[key]
        sums[0] += 1
        sums[1] += number
        sums[2] += number * number
        self.numbers[number % self.partitions].append(number // self.partitions)

    def finish_batch(self) -> None:
        deaths.meet(self.folder, deaths.EXECUTING)
        for key, (count, total, squares) in self.sums.items():
            self.collector.emit([self.attempt, key, count, total, squares % MODULUS])
        for partition, rows in self.numbers.items():
            self.collector.emit([self.attempt, partition, min(rows), max(rows) + 1, len(rows)], "ranges")

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("attempt", "key", "count", "total", "squares"))
        declarer.declare_stream("ranges", Fields("attempt", "partition", "first", "end", "count"))


class StoreSums(BaseTransactionalBolt, ICommitter):
    """Stores what a batch changes, in one database transaction."""

    def __init__(self, folder: Path, dsn: str, gathers: bool) -> None:
        self.folder = folder
        self.dsn = dsn
        self.gathers = ("sums", "ranges") if gathers else None

    def prepare(self, conf: Conf, context: TopologyContext, collector: Collector, batch_id: TransactionAttempt) -> None:
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

    def finish_batch(self) -> None:
        deaths.meet(self.folder, deaths.BEFORE)
        ledger = Ledger(self.dsn, self.topology)
        ledger.add(
            self.token,
            self.task,
            self.sums,
            self.ranges,
            lambda: deaths.meet(self.folder, deaths.WITHIN),
            commit_id=self.commit_id,
        )
        deaths.meet(self.folder, deaths.AFTER)

    def get_component_configuration(self) -> Config:
        own = Config()
        own.register_serialization(Sums)
        own.register_serialization(Range)
        return own


def warm_up(_: int) -> None:
    """Do nothing, on an executor: so that it has started, and has imported all this."""


def build(design: Design, folder: Path, dsn: str, stores: Places) -> Topology:
    """Declare the topology of one round; `folder` holds its source."""
    spout = IdempotentNumbers if design.spout == IDEMPOTENT else OpaqueNumbers
    numbers = spout(folder / SOURCE, design.partitions)
    builder = TransactionalTopologyBuilder(design.topology, "numbers", numbers, 2)
    adder = AddNumbers(folder, design.partitions)
    builder.set_bolt("add", adder, design.adders).fields_grouping("numbers", Fields("key"))
    store = builder.set_bolt("store", StoreSums(folder, dsn, gathers=design.pending % 2 == 0), design.committers)
    store.fields_grouping("add", Fields("key")).fields_grouping("add", Fields("partition"), "ranges")
    maps = builder.set_bolt("maps", StoreByMaps(stores), design.committers)
    maps.fields_grouping("add", Fields("key"))
    return builder.build_topology()


def config(design: Design, zookeeper: str, session_timeout_ms: int, message_timeout_secs: int) -> dict[str, Any]:
    """Return the configuration of one round."""
    host, _, port = zookeeper.rpartition(":")
    placement = "executors" if design.placement == ON_EXECUTORS else "driver"
    return {
        Config.TOPOLOGY_MAX_SPOUT_PENDING: design.pending,
        Config.TOPOLOGY_MESSAGE_TIMEOUT_SECS: message_timeout_secs,
        Config.TOPOLOGY_COMMIT_PLACEMENT: placement,
        "transactional.zookeeper.servers": [host],
        "transactional.zookeeper.port": int(port),
        "storm.zookeeper.session.timeout": session_timeout_ms,
        "storm.zookeeper.connection.timeout": 2 * session_timeout_ms,
    }
