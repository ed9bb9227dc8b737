"""KafkaTwoPhaseSink: what those look for who port a job of Flink's, and what they are to use."""

from __future__ import annotations

from typing import Any

from stormline.state.kafka.errors import InvalidKafkaSink

WHY = (
    "Kafka has no prepared transaction that outlives its producer: the next producer with the same transactional.id "
    "aborts what is open, and the broker aborts what is older than transaction.timeout.ms, decided or not (KIP-939 is "
    "to change that; neither brokers up to 4.4 nor librdkafka up to 2.16 have it). So what executors write, and the "
    "driver commits later, would be lost at times"
)


def cannot_prepare(who: str, servers: object, topic: object) -> str:
    """Return why Kafka is no two-phase sink, and what is to be used in its place.

    Args:
        who: what was asked for.
        servers: the brokers.
        topic: where records were to go.
    """
    return (
        f"{who}: {WHY}. Use KafkaCommitter(KafkaSink({servers!r}), {topic!r}, value=…, key=…) as the bolt: it writes "
        "each transaction, at the commit, in one of Kafka's with a ledger in it, exactly once and in order, and may "
        "stand beside TwoPhaseCommitBolts of other sinks (docs/kafka.md, 'From Flink's Kafka sink')"
    )


class KafkaTwoPhaseSink:
    """Says why there is none, and what to use: `KafkaCommitter`.

    Flink's `KafkaSink` (`FlinkKafkaProducer` before) is a two-phase sink with `DeliveryGuarantee.EXACTLY_ONCE`: it
    takes up another process's producer by reflection, and loses what the brokers have aborted meanwhile.

    Args:
        servers (str): Brokers to begin with.
        topic (str): Where records are to go.
        **how (Any): Anything else.

    Raises:
        InvalidKafkaSink: Always.
    """

    def __init__(self, servers: str = "host:9092", topic: str = "topic", **how: Any) -> None:
        raise InvalidKafkaSink(cannot_prepare(f"{type(self).__name__}({servers!r}, {topic!r})", servers, topic))
