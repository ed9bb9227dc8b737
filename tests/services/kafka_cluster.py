"""Three brokers on loopback, each of them a controller, too: what is acknowledged is with two of them at least."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from confluent_kafka import KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import NewTopic, OffsetSpec  # type: ignore[attr-defined]

from examples.kafka_broker import KafkaBroker
from tests.chaos.processes import die_with_parent
from tests.kits.components import eventually
from tests.services.free_port import free_port
from tests.services.kafka_broker import Kafka, need_jars

NODES = (1, 2, 3)
STARTS_MAX = 3
REPLICATED = {
    "default.replication.factor": 3,
    "min.insync.replicas": 2,
    **{f"{topic}.replication.factor": 3 for topic in ("offsets.topic", "transaction.state.log")},
    **{f"{topic}.min.isr": 2 for topic in ("offsets.topic", "transaction.state.log")},
    "controller.quorum.election.timeout.ms": 500,
    "controller.quorum.fetch.timeout.ms": 1000,
}
TRANSACTIONS = "__transaction_state"
SECS = 120.0


class KafkaCluster(Kafka):
    """Three brokers: `nodes` by id. `servers` names all of them."""

    def __init__(self, nodes: dict[int, KafkaBroker]) -> None:
        super().__init__(nodes[1], "", ",".join(node.servers for node in nodes.values()))
        self.nodes = nodes

    def replicated(self, leader: int) -> str:
        """Make a topic of one partition, which all brokers have; return its name."""
        name = self.free_name()
        others = [node for node in self.nodes if node != leader]
        [made] = self.admin.create_topics([NewTopic(name, 1, replica_assignment=[[leader, *others]])]).values()
        made.result()
        eventually(lambda: self.leader_of(name) == leader, SECS)
        return name

    def _partition(self, topic: str) -> Any:
        try:
            return self.admin.describe_topics(TopicCollection([topic]))[topic].result().partitions[0]
        except (KafkaException, IndexError):
            return None

    def leader_of(self, topic: str) -> int:
        """Return the leader of a topic's first partition; 0: none that is known."""
        found = self._partition(topic)
        return found.leader.id if found is not None and found.leader is not None else 0

    def coordinator(self) -> int:
        """Return the broker that coordinates all transactions; 0: none yet."""
        return self.leader_of(TRANSACTIONS)

    def end_of(self, topic: str) -> int:
        """Return where a topic's first partition ends."""
        place = TopicPartition(topic, 0)
        [found] = self.admin.list_offsets({place: OffsetSpec.latest()}).values()
        return int(found.result().offset)

    def make_whole(self) -> None:
        """Start what has been killed, and wait until all brokers have what is written."""
        for node in self.nodes.values():
            if not node.runs:
                node.start()
        eventually(self._in_sync, SECS)

    def _in_sync(self) -> bool:
        try:
            topics = self.admin.list_topics(timeout=10).topics.values()
        except KafkaException:
            return False
        return all(len(one.isrs) == len(self.nodes) for topic in topics for one in topic.partitions.values())


@contextmanager
def kafka_cluster() -> Iterator[KafkaCluster]:
    """Three brokers that have ended when the block has."""
    need_jars()
    for left in reversed(range(STARTS_MAX)):
        with ExitStack() as stack:
            nodes = {node: KafkaBroker(free_port(), free_port()) for node in NODES}
            voters = ",".join(f"{id_}@127.0.0.1:{node.controller_port}" for id_, node in nodes.items())
            for id_, node in nodes.items():
                stack.callback(node.stop)
                node.cluster_id = nodes[1].cluster_id
                node.process_options["preexec_fn"] = die_with_parent
                node.configure({**REPLICATED, "node.id": id_, "controller.quorum.voters": voters})
            try:
                for node in nodes.values():
                    node.begin()
                for node in nodes.values():
                    node.wait()
            except RuntimeError:  # another process may have taken a port meanwhile
                if not left:
                    raise
                continue
            cluster = KafkaCluster(nodes)
            try:
                yield cluster
            finally:
                cluster.close()
            return
