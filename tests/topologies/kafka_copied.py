"""Copies a Kafka topic into another one, and kills its own driver at a named point of a commit.

Environment: KAFKA_SERVERS; COPY_FROM and COPY_TO, topics; COPY_KILL, if set, is `point:txid`.
"""

from __future__ import annotations

import os
import signal
from typing import Any

from stormline import Config, Topology, TransactionalTopologyBuilder
from stormline.spouts.kafka import KafkaTransactionalSpout
from stormline.state.kafka import KafkaCommitter, KafkaSink
from stormline.state.kafka.sink_resource import KafkaSinkResource
from stormline.state.kafka.transaction import KafkaTransaction

PARTITIONS, RECORDS, PER_TRANSACTION = 2, 200, 10
TRANSACTIONS = RECORDS // PER_TRANSACTION
POINTS = ("begun", "sent", "prepared", "committed", "recorded")


def die_at(point: str, txid: int) -> None:
    """End this process here, if that was ordered for this transaction, or one that is in a group with it."""
    ordered, _, wanted = os.environ.get("COPY_KILL", "").partition(":")
    if point == ordered and txid >= int(wanted):
        os.kill(os.getpid(), signal.SIGKILL)


def topology() -> Topology:
    """Declare the topology."""
    servers = os.environ["KAFKA_SERVERS"]
    spout = KafkaTransactionalSpout(
        servers, os.environ["COPY_FROM"], ["value", "partition"], records_per_partition=PER_TRANSACTION
    )
    sink = KafkaSink(servers, timeout_secs=30)
    builder = TransactionalTopologyBuilder(os.environ["COPY_TO"], "spout", spout, PARTITIONS)
    committer = KafkaCommitter(sink, os.environ["COPY_TO"], partition="partition")
    builder.set_bolt("out", committer, 2).fields_grouping("spout", ["partition"])
    return builder.build_topology()


config = Config()
config.set_max_spout_pending(4)


# ---------------------------------------------------------------------------------------- the points

_begin, _prepare, _commit = KafkaSinkResource.begin, KafkaTransaction.prepare, KafkaTransaction.commit


def begin(self: KafkaSinkResource, token: Any, registry: Any) -> KafkaTransaction:
    die_at("recorded", token.txid - 1)
    begun = _begin(self, token, registry)
    die_at("begun", token.txid)
    return begun


def prepare(self: KafkaTransaction) -> None:
    die_at("sent", self.token.txid)
    _prepare(self)
    die_at("prepared", self.token.txid)


def commit(self: KafkaTransaction) -> None:
    _commit(self)
    die_at("committed", self.token.txid)


KafkaSinkResource.begin, KafkaTransaction.prepare, KafkaTransaction.commit = begin, prepare, commit  # type: ignore[method-assign]
