"""The topology that is broken: numbers → add (by key) → store, maps (committers, by key) → PostgreSQL, Redis.

`store` keeps its own fence, ledger and ranges, which the harness watches and checks; `maps` leaves all that to stores.
In some rounds the numbers come from Kafka, and all committers are on one store: PostgreSQL, or Kafka.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

from stormline import (
    BaseBatchBolt,
    Config,
    FailedException,
    Fields,
    TopologyContext,
    TransactionalTopologyBuilder,
    TransactionAttempt,
    Tuple,
    TwoPhaseCommitBolt,
)
from stormline.spouts.kafka import KafkaTransactionalSpout, OpaqueKafkaTransactionalSpout
from stormline.topology.contracts import Collector, Conf
from stormline.topology.streams import OutputFieldsDeclarer
from stormline.topology.topology import Topology
from tests.chaos import deaths
from tests.chaos.design import BY_TWO_PHASES, FROM_FILE, IDEMPOTENT, INTO_KAFKA, INTO_POSTGRESQL, ON_EXECUTORS, Design
from tests.chaos.gathered import GatheredSums
from tests.chaos.kafka_topics import decode, numbers_of
from tests.chaos.ledger import Ledger
from tests.chaos.numbers import MODULUS
from tests.chaos.one_store import MapsInPostgreSQL, SumsInKafka, SumsInPostgreSQL
from tests.chaos.prepared import MARKS, PreparedSums
from tests.chaos.source import read_source
from tests.chaos.spouts import IdempotentNumbers, OpaqueNumbers
from tests.chaos.stores import TIMEOUT_SECS, Places, StoreByMaps

SOURCE = "source.json"
RECORDS_PER_PARTITION = 500
"""Offsets of a partition in a batch from Kafka."""

SWEEP_SECS = 2.0


class Poisoned(ValueError):
    """What a tuple that no code was written for does."""


class AddNumbers(BaseBatchBolt):
    """Adds the numbers of a batch that reach one task: by key, and the ranges that they came from."""

    def __init__(self, folder: Path, partitions: int, marks: bool = False) -> None:
        self.folder = folder
        self.partitions = partitions
        self.marks = marks

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
        if self.marks:
            self.collector.emit([self.attempt], MARKS)

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("attempt", "key", "count", "total", "squares"))
        declarer.declare_stream("ranges", Fields("attempt", "partition", "first", "end", "count"))
        if self.marks:
            declarer.declare_stream(MARKS, Fields("attempt"))


class StoreSums(GatheredSums):
    """Stores what a batch changes, in one database transaction of its own, behind its own fence."""

    def __init__(self, folder: Path, dsn: str, gathers: bool) -> None:
        super().__init__(folder, gathers)
        self.dsn = dsn

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


def warm_up(_: int) -> None:
    """Do nothing, on an executor: so that it has started, and has imported all this."""


def build(design: Design, folder: Path, dsn: str, stores: Places, kafka: str) -> Topology:
    """Declare the topology of one round; `folder` holds its source, or says how much of it is in Kafka."""
    builder = TransactionalTopologyBuilder(design.topology, "numbers", _spout(design, folder, kafka), 2)
    by_two_phases = design.sink == BY_TWO_PHASES
    adder = AddNumbers(folder, design.partitions, by_two_phases)
    builder.set_bolt("add", adder, design.adders).fields_grouping("numbers", Fields("key"))
    gathers = design.pending % 2 == 0
    store: GatheredSums | TwoPhaseCommitBolt
    maps: StoreByMaps | None = None
    if design.sink == INTO_KAFKA:
        store = SumsInKafka(folder, kafka, gathers)
    elif by_two_phases:
        store, maps = TwoPhaseCommitBolt(PreparedSums(folder, dsn)), MapsInPostgreSQL(stores["postgresql"])
    elif design.sink == INTO_POSTGRESQL:
        store, maps = SumsInPostgreSQL(folder, dsn, gathers), MapsInPostgreSQL(stores["postgresql"])
    else:
        store, maps = StoreSums(folder, dsn, gathers), StoreByMaps(stores)
    declared = builder.set_bolt("store", store, design.committers)
    declared.fields_grouping("add", Fields("key")).fields_grouping("add", Fields("partition"), "ranges")
    if by_two_phases:
        declared.all_grouping("add", MARKS)
    if maps is not None:
        builder.set_bolt("maps", maps, design.committers).fields_grouping("add", Fields("key"))
    return builder.build_topology()


def _spout(design: Design, folder: Path, kafka: str) -> Any:
    if design.source == FROM_FILE:
        of_file = IdempotentNumbers if design.spout == IDEMPOTENT else OpaqueNumbers
        return of_file(folder / SOURCE, design.partitions)
    of_kafka = KafkaTransactionalSpout if design.spout == IDEMPOTENT else OpaqueKafkaTransactionalSpout
    return of_kafka(
        kafka,
        numbers_of(design.topology),
        {"number": "value.number", "key": "value.key"},  # plain "key" is the record's
        value=decode,
        records_per_partition=RECORDS_PER_PARTITION,
        timeout_secs=TIMEOUT_SECS,
    )


def config(design: Design, zookeeper: str, session_timeout_ms: int, message_timeout_secs: int) -> dict[str, Any]:
    """Return the configuration of one round."""
    host, _, port = zookeeper.rpartition(":")
    placement = "executors" if design.placement == ON_EXECUTORS else "driver"
    return {
        Config.TOPOLOGY_MAX_SPOUT_PENDING: design.pending,
        Config.TOPOLOGY_MESSAGE_TIMEOUT_SECS: message_timeout_secs,
        Config.TOPOLOGY_COMMIT_PLACEMENT: placement,
        "topology.sink.sweep.secs": SWEEP_SECS,
        "transactional.zookeeper.servers": [host],
        "transactional.zookeeper.port": int(port),
        "storm.zookeeper.session.timeout": session_timeout_ms,
        "storm.zookeeper.connection.timeout": 2 * session_timeout_ms,
    }
