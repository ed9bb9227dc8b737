"""What a Kafka spout asks the brokers: topics, their ids, offsets. With reader.py, what knows confluent_kafka."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any, NamedTuple, TypeVar

from confluent_kafka import (
    Consumer,
    ConsumerGroupTopicPartitions,
    IsolationLevel,
    KafkaError,
    KafkaException,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, ConfigResource, OffsetSpec, ResourceType  # type: ignore[attr-defined]

from stormline.spouts.kafka.client_log import CLIENT_LOG, Heard
from stormline.spouts.kafka.errors import KafkaFailed, KafkaRefused
from stormline.spouts.kafka.partitions import Place
from stormline.spouts.kafka.settings import KafkaSettings, is_secret
from stormline.topology.errors import FailedException
from stormline.topology.secrets import resolve_secret

T = TypeVar("T")

GRACE_SECS = 2.0
"""How long a topic must have been missed until it is believed that there is none: brokers learn of a new one late."""

LATEST, EARLIEST = -1, -2
"""As the brokers know them, in place of a time."""

REFUSED = frozenset(
    {
        KafkaError._AUTHENTICATION,
        KafkaError._SSL,
        KafkaError.SASL_AUTHENTICATION_FAILED,
        KafkaError.UNSUPPORTED_SASL_MECHANISM,
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    }
)
AWAY = frozenset(
    {
        KafkaError._TRANSPORT,
        KafkaError._ALL_BROKERS_DOWN,
        KafkaError._TIMED_OUT,
        KafkaError._TIMED_OUT_QUEUE,
        KafkaError._RESOLVE,
        KafkaError._WAIT_COORD,
        KafkaError._WAIT_CACHE,
        KafkaError._DESTROY_BROKER,
        KafkaError._UNKNOWN_BROKER,
        KafkaError._NOENT,  # no leader was found: the partition is new, or has none now
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.REPLICA_NOT_AVAILABLE,
        KafkaError.BROKER_NOT_AVAILABLE,
        KafkaError.REQUEST_TIMED_OUT,
        KafkaError.NETWORK_EXCEPTION,
        KafkaError.OFFSET_NOT_AVAILABLE,
        KafkaError.FENCED_LEADER_EPOCH,
        KafkaError.UNKNOWN_LEADER_EPOCH,
        KafkaError.KAFKA_STORAGE_ERROR,
    }
)
UNKNOWN = frozenset({KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION})


STALE = UNKNOWN | {
    KafkaError._NOENT,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.FENCED_LEADER_EPOCH,
    KafkaError.UNKNOWN_LEADER_EPOCH,
    KafkaError._TIMED_OUT,  # it may have waited for a broker that is no longer the one to ask
    KafkaError._TRANSPORT,
}
"""What a request gets that goes by what was known of partitions and leaders before."""


class TopicFound(NamedTuple):
    """A topic as it is now."""

    topic_id: str
    partitions: int


def failure_of(error: KafkaError, what: str, heard: Sequence[KafkaError] = ()) -> Exception:
    """Return what an error of the brokers', or of the client's library, is for the engine.

    Args:
        error: the error.
        what: what was asked for.
        heard: what the library has told since the last success: why it cannot reach them.
    """
    causes = [error, *heard]
    for cause in causes:
        if cause.code() in REFUSED:
            return KafkaRefused.of(what, cause.str())
    told = "; ".join(dict.fromkeys(cause.str() for cause in causes))
    if error.code() in AWAY or error.code() in UNKNOWN or error.retriable():
        return FailedException(f"{what}: {told}")
    return KafkaFailed(f"{what} failed: {told} ({error.name()})")


class _Stale(Exception):
    """A request went by what was known of the brokers before."""

    def __init__(self, error: KafkaError) -> None:
        super().__init__(error.str())
        self.error = error


class Cluster:
    """A connection of one spout task, or of the coordinator, to the brokers; used in one thread at a time."""

    def __init__(self, settings: KafkaSettings, topology_id: str) -> None:
        self._settings = settings
        self._heard = Heard()
        self._missed_since: dict[str, float] = {}
        ours = {
            "bootstrap.servers": settings.servers,
            "error_cb": self._heard,
            "logger": CLIENT_LOG,
        }
        common = {**ours, **_resolved(settings.client)}
        self._open = ExitStack()
        self.consumer = self._open.enter_context(
            Consumer(
                {
                    # At the default of a second a consumer that holds enough stops for that long.
                    "fetch.queue.backoff.ms": 10,
                    # A partition that is asked for waits for the fetch that runs.
                    "fetch.wait.max.ms": 50,
                    **common,
                    # The library wants a group; where none is asked for nothing is ever written to this one.
                    "group.id": settings.group_id or f"stormline-{topology_id}",
                    "isolation.level": "read_committed",
                    "enable.auto.commit": False,
                    "enable.auto.offset.store": False,
                    "enable.partition.eof": True,
                    "auto.offset.reset": "error",
                }
            )
        )
        of_consumers = ("fetch.", "queued.", "max.poll.", "partition.assignment.", "session.", "heartbeat.", "group.")
        self._admin = self._open.enter_context(
            AdminClient({k: v for k, v in common.items() if not k.startswith(of_consumers)})
        )
        self._timeout = settings.timeout_secs

    def close(self) -> None:
        """End all connections and threads."""
        self._open.close()

    def failure(self, error: KafkaError, what: str) -> Exception:
        """Return what an error is for the engine."""
        self._admin.poll(0)  # lets the library tell what it knows; a consumer's poll might swallow a record
        return failure_of(error, f"{what} at {self._settings.servers}", self._heard.errors)

    def topics(self) -> dict[str, TopicFound]:
        """Return the topics that the spout reads, as they are now; those that are named and not there are left out."""
        settings = self._settings
        names = list(settings.topics)
        if settings.patterns:
            listed = self._asked("the list of topics", lambda: self.consumer.list_topics(timeout=self._timeout))
            names += sorted(name for name in listed.topics if _matches(name, settings.patterns) and name not in names)
        return self.described(names)

    def described(self, names: Sequence[str]) -> dict[str, TopicFound]:
        """Return the topics of these names, as they are now; those that are not there are left out."""
        return self.asking(names)()

    def asking(self, names: Sequence[str]) -> Callable[[], dict[str, TopicFound]]:
        """Ask what the topics of these names are; return what waits for the answer, and gives it as `described`."""
        if not names:
            return dict
        asked = self._ask_topics(names)

        def answer() -> dict[str, TopicFound]:
            try:
                return self._found(asked)
            except _Stale:
                self._refresh(names)
            try:
                return self._found(self._ask_topics(names))
            except _Stale as error:
                raise self.failure(error.error, "asking what topics are") from error

        return answer

    def _ask_topics(self, names: Sequence[str]) -> dict[str, Any]:
        return self._asked(
            "what topics are",
            lambda: self._admin.describe_topics(TopicCollection([*names]), request_timeout=self._timeout),
        )

    def _found(self, asked: Mapping[str, Any]) -> dict[str, TopicFound]:
        found = {}
        for name, future in asked.items():
            try:
                described = future.result()
            except KafkaException as error:
                if error.args[0].code() in UNKNOWN:
                    self._missed_since.setdefault(name, time.monotonic())
                    continue
                if error.args[0].code() in STALE:
                    raise _Stale(error.args[0]) from error
                raise self.failure(error.args[0], f"what topic {name!r} is") from error
            self._missed_since.pop(name, None)
            found[name] = TopicFound(str(described.topic_id), len(described.partitions))
        return found

    def check_missed(self, topic: str) -> None:
        """Return where a topic was not there each time it was looked for, for a while.

        Raises:
            FailedException: it is to be looked for again.
        """
        if time.monotonic() < self._missed_since.get(topic, 0.0) + GRACE_SECS:
            raise FailedException(f"topic {topic!r} is not known at {self._settings.servers} now; asking again")

    def cleanup_policies(self, names: Sequence[str]) -> dict[str, str | None]:
        """Return the cleanup.policy of each topic; None where this user may not know it."""
        asked = self._asked(
            "the settings of topics",
            lambda: self._admin.describe_configs(
                [ConfigResource(ResourceType.TOPIC, name) for name in names], request_timeout=self._timeout
            ),
        )
        found: dict[str, str | None] = {}
        for resource, future in asked.items():
            try:
                found[resource.name] = str(future.result()["cleanup.policy"].value)
            except KafkaException as error:
                if error.args[0].code() not in (*REFUSED, *UNKNOWN):
                    raise self.failure(error.args[0], f"the settings of topic {resource.name!r}") from error
                found[resource.name] = None
        return found

    def offsets(self, places: Iterable[Place], at: int) -> dict[Place, int | KafkaError]:
        """Return for each partition the offset of the first record of a time, in ms; or its error.

        Args:
            places: partitions, asked for in one call.
            at: a time; `EARLIEST`, or `LATEST`: then the last stable offset, before which all is committed or aborted.
        """
        found = self._offsets(places, at)
        again = [place for place, answer in found.items() if isinstance(answer, KafkaError) and answer.code() in STALE]
        if again:
            self._refresh({place.topic for place in again})
            found |= self._offsets(again, at)
        return found

    def _refresh(self, topics: Iterable[str]) -> None:
        """Let the library look at topics anew: what it knows of partitions and leaders it believes for minutes."""
        for topic in topics:
            for handle in (self._admin, self.consumer):
                self._asked(f"topic {topic!r}", partial(handle.list_topics, topic=topic, timeout=self._timeout))

    def _offsets(self, places: Iterable[Place], at: int) -> dict[Place, int | KafkaError]:
        specs: dict[int, Any] = {LATEST: OffsetSpec.latest, EARLIEST: OffsetSpec.earliest}
        spec: Any = specs[at]() if at in specs else OffsetSpec.for_timestamp(at)
        wanted = {TopicPartition(place.topic, place.partition): spec for place in places}
        if not wanted:
            return {}
        # Not by the consumer, for whom one partition without a leader spoils the answer for all.
        asked = self._asked(
            "offsets",
            lambda: self._admin.list_offsets(
                wanted, isolation_level=IsolationLevel.READ_COMMITTED, request_timeout=self._timeout
            ),
        )
        return {Place(one.topic, one.partition): _answer(future, at) for one, future in asked.items()}

    def publish(self, group: str, positions: Mapping[Place, int]) -> None:
        """Write how far is read as the offsets of a consumer group, which nobody of us reads."""
        partitions = [TopicPartition(place.topic, place.partition, at) for place, at in positions.items()]
        asked = self._asked(
            f"the offsets of group {group!r}",
            lambda: self._admin.alter_consumer_group_offsets(
                [ConsumerGroupTopicPartitions(group, partitions)], request_timeout=self._timeout
            ),
        )
        for future in asked.values():
            try:
                written = future.result()
            except KafkaException as error:
                raise self.failure(error.args[0], f"writing the offsets of group {group!r}") from error
            for one in written.topic_partitions:
                if one.error is not None:
                    raise self.failure(one.error, f"writing the offsets of group {group!r}")

    def published(self, group: str, places: Iterable[Place]) -> dict[Place, int]:
        """Return the offsets of a consumer group, of those partitions of which it has one."""
        partitions = [TopicPartition(place.topic, place.partition) for place in places]
        if not partitions:
            return {}
        what = f"the offsets of group {group!r}"
        asked = self._asked(
            what,
            lambda: self._admin.list_consumer_group_offsets(
                [ConsumerGroupTopicPartitions(group, partitions)], request_timeout=self._timeout
            ),
        )
        try:
            found = [one for future in asked.values() for one in future.result().topic_partitions]
        except KafkaException as error:
            raise self.failure(error.args[0], f"asking for {what}") from error
        return {Place(one.topic, one.partition): one.offset for one in found if one.error is None and one.offset >= 0}

    def _asked(self, what: str, ask: Callable[[], T]) -> T:
        try:
            answer = ask()
        except KafkaException as error:
            raise self.failure(error.args[0], f"asking for {what}") from error
        self._heard.forget()
        return answer


def _answer(future: Any, at: int) -> int | KafkaError:
    try:
        offset = int(future.result().offset)
        # A broker that does not answer in time makes no error here, but an offset that is none. -1: none is that late.
        none = -1 if at >= 0 else 0
        return offset if offset >= none else KafkaError(KafkaError._TIMED_OUT, "no offset came in time")
    except KafkaException as error:
        found: KafkaError = error.args[0]
        return found


def _matches(name: str, patterns: Sequence[re.Pattern[str]]) -> bool:
    return not name.startswith("__") and any(pattern.fullmatch(name) for pattern in patterns)


def _resolved(client: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings of the client with the secrets that they refer to, read now."""
    return {
        name: resolve_secret(value, f"the Kafka setting {name}") if is_secret(name) else value
        for name, value in client.items()
    }
