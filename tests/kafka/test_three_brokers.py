"""Three brokers, of which one is killed in a commit: the leader of what is written, or the coordinator."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from stormline import Fields, InProcessCluster, MemoryTransactionalSpout, TransactionalTopologyBuilder
from stormline.errors import StoreUnavailable
from stormline.state.kafka import KafkaCommitter, KafkaSink
from tests.kafka.output import sends, values
from tests.kafka.test_sink_faults import committed
from tests.kits.components import eventually
from tests.kits.stores import Process
from tests.services.kafka_cluster import KafkaCluster, kafka_cluster

pytestmark = pytest.mark.proof

SECS = 120.0


@pytest.fixture(scope="module")
def three() -> Iterator[KafkaCluster]:
    with kafka_cluster() as made:
        yield made


@pytest.fixture
def whole(three: KafkaCluster) -> Iterator[KafkaCluster]:
    """The three, all of which run, before the test and after it."""
    yield three
    three.make_whole()


@pytest.mark.parametrize("at", ["sent", "prepared", "committed"])
@pytest.mark.parametrize("victim", ["leader", "coordinator"])
def test_a_broker_that_dies_in_a_commit_doubles_and_loses_nothing_and_the_others_go_on(
    whole: KafkaCluster, victim: str, at: str
) -> None:
    sink = KafkaSink(whole.servers, timeout_secs=60)
    first = whole.replicated(leader=1)
    process = Process(topology=first)
    process.commit(1, sends(sink, first, b"1"))
    coordinator = whole.coordinator()
    assert coordinator
    leader = next(node for node in whole.nodes if node != coordinator)
    topic = whole.replicated(leader)
    phase = process.begin(2)
    transaction = sink.in_commit(phase, phase.attempt)
    steps: dict[str, Callable[[], None]] = {
        "sent": lambda: transaction.send(topic, b"2"),
        "prepared": transaction.prepare,
        "committed": transaction.commit,
    }
    failed = False
    for step, call in steps.items():
        try:
            call()
        except StoreUnavailable:
            failed = True
            transaction.abort()
            break
        if step == at:
            whole.nodes[leader if victim == "leader" else coordinator].kill()
    if failed:
        eventually(lambda: committed(process, 2, sends(sink, topic, b"2")), SECS)
    eventually(lambda: committed(process, 3, sends(sink, topic, b"3")), SECS)
    assert values(whole, topic) == [b"2", b"3"], "while one is away"
    process.end()
    whole.make_whole()
    assert values(whole, topic) == [b"2", b"3"]


def test_a_topology_goes_on_while_brokers_are_killed_one_after_another(whole: KafkaCluster) -> None:
    topic = whole.replicated(leader=2)
    given = [b"%d" % i for i in range(2000)]
    spout = MemoryTransactionalSpout({0: [(value,) for value in given]}, Fields("value"), 2)
    builder = TransactionalTopologyBuilder(topic, "spout", spout)
    builder.set_bolt("out", KafkaCommitter(KafkaSink(whole.servers, timeout_secs=60), topic)).global_grouping("spout")
    config = {"topology.max.spout.pending": 4, "topology.message.timeout.secs": 300, "topology.commit.group.max": 2}
    with InProcessCluster() as cluster:
        handle = cluster.submit_topology(topic, config, builder.build_topology())
        for node in (whole.leader_of(topic), whole.coordinator(), 3):
            before = whole.end_of(topic)
            eventually(lambda: whole.end_of(topic) > before, SECS)  # noqa: B023
            whole.nodes[node].kill()
            whole.make_whole()
        assert whole.end_of(topic) < len(given), "it is over too soon: give it more"
        handle.await_drained(timeout_secs=240)
    assert values(whole, topic) == given
