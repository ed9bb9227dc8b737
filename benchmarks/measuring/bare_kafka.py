"""The bare loops over Kafka: what processes do with confluent-kafka alone, each with a partition of its own."""

from __future__ import annotations

import time
from collections.abc import Iterator
from operator import attrgetter
from typing import Any

from benchmarks.measuring.settings import TIMEOUT_SECS
from benchmarks.topologies.kafka_records import TYPES

TAKEN_AT_ONCE = 2_000
WAIT_SECS = 0.2
ARROW_TYPES = {int: "int64", str: "string", float: "double", bool: "bool"}

_readers: dict[tuple[str, str, int], Any] = {}
"""By loop, topic and partition: a consumer that goes on where it stands. The process ends with them."""


def count_records_loop(servers: str, topic: str, process: int, batches: int, share: int) -> int:
    """Read records, decode each into an object of five typed fields, and count them; return how many."""
    decode = _decoder()
    counted = 0
    for messages in _read("rows", servers, topic, process, batches * share):
        for message in messages:
            decode(message.value())
            counted += 1
    return counted


def count_columns_loop(servers: str, topic: str, process: int, batches: int, share: int) -> int:
    """Read records, make record batches of five typed columns, and count their rows; return how many.

    By msgspec and a list a column: of what we tried the fastest. The JSON readers of pyarrow and polars, given the
    lines, take longer.
    """
    import pyarrow as pa

    decode = _decoder()
    schema = pa.schema([(name, pa.type_for_alias(ARROW_TYPES[kind])) for name, kind in TYPES.items()])
    fields = [(attrgetter(name), schema.field(name).type) for name in TYPES]
    counted = 0
    for messages in _read("columns", servers, topic, process, batches * share):
        values = [decode(message.value()) for message in messages]
        arrays = [pa.array(list(map(get, values)), kind) for get, kind in fields]
        counted += pa.RecordBatch.from_arrays(arrays, schema=schema).num_rows
    return counted


def _decoder() -> Any:
    import msgspec

    return msgspec.json.Decoder(msgspec.defstruct("Record", [*TYPES.items()], gc=False)).decode


def _read(loop: str, servers: str, topic: str, partition: int, count: int) -> Iterator[list[Any]]:
    """Give the next records of a partition, some thousand at a time."""
    reader = _readers.get((loop, topic, partition))
    if reader is None:
        reader = _readers[loop, topic, partition] = _reader(servers, topic, partition)
    deadline = time.monotonic() + TIMEOUT_SECS
    while count:
        messages = reader.consume(min(count, TAKEN_AT_ONCE), WAIT_SECS)
        if any(message.error() for message in messages):
            raise RuntimeError(next(str(message.error()) for message in messages if message.error()))
        if time.monotonic() > deadline:
            raise TimeoutError(f"{count} records of {topic!r}, partition {partition}, are missing")
        count -= len(messages)
        yield messages


def _reader(servers: str, topic: str, partition: int) -> Any:
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "bare",
            "isolation.level": "read_committed",
            "fetch.queue.backoff.ms": 10,  # at the default of 1,000 it is several times as slow
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
        }
    )
    consumer.assign([TopicPartition(topic, partition, 0)])
    return consumer
