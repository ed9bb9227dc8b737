"""KafkaCommitter and ArrowKafkaCommitter: what a topology's tuples, or record batches, become in Kafka's topics."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from stormline.bolts.arrow import ArrowTransactionalBolt
from stormline.bolts.base import BaseTransactionalBolt
from stormline.state.kafka.errors import InvalidKafkaSink, RecordRefused
from stormline.state.kafka.sink import KafkaSink
from stormline.state.kafka.transaction import KafkaTransaction
from stormline.topology.attempt import TransactionAttempt
from stormline.topology.context import TopologyContext
from stormline.topology.contracts import Collector, Conf, ICommitter
from stormline.topology.fields import Fields
from stormline.topology.tuples import Tuple

if TYPE_CHECKING:
    import pyarrow

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
        held = row[0] if self.whole else dict(zip(self.values, row, strict=False))
        value = as_bytes(who, "value", held, self.value_serializer)
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


class _Committing:
    """What both kinds have in common: a transaction of the sink's, in each commit phase."""

    def __init__(
        self,
        sink: KafkaSink,
        topic: str = "",
        *,
        topic_field: str | None = None,
        value: str | Sequence[str] = "value",
        key: str | None = None,
        headers: str | None = None,
        timestamp: str | None = None,
        partition: str | None = None,
        value_serializer: Serializer | None = None,
        key_serializer: Serializer | None = None,
    ) -> None:
        if not isinstance(sink, KafkaSink):
            raise InvalidKafkaSink(f"sink is {sink!r:.80}, expected KafkaSink('host:9092')")
        self.sink = sink
        self.fields = RecordFields(
            topic, topic_field, value, key, headers, timestamp, partition, value_serializer, key_serializer
        )

    def prepare(self, conf: Conf, context: TopologyContext, collector: Collector, batch_id: TransactionAttempt) -> None:
        """Begin, or join, the sink's transaction."""
        self._who = f"component {context.this_component_id!r}"
        for source in context.this_sources:
            fields = context.component_output_fields(source)
            for name in self.fields.names:
                fields.field_index(name)
        self._transaction = self.sink.in_commit(context, batch_id)

    def finish_batch(self) -> None:
        """Leave the rest to the end of the commit phase."""


class KafkaCommitter(_Committing, BaseTransactionalBolt, ICommitter):
    """A committer that writes each tuple as a record, each transaction of the topology exactly once.

    Args:
        sink (KafkaSink): The brokers; committers that share one write in one transaction of Kafka.
        topic (str): Where all records go; it must exist.
        topic_field (str | None): The field that says where each record goes, in place of `topic`.
        value (str | Sequence[str]): The field of the value; of several a dict is made for `value_serializer`.
        key (str | None): The field of the key; None: records have none.
        headers (str | None): The field of the headers: a dict, or a list of (name, text or bytes).
        timestamp (str | None): The field of the timestamp: ms since 1970, or a datetime; None: when it is written.
        partition (str | None): The field of the partition's number; None: the partitioner says it, by the key.
        value_serializer (Callable[[Any], bytes | str | None] | None): Makes bytes of the value; None: it is bytes or
            text. None as a value stays None, which marks its key as removed in a compacted topic.
        key_serializer (Callable[[Any], bytes | str | None] | None): Makes bytes of the key.

    Raises:
        InvalidKafkaSink: Arguments do not go together.
    """

    _known: Fields | None = None

    def execute(self, tup: Tuple) -> None:
        """Send a record."""
        if not self._transaction.stored:
            if tup.fields is not self._known:
                self._known = tup.fields
                self._positions = [tup.fields.field_index(name) for name in self.fields.names]
            self.fields.send(self._transaction, self._who, [tup.values[position] for position in self._positions])


class ArrowKafkaCommitter(_Committing, ArrowTransactionalBolt, ICommitter):
    """The `KafkaCommitter` that takes record batches: a record for each row. Its arguments are the same.

    Raises:
        InvalidKafkaSink: Arguments do not go together.
        MissingExtra: pyarrow is not installed; when the bolt is declared.
    """

    def execute_batch(self, batch: pyarrow.RecordBatch) -> None:
        """Send a record for each row."""
        if not self._transaction.stored:
            columns = [batch.column(name).to_pylist() for name in self.fields.names]
            for row in zip(*columns, strict=True):
                self.fields.send(self._transaction, self._who, row)
