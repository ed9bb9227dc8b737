"""A sink's bad days: lost answers, a broker that is killed, users who may not write."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka.admin import AclOperation, ResourceType  # type: ignore[attr-defined]

from stormline.errors import KafkaRefused, StoreUnavailable
from stormline.state.kafka import KafkaSink
from tests.kafka.guarded_broker import GuardedKafka, guarded_broker
from tests.kafka.output import is_settled, sends, values
from tests.kits.components import eventually
from tests.kits.stores import CommitFailed, Process
from tests.services.kafka_broker import Kafka

pytestmark = pytest.mark.proof

PASSWORD = "alice-secret"
ALL = (AclOperation.READ, AclOperation.WRITE, AclOperation.CREATE, AclOperation.DESCRIBE, AclOperation.DESCRIBE_CONFIGS)
OWN = (AclOperation.WRITE, AclOperation.DESCRIBE)


@pytest.fixture(scope="module")
def guarded(kafka: Kafka) -> Iterator[GuardedKafka]:
    """`kafka`: where that one cannot be, this is skipped, too."""
    with guarded_broker() as made:
        yield made


@pytest.fixture
def topic(guarded: GuardedKafka) -> str:
    return guarded.topic()


@pytest.fixture
def process(topic: str) -> Iterator[Process]:
    made = Process(topology=topic)
    yield made
    made.end()


def stored(sink: KafkaSink) -> Any:
    return lambda context, attempt: sink.in_commit(context, attempt).stored


# ---------------------------------------------------------------------------------------- lost answers


@pytest.mark.parametrize("lost", ["request", "reply"])
def test_a_connection_that_breaks_in_a_commit_is_made_again(
    guarded: GuardedKafka, topic: str, process: Process, lost: str
) -> None:
    sink = KafkaSink(guarded.proxied, timeout_secs=60)
    process.commit(1, sends(sink, topic, b"1"))
    before = guarded.proxy.lost
    guarded.proxy.lose(lost)
    process.commit(2, sends(sink, topic, b"2"))
    assert guarded.proxy.lost == before + 1
    process.commit(3, sends(sink, topic, b"3"))
    assert values(guarded, topic) == [b"1", b"2", b"3"]


@pytest.mark.parametrize(("lost", "took_effect"), [("request", False), ("reply", True)])
def test_the_outcome_of_a_commit_without_an_answer_is_found_out_by_the_ledger(
    guarded: GuardedKafka, topic: str, process: Process, lost: str, took_effect: bool
) -> None:
    process.commit(1, sends(KafkaSink(guarded.proxied, timeout_secs=60), topic, b"1"))
    process.end()
    hasty = KafkaSink(guarded.proxied, timeout_secs=5)
    process.commit(2, sends(hasty, topic, b"2"))

    def break_off(context: Any, attempt: Any) -> None:
        def away() -> None:
            guarded.proxy.half_open = True

        guarded.protocol.on_lost = away
        guarded.protocol.lose_request(lost == "request")
        guarded.proxy.lose(lost)

    try:
        with pytest.raises(CommitFailed, match=r"committing: .*_TIMED_OUT.*the batch is replayed") as failed:
            process.commit(3, sends(hasty, topic, b"3"), break_off)
        assert not failed.value.failure.fatal
    finally:
        guarded.protocol.on_lost = lambda: None
        guarded.protocol.lose_request(False)
        guarded.proxy.half_open = False
        guarded.proxy.cut()
    sink = KafkaSink(guarded.proxied, timeout_secs=60)
    assert process.commit(3, sends(sink, topic, b"3"), stored(sink)) == took_effect
    process.commit(4, sends(sink, topic, b"4"))
    assert values(guarded, topic) == [b"1", b"2", b"3", b"4"]


def settle(guarded: GuardedKafka, topic: str) -> None:
    """Wait for the markers of what has committed. Before, a killed Kafka 4.4.0 may come back and never write them.

    It then holds the transaction to be complete (CompleteCommit), and its partitions hold it open for ever.
    """
    eventually(lambda: is_settled(guarded, topic) and is_settled(guarded, f"stormline-ledger-{topic}"), 60)


def committed(process: Process, txid: int, *work: Any) -> bool:
    """Commit, as the driver does: a replay where the batch failed."""
    try:
        process.commit(txid, *work)
    except StoreUnavailable:
        return False
    except CommitFailed as error:
        if error.failure.fatal:
            raise
        return False
    return True


@pytest.mark.parametrize("at", ["begun", "sent", "prepared", "committed"])
def test_a_broker_that_is_killed_doubles_and_loses_nothing(
    guarded: GuardedKafka, topic: str, process: Process, at: str
) -> None:
    sink = KafkaSink(guarded.servers, timeout_secs=5)
    process.commit(1, sends(sink, topic, b"1"))
    settle(guarded, topic)
    phase = process.begin(2)
    kill: dict[str, Callable[[], None]] = {at: guarded.broker.kill}
    transaction = sink.in_commit(phase, phase.attempt)
    try:
        kill.get("begun", bool)()
        with_error = []
        for step, call in {
            "sent": lambda: transaction.send(topic, b"2"),
            "prepared": transaction.prepare,
            "committed": transaction.commit,
        }.items():
            try:
                call()
            except StoreUnavailable as error:
                with_error.append(error)
                break
            if step == at == "committed":
                settle(guarded, topic)
            kill.get(step, bool)()
        assert bool(with_error) == (at != "committed")
        transaction.abort()
    finally:
        guarded.broker.kill()
        guarded.broker.start()
    eventually(lambda: committed(process, 2, sends(sink, topic, b"2")), 120)
    eventually(lambda: committed(process, 3, sends(sink, topic, b"3")), 120)
    assert values(guarded, topic) == [b"1", b"2", b"3"]


def prepared(phase: Any, work: Any, sink: KafkaSink) -> None:
    work(phase, phase.attempt)
    sink.in_commit(phase, phase.attempt).prepare()


@pytest.mark.parametrize(
    ("room", "why"),
    [
        (10, r"the queue was full for 5 s: the brokers take less than is written"),
        (1000, r"301 records were not taken wi"),
    ],
)
def test_records_that_nobody_takes_are_a_replay(
    guarded: GuardedKafka, topic: str, process: Process, room: int, why: str
) -> None:
    sink = KafkaSink(guarded.servers, timeout_secs=5, client={"queue.buffering.max.messages": room})
    eventually(lambda: committed(process, 1, sends(sink, topic, b"1")), 120)
    settle(guarded, topic)
    values_of_2 = [b"%d" % i for i in range(300)]
    begun = process.begin(2)
    sink.in_commit(begun, begun.attempt).send(topic, values_of_2[0])
    guarded.broker.kill()
    try:
        with pytest.raises(StoreUnavailable, match=why):
            prepared(begun, sends(sink, topic, *values_of_2[1:]), sink)
        begun.participants.abort()
    finally:
        guarded.broker.start()
    patient = KafkaSink(guarded.servers, timeout_secs=60)
    eventually(lambda: committed(process, 2, sends(patient, topic, *values_of_2)), 240)
    assert values(guarded, topic) == [b"1", *values_of_2]


# ---------------------------------------------------------------------------------------- who may not


@pytest.fixture
def writer(guarded: GuardedKafka, topic: str, monkeypatch: pytest.MonkeyPatch) -> KafkaSink:
    """A user by TLS and SASL who may write to the ledger, under the transactional.id; not yet to the topic."""
    monkeypatch.setenv("ALICES_PASSWORD", PASSWORD)
    ledger = f"stormline-ledger-{topic}"
    guarded.allow(ResourceType.TOPIC, ledger, *ALL)
    guarded.allow(ResourceType.TRANSACTIONAL_ID, f"{ledger}/{topic}", *OWN)
    return of_user(guarded, "env:ALICES_PASSWORD")


def of_user(guarded: GuardedKafka, password: str, **more: Any) -> KafkaSink:
    client = {
        "security.protocol": "SASL_SSL",
        "ssl.ca.location": str(guarded.ca_file),
        "sasl.mechanism": "PLAIN",
        "sasl.username": "alice",
        "sasl.password": password,
    }
    return KafkaSink(guarded.secured_servers, client=client, timeout_secs=60, **more)


def test_a_user_who_may_writes_by_tls_and_sasl(
    guarded: GuardedKafka, topic: str, process: Process, writer: KafkaSink
) -> None:
    guarded.allow(ResourceType.TOPIC, topic, *OWN)
    eventually(lambda: committed_or_refused(process, 1, sends(writer, topic, b"1")), 60)
    process.commit(2, sends(writer, topic, b"2"))
    assert values(guarded, topic) == [b"1", b"2"]
    assert PASSWORD not in repr(writer)


def committed_or_refused(process: Process, txid: int, *work: Any) -> bool:
    """Commit; False where the broker has not heard of what is allowed yet."""
    try:
        return committed(process, txid, *work)
    except KafkaRefused:
        return False


def test_a_user_who_may_not_write_to_a_topic_stops_the_topology(
    guarded: GuardedKafka, topic: str, process: Process, writer: KafkaSink
) -> None:
    other = guarded.topic()
    with pytest.raises(KafkaRefused, match=rf"writing to topic '{other}': refused: .*may Write and Describe"):
        process.commit(1, sends(writer, other, b"1"))
    guarded.allow(ResourceType.TOPIC, other, AclOperation.DESCRIBE)

    def refused_later() -> bool:
        with pytest.raises((KafkaRefused, CommitFailed)) as failed:
            process.commit(1, sends(writer, other, b"1"))
        return isinstance(failed.value, CommitFailed) and "KafkaRefused" in str(failed.value)

    eventually(refused_later, 60)
    assert values(guarded, other) == []


def test_a_user_who_may_not_use_the_transactional_id_or_make_the_ledger_stops_the_topology(
    guarded: GuardedKafka, topic: str, process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ALICES_PASSWORD", PASSWORD)
    ledger = f"{topic}-ledger"
    sink = of_user(guarded, "env:ALICES_PASSWORD", ledger=ledger)
    with pytest.raises(KafkaRefused, match=r"beginning as a producer: refused: .*transactional"):
        process.commit(1, sends(sink, topic, b"1"))
    guarded.allow(ResourceType.TRANSACTIONAL_ID, f"{ledger}/{topic}", *OWN)

    def at_the_ledger() -> bool:
        with pytest.raises(KafkaRefused) as failed:
            process.commit(1, sends(sink, topic, b"1"))
        return f"ledger '{ledger}': looking at it: refused" in str(failed.value)

    eventually(at_the_ledger, 60)


def test_whether_a_ledger_is_compacted_may_be_unknown(
    guarded: GuardedKafka, topic: str, process: Process, monkeypatch: pytest.MonkeyPatch, caplog: Any
) -> None:
    monkeypatch.setenv("ALICES_PASSWORD", PASSWORD)
    ledger = guarded.topic(cleanup_policy="compact")
    sink = of_user(guarded, "env:ALICES_PASSWORD", ledger=ledger)
    guarded.allow(ResourceType.TOPIC, topic, *OWN)
    guarded.allow(ResourceType.TOPIC, ledger, *OWN, AclOperation.READ)
    guarded.allow(ResourceType.TRANSACTIONAL_ID, f"{ledger}/{topic}", *OWN)
    eventually(lambda: committed_or_refused(process, 1, sends(sink, topic, b"1")), 60)
    assert f"ledger '{ledger}': whether it is compacted is not known: this user may not DescribeConfigs" in caplog.text
    assert values(guarded, topic) == [b"1"]


def test_a_wrong_password_stops_the_topology_soon_and_is_not_shown(
    guarded: GuardedKafka, topic: str, process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WRONG_PASSWORD", "some-wrong-password")
    with pytest.raises(KafkaRefused, match=r"beginning as a producer: refused: .*[Aa]uthentication") as failed:
        process.commit(1, sends(of_user(guarded, "env:WRONG_PASSWORD"), topic, b"1"))
    assert "some-wrong-password" not in str(failed.value)


def test_a_broker_whose_certificate_is_of_nobody_known_is_refused(
    guarded: GuardedKafka, topic: str, process: Process
) -> None:
    client = {"security.protocol": "SSL"}
    with pytest.raises(KafkaRefused, match=r"beginning as a producer: refused: .*certificate"):
        process.commit(1, sends(KafkaSink(guarded.secured_servers, client=client, timeout_secs=60), topic, b"1"))
