"""RecordEmitter: makes tuples of records, and deals with those that cannot be read."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import repeat
from operator import attrgetter, itemgetter
from typing import Any

from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, Message

from stormline.spouts.kafka.deserializers import all_fields_of, column_type, decoder_of
from stormline.spouts.kafka.errors import UnreadableRecord
from stormline.spouts.kafka.partitions import Place
from stormline.spouts.kafka.settings import UNREADABLE, KafkaSettings, Source
from stormline.topology.arrow import pyarrow_for
from stormline.topology.attempt import TransactionAttempt
from stormline.topology.context import TopologyContext
from stormline.topology.contracts import Collector
from stormline.topology.errors import FailedException, StormlineError

log = logging.getLogger("stormline")

ROWS_AT_ONCE = 2_000
"""Rows that are made for one emit_all: as many as a processor's cache holds until the bolts have executed them."""

BATCH_ROWS = 10_000
"""Rows of a record batch, at most."""

_MISSING = object()
Bad = list[tuple[Message, str]]
Make = Callable[[Sequence[Message]], Any]
Emit = Callable[[Any], None]


class Problem(Exception):
    """Why a record cannot be read."""


class RecordEmitter:
    """Emits records as rows; as record batches where only bolts that take those listen, and all types are known.

    Args:
        settings: how the spout was declared.
        context: what the task knows of itself.
    """

    def __init__(self, settings: KafkaSettings, context: TopologyContext) -> None:
        self._settings = settings
        self._unreadable = context.register_counter("unreadable")
        self._gaps = context.register_counter("gaps")
        self._key = decoder_of(settings.key)
        self._value = decoder_of(settings.value)
        self._decodes_key = any(source == Source("key", False) for source in settings.sources)
        fields = zip(settings.fields, settings.sources, strict=True)
        self._lists = [_list_of(source, settings.defaults.get(name, _MISSING)) for name, source in fields]
        self._all_fields = all_fields_of(settings.sources, settings.value)
        self._schema = _schema(settings) if context.targets_are_columnar() else None

    def count_gap(self) -> None:
        """Count a gap that is gone over."""
        self._gaps.inc()

    def share(self, attempt: TransactionAttempt, collector: Collector, place: Place) -> Share:
        """Return what takes the records that a batch has of one partition, and emits them."""
        if self._schema is None:
            return Share(
                self, attempt, collector, place, ROWS_AT_ONCE, partial(self._rows, attempt), collector.emit_all
            )
        return Share(self, attempt, collector, place, BATCH_ROWS, self._batch, collector.emit_batch)

    def each(self, messages: Sequence[Message], bad: Bad, make: Make, emit: Emit) -> None:
        """Emit all records at once; where one cannot be read, the halves without it."""
        try:
            made = make(messages)
        except (FailedException, StormlineError):
            raise
        except Exception as error:
            if len(messages) == 1:
                kind = "" if isinstance(error, Problem) else f"{type(error).__name__}: "
                bad.append((messages[0], f"{kind}{error}"))
                return
            half = len(messages) // 2
            self.each(messages[:half], bad, make, emit)
            self.each(messages[half:], bad, make, emit)
            return
        emit(made)

    def _rows(self, attempt: TransactionAttempt, messages: Sequence[Message]) -> list[list[Any]]:
        """Return a row for each record; raise what is wrong with any."""
        if self._all_fields is not None and self._value is not None:
            values: list[Any] = list(map(Message.value, messages))
            if all(values):
                return [[attempt, *self._all_fields(value)] for value in map(self._value, values)]
        return list(map(list, zip(repeat(attempt), *self._lists_of(messages), strict=False)))

    def _batch(self, messages: Sequence[Message]) -> Any:
        """Return a record batch with a row for each record; raise what is wrong with any."""
        assert self._schema is not None
        pa = pyarrow_for("a Kafka spout")
        lists = self._lists_of(messages)
        arrays = [pa.array(found, kind) for found, kind in zip(lists, self._schema.types, strict=True)]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def _lists_of(self, messages: Sequence[Message]) -> list[list[Any]]:
        """Return a list of values for each field."""
        keys, values = [], list(map(Message.value, messages))
        if self._decodes_key:
            keys = _decoded(list(map(Message.key, messages)), self._key)
        values = _decoded(values, self._value)
        return [list_of(messages, keys, values) for list_of in self._lists]

    def deal_with(self, attempt: TransactionAttempt, collector: Collector, place: Place, bad: Bad) -> None:
        """Do with records that cannot be read what the user wants.

        Raises:
            UnreadableRecord: they are to stop the topology.
        """
        first, problem = bad[0]
        offset = first.offset() or 0
        how = self._settings.on_unreadable
        if how == "stop":
            raise UnreadableRecord.at(str(place), offset, problem)
        self._unreadable.inc(len(bad))
        log.warning(
            "%s: %d records cannot be read, and are %s; the first: offset %d: %s",
            place,
            len(bad),
            "left out" if how == "skip" else f"emitted to stream {UNREADABLE!r}",
            offset,
            problem,
        )
        if how == "emit":
            collector.emit_all([[attempt, *_letter(message, why)] for message, why in bad], UNREADABLE)


class Share:
    """What a batch has of one partition: takes its records as they come, and emits [attempt, *fields] of each.

    `records` have been taken. `epoch`: of the leader who wrote the last one, None where that is not known.
    """

    def __init__(
        self,
        emitter: RecordEmitter,
        attempt: TransactionAttempt,
        collector: Collector,
        place: Place,
        at_once: int,
        make: Make,
        emit: Emit,
    ) -> None:
        self._emitter = emitter
        self._to = (attempt, collector, place)
        self._how = (make, emit)
        self._bad: Bad = []
        self.at_once = at_once
        self.records = 0
        self.epoch: int | None = None

    def take(self, messages: list[Message]) -> None:
        """Emit records; those that cannot be read wait for the end."""
        self.records += len(messages)  # first: whatever goes wrong now, something may have been emitted
        written = messages[-1].leader_epoch()
        self.epoch = self.epoch if written is None else written
        for first in range(0, len(messages), self.at_once):
            self._emitter.each(messages[first : first + self.at_once], self._bad, *self._how)

    def end(self) -> None:
        """Emit those that cannot be read, if they are to be emitted.

        Raises:
            UnreadableRecord: one cannot be read, and it is to stop the topology.
        """
        if self._bad:
            self._emitter.deal_with(*self._to, self._bad)


def _decoded(raw: list[Any], decode: Callable[[bytes], Any] | None) -> list[Any]:
    if decode is None:
        return raw
    return list(map(decode, raw)) if all(raw) else [None if data is None else decode(data) for data in raw]


def _schema(settings: KafkaSettings) -> Any:
    """Return the schema of record batches; None where the type of some field is not known beforehand."""
    types = [column_type(source, settings.key, settings.value) for source in settings.sources]
    if None in types:
        return None
    pa = pyarrow_for("a Kafka spout")
    pairs = zip(settings.fields, types, strict=True)
    return pa.schema([(name, pa.type_for_alias(kind)) for name, kind in pairs])


def _letter(message: Message, problem: str) -> list[Any]:
    at = [message.topic(), message.partition(), message.offset(), _timestamp(message)]
    return [*at, message.key(), message.value(), problem]


def _timestamp(message: Message) -> int | None:
    """Return when a record was made or written, in ms since 1970; None where it does not say."""
    kind, at = message.timestamp()
    return None if kind == TIMESTAMP_NOT_AVAILABLE else at


def _headers(message: Message) -> list[tuple[str, Any]]:
    """Return a record's headers, in their order: names may come again."""
    given: Any = message.headers() or ()
    return [(name, value) for name, value in given]


def _attribute(name: str, value: Any) -> Any:
    return getattr(value, name)


ListOf = Callable[[Sequence[Message], list[Any], list[Any]], list[Any]]

_PARTS: dict[str, Callable[[Message], Any]] = {
    "headers": _headers,
    "timestamp": _timestamp,
    "topic": Message.topic,
    "partition": Message.partition,
    "offset": Message.offset,
}


def _list_of(source: Source, default: Any) -> ListOf:
    """Return what gives the values of one field of many records."""
    name = source.name
    if not source.of_value:
        if name == "key":
            return lambda messages, keys, values: keys
        if name == "value":
            return lambda messages, keys, values: values
        part = _PARTS[name]
        return lambda messages, keys, values: list(map(part, messages))

    item = itemgetter(name)
    attribute = partial(_attribute, name) if "." in name else attrgetter(name)

    def field_of(value: Any) -> Any:
        found = value.get(name, _MISSING) if isinstance(value, Mapping) else getattr(value, name, _MISSING)
        if found is not _MISSING:
            return found
        if value is None:
            raise Problem(f"it has no value, so no field {name!r}")
        if default is _MISSING:
            raise Problem(f"its value has no field {name!r}")
        return default

    def fields_of(messages: Sequence[Message], keys: list[Any], values: list[Any]) -> list[Any]:
        try:
            return list(map(item if type(values[0]) is dict else attribute, values))
        except (KeyError, TypeError, AttributeError):
            return [field_of(value) for value in values]

    return fields_of
