"""KafkaSettings: how a Kafka spout was declared, checked."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from stormline.spouts.kafka.errors import InvalidKafkaSpout
from stormline.topology.errors import did_you_mean
from stormline.topology.fields import Fields
from stormline.topology.secrets import is_reference, names_a_secret

ATTEMPT_FIELD = "attempt"
PARTS = ("key", "value", "headers", "timestamp", "topic", "partition", "offset")
"""What a record consists of; any other name in `fields` is a field of its decoded value."""

UNREADABLE = "unreadable"
"""The stream of records that cannot be read, where they are emitted."""

UNREADABLE_FIELDS = Fields(ATTEMPT_FIELD, "topic", "partition", "offset", "timestamp", "key", "value", "problem")
OURS = {
    "bootstrap.servers": "servers",
    "group.id": "group_id",
    "isolation.level": None,
    "enable.auto.commit": None,
    "enable.auto.offset.store": None,
    "enable.partition.eof": None,
    "auto.offset.reset": "start",
    "error_cb": None,
    "on_commit": None,
}
"""Settings of the client that are the spout's own, and its argument for what they say."""

SECRETS = ("ssl.key.pem",)
"""Settings that hold secrets, besides those that are called so."""

Topics = str | re.Pattern[str] | Sequence[str | re.Pattern[str]]
Start = str | datetime | Mapping[tuple[str, int], int]


@dataclass(frozen=True, slots=True)
class Source:
    """Where a field comes from: a part of the record or, where `of_value`, a field of its decoded value."""

    name: str
    of_value: bool


@dataclass(frozen=True, slots=True)
class KafkaSettings:
    """The arguments of a Kafka spout, checked; travels to the executors."""

    servers: str
    topics: tuple[str, ...]
    patterns: tuple[re.Pattern[str], ...]
    fields: tuple[str, ...]
    sources: tuple[Source, ...]
    key: Any
    value: Any
    defaults: dict[str, Any]
    start: Start
    records_max: int
    bytes_max: int | None
    on_unreadable: str
    lost_stops: bool
    discover_secs: float
    timeout_secs: float
    group_id: str
    client: dict[str, Any]
    replays: bool
    """Whether every batch must be the same in each replay, from its first attempt on."""

    @classmethod
    def checked(
        cls,
        *,
        servers: str,
        topics: Topics,
        fields: Sequence[str] | Mapping[str, str],
        key: Any,
        value: Any,
        defaults: Mapping[str, Any] | None,
        start: Start,
        records_per_partition: int,
        bytes_per_partition: int | None,
        on_unreadable: str,
        on_lost: str,
        discover_secs: float,
        timeout_secs: float,
        group_id: str,
        client: Mapping[str, Any] | None,
        replays: bool,
    ) -> KafkaSettings:
        """Check the arguments against each other.

        Raises:
            InvalidKafkaSpout: some do not go together, or one is out of range.
        """
        if not isinstance(servers, str) or not servers.strip():
            raise InvalidKafkaSpout(f"servers is {servers!r}, expected text such as 'host1:9092,host2:9092'")
        for argument, given, known in (
            ("on_unreadable", on_unreadable, ("stop", "skip", "emit")),
            ("on_lost", on_lost, ("stop", "continue")),
        ):
            if given not in known:
                raise InvalidKafkaSpout(f"{argument} is {given!r}, expected one of {known}{did_you_mean(given, known)}")
        for argument, number in (("records", records_per_partition), ("bytes", bytes_per_partition)):
            if (number is not None or argument == "records") and (type(number) is not int or number < 1):
                raise InvalidKafkaSpout(
                    f"{argument}_per_partition is {number!r}, expected a whole number of at least 1"
                )
        for argument, secs in (("discover_secs", discover_secs), ("timeout_secs", timeout_secs)):
            if isinstance(secs, bool) or not isinstance(secs, (int, float)) or not 0 < secs < 1e6:
                raise InvalidKafkaSpout(f"{argument} is {secs!r}, expected a number of seconds, more than 0")
        for argument, decode in (("key", key), ("value", value)):
            if decode is not None and not callable(decode) and not callable(getattr(decode, "decoder", None)):
                raise InvalidKafkaSpout(
                    f"{argument} is {decode!r}, expected Text(), Json(), … or a callable that takes bytes"
                )
        names, sources = _fields(fields)
        defaults = dict(defaults or {})
        for name in defaults:
            if name not in names or not sources[names.index(name)].of_value:
                raise InvalidKafkaSpout(
                    f"defaults names {name!r}, which is no field of the decoded value{did_you_mean(name, names)}; "
                    f"fields are {list(names)}"
                )
        if value is None and any(source.of_value for source in sources):
            wanted = next(name for name, source in zip(names, sources, strict=True) if source.of_value)
            raise InvalidKafkaSpout(
                f"fields names {wanted!r}, which is no part of a record {PARTS}, so it is a field of the decoded "
                f"value: pass value=Json(), or another deserialiser{did_you_mean(wanted, PARTS)}"
            )
        named, patterns = _topics(topics)
        return cls(
            servers=servers,
            topics=named,
            patterns=patterns,
            fields=names,
            sources=sources,
            key=key,
            value=value,
            defaults=defaults,
            start=_start(start),
            records_max=records_per_partition,
            bytes_max=bytes_per_partition,
            on_unreadable=on_unreadable,
            lost_stops=on_lost == "stop",
            discover_secs=float(discover_secs),
            timeout_secs=float(timeout_secs),
            group_id=_group_id(group_id),
            client=_client(client),
            replays=replays,
        )


def _topics(topics: Topics) -> tuple[tuple[str, ...], tuple[re.Pattern[str], ...]]:
    given: Any = [topics] if isinstance(topics, (str, re.Pattern)) else topics
    if not isinstance(given, Sequence) or not given:
        raise InvalidKafkaSpout(f"topics is {topics!r}, expected a name, a pattern (re.compile), or a list of them")
    for topic in given:
        pattern = isinstance(topic, re.Pattern)
        if not pattern and (not isinstance(topic, str) or not re.fullmatch(r"[a-zA-Z0-9._-]{1,249}", topic)):
            raise InvalidKafkaSpout(
                f"topics holds {topic!r}, expected the name of a topic, or a pattern made by re.compile"
            )
        if pattern and not isinstance(topic.pattern, str):
            raise InvalidKafkaSpout(f"topics holds {topic!r}, a pattern of bytes; expected one of text")
    named = tuple(dict.fromkeys(topic for topic in given if isinstance(topic, str)))
    return named, tuple(topic for topic in given if isinstance(topic, re.Pattern))


def _fields(fields: Sequence[str] | Mapping[str, str]) -> tuple[tuple[str, ...], tuple[Source, ...]]:
    if isinstance(fields, str):
        raise InvalidKafkaSpout(f"fields is the text {fields!r}, expected a list: [{fields!r}]")
    names = tuple(Fields(ATTEMPT_FIELD, *fields))[1:]  # raises for empty, repeated and reserved names
    if not names:
        raise InvalidKafkaSpout(f"fields is empty; name parts of a record {PARTS}, or fields of its decoded value")
    if not isinstance(fields, Mapping):
        return names, tuple(Source(name, name not in PARTS) for name in names)
    sources = []
    for name, source in fields.items():
        of_value = isinstance(source, str) and source.startswith("value.") and len(source) > len("value.")
        if not of_value and source not in PARTS:
            raise InvalidKafkaSpout(
                f"fields says that {name!r} is {source!r}, expected one of {PARTS}, or 'value.NAME' for a field of the "
                f"decoded value{did_you_mean(source, PARTS)}"
            )
        sources.append(Source(source.removeprefix("value.") if of_value else source, of_value))
    return names, tuple(sources)


def _start(start: Start) -> Start:
    if isinstance(start, datetime):
        if start.tzinfo is None:
            raise InvalidKafkaSpout(f"start is {start!r}, a time without a time zone: give it one, as timezone.utc")
        return start
    if isinstance(start, Mapping):
        for at, offset in start.items():
            right = type(at) is tuple and [type(part) for part in at] == [str, int]
            if not right or type(offset) is not int or not 0 <= offset < 1 << 63:
                raise InvalidKafkaSpout(f"start holds {at!r}: {offset!r}, expected (topic, partition): offset")
        return dict(start)
    if start not in ("earliest", "latest"):
        raise InvalidKafkaSpout(
            f"start is {start!r}, expected 'earliest', 'latest', a datetime, or a dict of (topic, partition): offset"
            + did_you_mean(start, ("earliest", "latest"))
        )
    return start


def _group_id(group_id: str) -> str:
    if not isinstance(group_id, str):
        raise InvalidKafkaSpout(f"group_id is {group_id!r}, expected the name of a consumer group, or ''")
    return group_id


def _client(client: Mapping[str, Any] | None) -> dict[str, Any]:
    checked = dict(client or {})
    for name, value in checked.items():
        if name in OURS:
            instead = OURS[name]
            told = f"use the argument {instead}" if instead else "what the spout promises rests on its own"
            raise InvalidKafkaSpout(f"client holds {name!r}, which is set by the spout itself: {told}")
        if is_secret(name) and not is_reference(value):
            raise InvalidKafkaSpout(
                f"client holds {name!r} with a value that is not shown here, expected a reference to the secret: "
                "env:NAME or file:PATH"
            )
    return checked


def is_secret(name: str) -> bool:
    """Return whether a setting of the client holds a secret."""
    return name in SECRETS or names_a_secret(name)
