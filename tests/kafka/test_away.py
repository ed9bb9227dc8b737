"""Partitions that are away: the opaque spout goes on without them, the other one waits."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

import psutil
import pytest
from confluent_kafka.admin import NewTopic  # type: ignore[attr-defined]

from examples.kafka_broker import KafkaBroker
from stormline import FailedException, TransactionAttempt
from stormline.spouts.kafka import KafkaTransactionalSpout, OpaqueKafkaTransactionalSpout
from tests.chaos.processes import die_with_parent
from tests.kafka.by_hand import ByHand, Rows
from tests.kafka.conftest import Open
from tests.kits.components import eventually
from tests.services.free_port import free_port
from tests.services.kafka_broker import Kafka


@contextmanager
def hanging(kafka: Kafka) -> Iterator[None]:
    """Let the broker hang while the block runs: connections stay open, and nothing answers."""
    pid = kafka.broker.pid
    os.kill(pid, signal.SIGSTOP)
    try:
        eventually(lambda: psutil.Process(pid).status() == psutil.STATUS_STOPPED)
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def attempted(spout: ByHand, partition: int) -> None:
    """Let an idempotent spout try once to give a new batch of a partition."""
    spout.emitter.begin_batch(spout.batches[-1].described, spout.positions, {})
    spout.emitter.emit_partition_batch_new(TransactionAttempt(9, 1), Rows(), partition, spout.positions[partition])


def test_a_broker_that_hangs_fails_the_attempt_or_gives_nothing_and_is_read_when_it_answers_again(
    kafka: Kafka, open_spout: Open
) -> None:
    topic = kafka.topic()
    kafka.write(topic, [b"1"])
    waits = open_spout(KafkaTransactionalSpout, topic, timeout_secs=1)
    goes_on = open_spout(OpaqueKafkaTransactionalSpout, topic, timeout_secs=1)
    assert waits.until(1) == goes_on.until(1) == [b"1"]
    kafka.write(topic, [b"2"])
    with hanging(kafka):
        with pytest.raises(FailedException):
            attempted(waits, 0)
        assert goes_on.next() == []
    assert waits.until(1) == goes_on.until(1) == [b"2"]


@pytest.mark.proof
def test_a_partition_without_a_leader_keeps_nobody_waiting_and_loses_nothing(kafka: Kafka, open_spout: Open) -> None:
    second = KafkaBroker(free_port(), free_port())
    first = kafka.broker
    second.cluster_id = first.cluster_id
    second.process_options["preexec_fn"] = die_with_parent
    second.configure(
        {
            "process.roles": "broker",
            "node.id": 2,
            "controller.quorum.voters": f"1@127.0.0.1:{first.controller_port}",
            "listeners": f"PLAINTEXT://127.0.0.1:{second.port}",
        }
    )
    try:
        second.start()
        topic = "on-two-brokers"

        def made() -> bool:
            (future,) = kafka.admin.create_topics([NewTopic(topic, 2, replica_assignment=[[1], [2]])]).values()
            return future.exception() is None or "ALREADY" in str(future.exception())

        eventually(made, 120)  # the controller must know the second broker
        kafka.write(topic, [b"a1"], 0)
        kafka.write(topic, [b"b1"], 1)
        waits = open_spout(KafkaTransactionalSpout, topic, timeout_secs=2)
        goes_on = open_spout(OpaqueKafkaTransactionalSpout, topic, timeout_secs=2)
        assert sorted(waits.until(2)) == sorted(goes_on.until(2)) == [b"a1", b"b1"]
        kafka.write(topic, [b"b2"], 1)
        second.kill()
        kafka.write(topic, [b"a2"], 0)
        assert goes_on.until(1) == [b"a2"]

        def fails() -> bool:
            try:
                attempted(waits, 1)
            except FailedException:
                return True
            return False

        eventually(fails, 60)
        second.start()
        assert goes_on.until(1) == [b"b2"]
        assert sorted(waits.until(2)) == [b"a2", b"b2"]
    finally:
        second.stop()
