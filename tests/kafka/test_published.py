"""Committed positions are published to a consumer group where the user names one, and nothing else is."""

from __future__ import annotations

from typing import Any

from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition

from stormline import InProcessCluster
from tests.kafka.topologies import begin_anew, drain, submit
from tests.kits.components import eventually
from tests.services.kafka_broker import Kafka


def offsets(kafka: Kafka, group: str, topic: str) -> list[int]:
    """Return the offsets of a group, -1001 where it has none."""
    wanted = ConsumerGroupTopicPartitions(group, [TopicPartition(topic, 0), TopicPartition(topic, 1)])
    (asked,) = kafka.admin.list_consumer_group_offsets([wanted]).values()
    return [found.offset for found in asked.result().topic_partitions]


def test_the_group_shows_what_is_committed(kafka: Kafka, kind: Any) -> None:
    begin_anew()
    topic = kafka.topic(2)
    kafka.write(topic, [b"x"] * 7, 0)
    kafka.write(topic, [b"y"] * 3, 1)
    spout = kind(kafka.servers, topic, ["value"], group_id=topic, records_per_partition=4)
    cluster = InProcessCluster()
    assert len(drain(spout, 2, cluster)) == 10
    assert offsets(kafka, topic, topic) == [7, 3]
    with cluster:
        submit(cluster, spout, 2)
        kafka.write(topic, [b"z"], 1)
        eventually(lambda: offsets(kafka, topic, topic) == [7, 4], 60)
    groups = {group.group_id for group in kafka.admin.list_consumer_groups().result().valid}
    assert "stormline-kafka" not in groups
