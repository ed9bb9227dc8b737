"""How far a topology lags behind the ends of its Kafka partitions. Asks the brokers, and writes nothing there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from confluent_kafka import KafkaError

from stormline.spouts.kafka.client import EARLIEST, LATEST, Cluster, TopicFound
from stormline.spouts.kafka.coordinator import starts_of
from stormline.spouts.kafka.errors import BrokersAway, TopicMissing
from stormline.spouts.kafka.partitions import PartitionTable, Place, positions_of
from stormline.spouts.kafka.settings import KafkaSettings
from stormline.topology.contracts import Metadata
from stormline.topology.errors import FailedException

Offset = int | KafkaError


@dataclass(frozen=True, slots=True)
class PartitionLag:
    """One partition; all but its number are offsets, and None where they are not known.

    `committed` is the offset at which the next batch begins, None where no batch has been committed of it; `published`
    is what the consumer group holds; `end` the last stable offset, up to which all is committed or aborted; `lag` the
    offsets between, markers of transactions and aborted records among them. `problem` says what is wrong, or nothing.
    """

    topic: str
    partition: int
    committed: int | None
    published: int | None
    end: int | None
    lag: int | None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class _Asked:
    """What the brokers have answered."""

    topics: Mapping[str, TopicFound]
    starts: Mapping[Place, Offset | None]
    earliest: Mapping[Place, Offset]
    ends: Mapping[Place, Offset]
    published: Mapping[Place, int]


def measure(
    settings: KafkaSettings, topology_id: str, described: Metadata, positions: Mapping[int, Metadata]
) -> list[PartitionLag]:
    """Return the lag of all partitions that are read or will be, ordered by topic and number.

    Args:
        settings: how the spout was declared.
        topology_id: the topology's.
        described: what the coordinator said of the partitions with the last batch; None: there is none.
        positions: metadata of each partition after the last committed batch, by number.

    Raises:
        BrokersAway: no broker answers.
        TopicMissing: a topic that is named is not there, and never was.
        KafkaRefused, KafkaFailed: the brokers refuse.
        CorruptData: what is stored is not what a Kafka spout stores.
    """
    table = PartitionTable.from_metadata(described)
    committed = positions_of(positions)
    cluster = Cluster(settings, topology_id)
    try:
        asked = _ask(settings, cluster, table)
    except FailedException as error:
        raise BrokersAway.of(settings.servers, str(error)) from error
    finally:
        cluster.close()
    gone = [
        _of_another(place, committed.get(number), place.topic in asked.topics)
        for place, number in table.numbers().items()
        if not _is_there(table, asked.topics, place)
    ]
    there = [
        _of(place, committed.get(number) if number is not None else None, asked)
        for place, number in _present(table, asked.topics).items()
    ]
    return sorted([*gone, *there], key=lambda one: (one.topic, one.partition, one.end is not None))


def _ask(settings: KafkaSettings, cluster: Cluster, table: PartitionTable) -> _Asked:
    topics = cluster.topics()
    for topic in settings.topics:
        if topic not in topics and topic not in table.ids:
            raise TopicMissing.named(topic, settings.servers)
    # Topics that are stored and match no pattern any more are read on, as the spout does.
    topics |= cluster.described([topic for topic in table.ids if topic not in topics])
    numbers = _present(table, topics)
    places = list(numbers)
    earliest = cluster.offsets(places, EARLIEST)
    starts: dict[Place, Offset | None] = {
        place: None if number is None else table.start(number) for place, number in numbers.items()
    }
    if not len(table):
        starts |= zip(places, starts_of(settings, cluster, places) or [None] * len(places), strict=True)
    group = settings.group_id
    published = cluster.published(group, places) if group else {}
    return _Asked(topics, starts, earliest, cluster.offsets(places, LATEST), published)


def _is_there(table: PartitionTable, topics: Mapping[str, TopicFound], place: Place) -> bool:
    return place.topic in topics and topics[place.topic].topic_id == table.ids[place.topic]


def _present(table: PartitionTable, topics: Mapping[str, TopicFound]) -> dict[Place, int | None]:
    """Return the partitions that are there, each with the number under which it is stored, if it is."""
    stored = {place: number for place, number in table.numbers().items() if _is_there(table, topics, place)}
    places: Sequence[Place] = [Place(name, i) for name, found in topics.items() for i in range(found.partitions)]
    return {place: stored.get(place) for place in places}


def _of_another(place: Place, committed: int | None, made_anew: bool) -> PartitionLag:
    now = "was deleted and made anew" if made_anew else "was deleted"
    problem = f"the topic {now}: what had not been read of the old one is lost"
    return PartitionLag(place.topic, place.partition, committed, None, None, None, problem)


def _of(place: Place, committed: int | None, asked: _Asked) -> PartitionLag:
    earliest, end = asked.earliest[place], asked.ends[place]
    published = asked.published.get(place)
    for answer in (earliest, end):
        if isinstance(answer, KafkaError):
            problem = f"it does not say how far it goes: {answer.str()}"
            return PartitionLag(place.topic, place.partition, committed, published, None, None, problem)
    assert isinstance(earliest, int)
    assert isinstance(end, int)
    start = asked.starts[place]
    at = committed if committed is not None else start if isinstance(start, int) else earliest
    problem = ""
    if at < earliest:
        problem = f"the offsets {at} to {earliest - 1} are gone, deleted before they were read"
    elif at > end:
        problem = f"it ends before offset {at}, where the next batch begins: its log was truncated"
    lag = None if at > end else end - max(at, earliest)
    return PartitionLag(place.topic, place.partition, committed, published, end, lag, problem)
