"""StormlineDataSource: the stores of `stormline.state` as a sink of Structured Streaming.

The rows of a batch are gathered by key on the executors, travel in the commit messages, and are stored by the driver in
one transaction of the database, with the batch id as txid, behind the fence that topologies have.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from pyspark import TaskContext
from pyspark.sql import Row
from pyspark.sql.datasource import DataSource, DataSourceStreamWriter, WriterCommitMessage
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructType,
    TimestampType,
)

from stormline.state.batch_sink import UPSERT, BatchSink, Rows
from stormline.state.columns import PYTHON, ColumnType
from stormline.state.errors import InvalidStore
from stormline.state.maps import TransactionalMap
from stormline.state.store_url import store_at
from stormline.topology.errors import did_you_mean

QUERY_ID = "sql.streaming.queryId"
"""A local property of Spark's jobs: the id that the checkpoint of a query holds."""

_OPTIONS = ("store", "password", "table", "key", "mode", "queryname")
_SPARKS = ("checkpointlocation", "path")
_COLUMN_TYPES: Mapping[type[DataType], ColumnType] = {
    ByteType: ColumnType.INTEGER,
    ShortType: ColumnType.INTEGER,
    IntegerType: ColumnType.INTEGER,
    LongType: ColumnType.INTEGER,
    FloatType: ColumnType.REAL,
    DoubleType: ColumnType.REAL,
    StringType: ColumnType.TEXT,
    BinaryType: ColumnType.BYTES,
    BooleanType: ColumnType.BOOLEAN,
    TimestampType: ColumnType.TIMESTAMP,
    DateType: ColumnType.DATE,
    DecimalType: ColumnType.DECIMAL,
}


class StormlineDataSource(DataSource):
    """The format "stormline": a sink for streams, whose batches it stores once each."""

    @classmethod
    def name(cls) -> str:
        """Return "stormline"."""
        return "stormline"

    def streamWriter(self, schema: StructType, overwrite: bool) -> StreamWriter:
        """Return what writes the batches of a query.

        Args:
            schema (StructType): The columns of its rows.
            overwrite (bool): Whether each batch replaces all rows.

        Raises:
            InvalidStore: Options or columns that do not go together.
        """
        if overwrite:
            raise InvalidStore(
                "format 'stormline' takes the output modes append and update, not complete, which would replace the "
                "whole table in each batch; use update: it brings the rows that have changed"
            )
        return StreamWriter(sink_of(self.options, schema), schema.fieldNames())


def sink_of(options: Mapping[str, str], schema: StructType) -> BatchSink:
    """Return the sink that options and columns describe.

    Raises:
        InvalidStore: They do not go together.
    """
    given = {name.lower(): value for name, value in options.items()}
    for name in given:
        if name not in _OPTIONS and name not in _SPARKS:
            raise InvalidStore(
                f"format 'stormline' has no option {name!r}, expected some of {', '.join(_OPTIONS)}"
                f"{did_you_mean(name, _OPTIONS)}"
            )
    for name, example in (("store", "sqlite:counts.sqlite"), ("table", "counts"), ("key", "word")):
        if not given.get(name):
            raise InvalidStore(f"format 'stormline' needs the option {name!r}, as .option({name!r}, {example!r})")
    if not given.get("queryname"):
        raise InvalidStore(
            "format 'stormline' needs the query's name: .queryName('counts'); the fence is kept under it"
        )
    columns = {field.name: _column_type(field.name, field.dataType) for field in schema.fields}
    keys = [name.strip() for name in given["key"].split(",")]
    for name in keys:
        if name not in columns:
            raise InvalidStore(
                f"format 'stormline' is given the key {keys}, and the rows have {list(columns)}"
                f"{did_you_mean(name, columns)}"
            )
    value = {name: kind for name, kind in columns.items() if name not in keys}
    store = store_at(given["store"], given.get("password", ""))
    into = TransactionalMap(store, given["table"], key={name: columns[name] for name in keys}, value=value)
    return BatchSink(given["queryname"], into, given.get("mode", UPSERT))


def _column_type(name: str, kind: DataType) -> type:
    found = _COLUMN_TYPES.get(type(kind))
    if found is None:
        raise InvalidStore(
            f"column {name!r} is of type {kind.simpleString()}, which no store has; cast it to one of "
            f"{', '.join(sorted({each().simpleString() for each in _COLUMN_TYPES}))}"
        )
    python: type = PYTHON[found]
    return python


@dataclass
class Gathered(WriterCommitMessage):
    """What one task has gathered, and of which query."""

    rows: Rows
    history: str


class StreamWriter(DataSourceStreamWriter):
    """Gathers rows on the executors, and stores them in the driver. `names` are the rows' columns."""

    def __init__(self, sink: BatchSink, names: Sequence[str]) -> None:
        self._sink = sink
        spec = sink.map.spec
        self._key_at = [names.index(column.name) for column in spec.key]
        self._value_at = [names.index(column.name) for column in spec.value]
        self._timed = any(column.type is ColumnType.TIMESTAMP for column in (*spec.key, *spec.value))

    def write(self, iterator: Iterator[Row]) -> Gathered:
        """Return the rows of one task by key."""
        task = TaskContext.get()
        history = "" if task is None else task.getLocalProperty(QUERY_ID) or ""
        return Gathered(self._sink.gathered(map(self._split, iterator)), history)

    def _split(self, row: Row) -> tuple[Any, Any]:
        values: Sequence[Any] = [_with_zone(value) for value in row] if self._timed else row
        key, value = [values[i] for i in self._key_at], [values[i] for i in self._value_at]
        return (key[0] if len(key) == 1 else tuple(key), value[0] if len(value) == 1 else tuple(value))

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        """Store a batch, unless the store holds it."""
        rows: Rows = {}
        histories = set()
        for message in messages:
            assert isinstance(message, Gathered), message
            self._sink.gathered(message.rows.items(), rows)
            histories.add(message.history)
        self._sink.store(batchId, rows, max(histories, default=""))

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        """Do nothing: nothing was stored."""


def _with_zone(value: Any) -> Any:
    """Return a timestamp as stores take it: Spark gives those of its TimestampType in this process's local time."""
    return value.astimezone(UTC) if isinstance(value, datetime) else value
