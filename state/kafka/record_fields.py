"""RecordFields: which field of a tuple is which part of a record."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from stormline.state.kafka.errors import InvalidKafkaSink, RecordRefused
from stormline.state.kafka.transaction import KafkaTransaction

Serializer = Callable[[Any], "bytes | str | None"]


class RecordFields:
    """Which field of a tuple is which part of a record."""

    def __init__(
        self,
        topic: str,
        topic_field: str | None,
        value: str | Sequence[str],
        key: str | None,
        headers: str | None,
        timestamp: str | None,
        partition: str | None,
        value_serializer: Serializer | None,
        key_serializer: Serializer | None,
    ) -> None:
        if not isinstance(topic, str) or bool(topic) == bool(topic_field):
            raise InvalidKafkaSink(
                f"topic is {topic!r} and topic_field is {topic_field!r}, expected one of them: the topic's name, or "
                "the field that says it"
            )
        self.topic = topic
        self.parts = {"topic": topic_field, "key": key, "headers": headers}
        self.parts |= {"timestamp": timestamp, "partition": partition}
        self.values = [value] if isinstance(value, str) else list(value)
        self.whole = isinstance(value, str)
        for part, name in [*self.parts.items(), *(("value", name) for name in self.values)]:
            if name is not None and (not isinstance(name, str) or not name):
                raise InvalidKafkaSink(f"the field of {part} is {name!r}, expected the name of a field")
        if not self.values:
            raise InvalidKafkaSink("value names no field, expected at least one: what would a record hold?")
        if not self.whole and value_serializer is None:
            raise InvalidKafkaSink(
                f"value is {self.values}, several fields, of which a dict is made; say what makes bytes of it, such as "
                "value_serializer=json.dumps"
            )
        self.value_serializer = value_serializer
        self.key_serializer = key_serializer
        self.given = [part for part, name in self.parts.items() if name is not None]
        self.names = [*self.values, *(self.parts[part] or "" for part in self.given)]
        """The fields that a record is made of."""

    def __deepcopy__(self, memo: Any) -> RecordFields:
        return self

    def send(self, transaction: KafkaTransaction, who: str, row: Sequence[Any]) -> None:
        """Send the record that is made of the values of `names`."""
        value = row[0] if self.whole else dict(zip(self.values, row, strict=False))
        if self.value_serializer is not None or type(value) is not bytes:
            value = as_bytes(who, "value", value, self.value_serializer)
        if not self.given:
            transaction.send(self.topic, value)
            return
        parts = dict(zip(self.given, row[len(self.values) :], strict=True))
        if "key" in parts:
            parts["key"] = as_bytes(who, "key", parts["key"], self.key_serializer)
        transaction.send(parts.pop("topic", self.topic), value, **parts)


def as_bytes(who: str, part: str, held: Any, serializer: Serializer | None) -> bytes | None:
    """Return what a part of a record is in Kafka; None stays None, and no serializer is asked for it.

    Raises:
        RecordRefused: it is neither bytes nor text.
    """
    made = held if serializer is None or held is None else serializer(held)
    if made is None or type(made) is bytes:
        return made
    if isinstance(made, str):
        return made.encode()
    if isinstance(made, (bytes, bytearray, memoryview)):
        return bytes(made)
    how = f"{part}_serializer gave" if serializer is not None else "the tuple holds"
    raise RecordRefused(
        f"{who}: {how} a {type(made).__name__} as {part} of a record, expected bytes, text or None; say what makes "
        f"bytes of it, such as {part}_serializer=json.dumps"
    )
