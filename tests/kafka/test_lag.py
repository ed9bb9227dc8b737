"""`stormline lag` with a real broker: what is committed beside the log's end; what is away, gone or new is said."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from examples import kafka_words
from stormline import Fields, InProcessCluster, MemoryTransactionalSpout, TransactionalTopologyBuilder
from stormline.cli import lag as lag_module
from stormline.cli.main import main
from stormline.testing import MemoryStateServer
from tests.kafka.topologies import FailNowAndThen, Store, begin_anew
from tests.kits.audited import Reader
from tests.kits.components import eventually
from tests.services.free_port import free_port
from tests.services.kafka_broker import Kafka, in_transaction


def topology(spout: Any) -> Any:
    builder = TransactionalTopologyBuilder("lagging", "spout", spout)
    builder.set_bolt("fails", FailNowAndThen()).shuffle_grouping("spout")
    builder.set_bolt("store", Store()).global_grouping("fails")
    return builder.build_topology()


def call(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["lag", *arguments], prog_name="stormline")


class Lagging:
    """A topology whose state is in memory, under the name by which the command finds it."""

    def __init__(self) -> None:
        self.module = types.ModuleType("lagging_topology")
        self.server = MemoryStateServer()

    def drain(self, spout: Any) -> None:
        self.declare(spout)
        with InProcessCluster(self.server) as cluster:
            cluster.submit_topology("lagging", {}, self.module.topology).await_drained(60)

    def declare(self, spout: Any) -> None:
        self.module.topology = topology(spout)  # type: ignore[attr-defined]

    def said(self) -> Any:
        done = call("lagging_topology", "--format", "json")
        assert (done.exit_code, done.stderr) == (0, "")
        return json.loads(done.stdout)

    def partitions(self) -> list[list[Any]]:
        """Return partition, committed, published, end, lag of each partition that has no problem."""
        names = ("partition", "committed", "published", "end", "lag")
        return [[one[name] for name in names] for one in self.said()["partitions"] if one["problem"] is None]


class _Reader(Reader):
    """Of a topology that has never run: it holds nothing."""

    def get(self, path: str) -> Any:
        if self._topology not in self._server.topologies:
            raise KeyError(path)
        return super().get(path)


@pytest.fixture
def lagging(monkeypatch: pytest.MonkeyPatch) -> Lagging:
    begin_anew()
    made = Lagging()

    @contextmanager
    def state(*_: Any) -> Iterator[Any]:
        yield _Reader(made.server, "lagging")

    monkeypatch.setattr(lag_module, "stored_state", state)
    monkeypatch.setitem(sys.modules, "lagging_topology", made.module)
    return made


def test_committed_positions_stand_beside_the_ends(kafka: Kafka, kind: Any, lagging: Lagging) -> None:
    topic = kafka.topic(2)
    kafka.write(topic, [b"x"] * 7, 0)
    kafka.write(topic, [b"y"] * 3, 1)
    spout = kind(kafka.servers, topic, ["value"], records_per_partition=4)
    lagging.declare(spout)
    assert lagging.partitions() == [[0, None, None, 7, 7], [1, None, None, 3, 3]]
    lagging.drain(spout)
    kafka.write(topic, [b"z"] * 5, 1)
    said = lagging.said()
    assert lagging.partitions() == [[0, 7, None, 7, 0], [1, 3, None, 8, 5]]
    assert (said["topology"], said["spout"], said["group"]) == ("lagging", "spout", None)
    assert (said["lag"], said["partitions_unknown"], said["txid_committed"]) == (5, 0, 2)
    lines = call("lagging_topology").stdout.splitlines()
    assert lines[0].split() == ["topic", "partition", "committed", "end", "lag"]
    assert [line.split() for line in lines[1:-1]] == [[topic, "0", "7", "7", "0"], [topic, "1", "3", "8", "5"]]
    assert lines[-1] == "lag in all: 5 offsets; transaction 2 is committed"


def test_the_groups_positions_stand_beside_them(kafka: Kafka, kind: Any, lagging: Lagging) -> None:
    topic = kafka.topic(2)
    kafka.write(topic, [b"x"] * 7, 0)
    lagging.declare(kind(kafka.servers, topic, ["value"], group_id=topic))
    lagging.drain(kind(kafka.servers, topic, ["value"], group_id=topic))
    assert lagging.partitions()[0] == [0, 7, 7, 7, 0]
    assert f"group {topic}" in call("lagging_topology").stdout.splitlines()[0]


def test_an_open_transaction_and_what_follows_it_count_once_they_are_committed(
    kafka: Kafka, kind: Any, lagging: Lagging
) -> None:
    topic = kafka.topic()
    producer = kafka.producer(f"{topic}-writer")
    in_transaction(producer, topic, [b"1", b"2"])
    lagging.declare(kind(kafka.servers, topic, ["value"]))
    eventually(lambda: lagging.partitions() == [[0, None, None, 3, 3]], 60)
    producer.begin_transaction()
    producer.produce(topic, b"3")
    producer.flush(60)
    kafka.write(topic, [b"4"])
    assert lagging.partitions() == [[0, None, None, 3, 3]]
    producer.commit_transaction(60)
    eventually(lambda: lagging.partitions() == [[0, None, None, 6, 6]], 60)


@pytest.mark.parametrize(("start", "lag"), [("latest", 0), ("earliest", 4), ("offset", 1)])
def test_before_the_first_transaction_it_counts_from_where_the_topology_will_begin(
    kafka: Kafka, kind: Any, lagging: Lagging, start: str, lag: int
) -> None:
    topic = kafka.topic()
    kafka.write(topic, [b"x"] * 4)
    lagging.declare(kind(kafka.servers, topic, ["value"], start={(topic, 0): 3} if start == "offset" else start))
    assert lagging.partitions() == [[0, None, None, 4, lag]]
    assert call("lagging_topology").stdout.endswith(f"{lag} offsets; no transaction is committed yet\n")


def test_partitions_that_came_later_count_from_their_beginning(kafka: Kafka, kind: Any, lagging: Lagging) -> None:
    from confluent_kafka.admin import NewPartitions  # type: ignore[attr-defined]

    topic = kafka.topic()
    kafka.write(topic, [b"x"] * 4)
    spout = kind(kafka.servers, topic, ["value"], start="latest")
    lagging.drain(spout)
    for grown in kafka.admin.create_partitions([NewPartitions(topic, 2)]).values():
        grown.result()
    producer = kafka.producer()
    producer.produce(topic, b"y", partition=1)
    assert producer.flush(60) == 0
    eventually(lambda: lagging.partitions() == [[0, 4, None, 4, 0], [1, None, None, 1, 1]], 60)


def test_what_is_gone_is_said(kafka: Kafka, kind: Any, lagging: Lagging) -> None:
    from confluent_kafka import TopicPartition

    topic = kafka.topic()
    kafka.write(topic, [b"x"] * 4)
    spout = kind(kafka.servers, topic, ["value"])
    lagging.drain(spout)
    kafka.write(topic, [b"x"] * 6)
    for deleted in kafka.admin.delete_records([TopicPartition(topic, 0, 7)]).values():
        deleted.result()
    (one,) = lagging.said()["partitions"]
    assert one["problem"] == "the offsets 4 to 6 are gone, deleted before they were read"
    assert (one["committed"], one["end"], one["lag"]) == (4, 10, 3)
    kafka.delete(topic)
    eventually(lambda: lagging.said()["partitions"][0]["end"] is None, 60)
    (one,) = lagging.said()["partitions"]
    assert one["problem"] == "the topic was deleted: what had not been read of the old one is lost"
    assert one["committed"] == 4
    assert (
        call("lagging_topology")
        .stdout.splitlines()[-1]
        .startswith("lag in all: 0 offsets, and what 1 of 1 partitions have; transaction ")
    )
    kafka.topic(name=topic)
    kafka.write(topic, [b"y"])
    eventually(lambda: len(lagging.said()["partitions"]) == 2, 60)
    old, new = lagging.said()["partitions"]
    assert old["problem"].startswith("the topic was deleted and made anew: ")
    assert (new["committed"], new["end"], new["lag"], new["problem"]) == (None, 1, 1, None)


def test_a_topology_without_kafka_is_told() -> None:
    module = types.ModuleType("without_kafka")
    builder = TransactionalTopologyBuilder("words", "spout", MemoryTransactionalSpout({0: ["a"]}, Fields("word"), 1))
    builder.set_bolt("store", Store()).global_grouping("spout")
    module.topology = builder.build_topology()  # type: ignore[attr-defined]
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "without_kafka", module)
        done = call("without_kafka")
    assert done.exit_code == 1
    assert done.stderr == (
        "error: topology 'words' reads no Kafka: its spout 'spout' is a MemoryTransactionalSpout, expected a "
        "KafkaTransactionalSpout or an OpaqueKafkaTransactionalSpout; only those know where their sources end\n"
    )


def test_brokers_that_are_away_are_told(kind: Any, lagging: Lagging) -> None:
    nobody = f"127.0.0.1:{free_port()}"
    lagging.declare(kind(nobody, "topic", ["value"], timeout_secs=0.5))
    done = call("lagging_topology")
    assert done.exit_code == 1
    assert done.stderr.startswith(f"error: the brokers at {nobody} do not answer: asking for ")
    assert "start them, correct the servers given to the spout, or give it a longer timeout_secs" in done.stderr


def test_a_topic_that_never_was_is_told(kafka: Kafka, kind: Any, lagging: Lagging) -> None:
    lagging.declare(kind(kafka.servers, "no-such", ["value"]))
    done = call("lagging_topology")
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr.startswith("error: topic 'no-such' does not exist at 127.0.0.1")


@pytest.mark.proof
def test_it_is_asked_while_the_example_runs_and_when_it_has_stopped(
    kafka: Kafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    topic = kafka.topic(kafka_words.PARTITIONS)
    monkeypatch.setattr(kafka_words, "TOPIC", topic)
    monkeypatch.setenv("KAFKA_SERVERS", kafka.servers)
    target = "examples.kafka_words"
    refused = call(target)
    assert refused.stderr.startswith("error: there is no state of a topology in .stormline/kafka-words; run it first")
    kafka.write(topic, [b"the ox slept"] * 30)
    run = f"from examples import kafka_words as k; k.TOPIC = {topic!r}; from stormline.cli.main import main; main()"
    driver = subprocess.Popen(
        [sys.executable, "-c", run, "run", target, "--keep-running", "--master", "local[2]"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    database = tmp_path / ".stormline" / "kafka-words.sqlite"

    def lag() -> Any:
        done = call(target, "--format", "json")
        return json.loads(done.stdout) if done.exit_code == 0 else None

    try:
        eventually(database.exists, 120)
        eventually(lambda: (found := lag()) is not None and found["lag"] == 0, 120)
        assert driver.poll() is None
    finally:
        driver.send_signal(signal.SIGTERM)
        assert driver.wait(120) == 143
    kafka.write(topic, [b"the ox slept"] * 5)
    assert [one["lag"] for one in lag()["partitions"]] == [5, 0]
