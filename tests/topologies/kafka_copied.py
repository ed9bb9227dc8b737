"""Copies a Kafka topic into another one; its driver keeps appointments at the points of a commit.

Environment: KAFKA_SERVERS; COPY_FROM and COPY_TO, topics; COPY_FOLDER, where appointments are laid.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from stormline import Config, Topology, TransactionalTopologyBuilder
from stormline.spouts.kafka import KafkaTransactionalSpout
from stormline.state.kafka import KafkaCommitter, KafkaSink
from stormline.state.kafka.sink_resource import KafkaSinkResource
from stormline.state.kafka.transaction import KafkaTransaction
from tests.chaos import deaths

PARTITIONS, PER_TRANSACTION = 2, 10

RECORDED, BEGUN, SENT, PREPARED, COMMITTED = "recorded", "begun", "sent", "prepared", "committed"
POINTS = (RECORDED, BEGUN, SENT, PREPARED, COMMITTED)
"""In this order: the commit before is recorded, this one begins, all is sent, is acknowledged, is committed."""


def topology() -> Topology:
    """Declare the topology, in the driver that runs it."""
    keep_appointments()
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


def keep_appointments() -> None:
    """Let this process come to the points of its commits."""
    begin, prepare, commit = KafkaSinkResource.begin, KafkaTransaction.prepare, KafkaTransaction.commit
    folder = Path(os.environ["COPY_FOLDER"])

    def meeting_begin(self: KafkaSinkResource, token: Any, registry: Any) -> KafkaTransaction:
        deaths.meet(folder, RECORDED)
        begun = begin(self, token, registry)
        deaths.meet(folder, BEGUN)
        return begun

    def meeting_prepare(self: KafkaTransaction) -> None:
        deaths.meet(folder, SENT)
        prepare(self)
        deaths.meet(folder, PREPARED)

    def meeting_commit(self: KafkaTransaction) -> None:
        commit(self)
        deaths.meet(folder, COMMITTED)

    KafkaSinkResource.begin = meeting_begin  # type: ignore[method-assign]
    KafkaTransaction.prepare, KafkaTransaction.commit = meeting_prepare, meeting_commit  # type: ignore[method-assign]
