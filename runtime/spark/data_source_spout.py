"""DataSourceTransactionalSpout: the streaming readers of PySpark's Python data source API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql.datasource import (
    CaseInsensitiveDict,
    DataSource,
    DataSourceStreamReader,
    SimpleDataSourceStreamReader,
)
from pyspark.sql.types import StructType

from stormline.runtime.spark.ddl import schema_of
from stormline.runtime.spark.stream_reading import ReaderCoordinator, ReaderEmitter
from stormline.spouts.errors import CannotReplay, SourceUnusable
from stormline.spouts.iterator.positioned import ATTEMPT_FIELD, checked_fields
from stormline.topology.context import TopologyContext
from stormline.topology.contracts import (
    Conf,
    IPartitionedCoordinator,
    IPartitionedEmitter,
    IPartitionedTransactionalSpout,
)
from stormline.topology.errors import InvalidSpout, did_you_mean, shown
from stormline.topology.fields import Fields
from stormline.topology.streams import OutputFieldsDeclarer

Reader = DataSourceStreamReader | SimpleDataSourceStreamReader


class DataSourceTransactionalSpout(IPartitionedTransactionalSpout):
    """Reads a Python data source, as `spark.readStream` would; every row is in exactly one batch.

    A batch is what the reader has between two of its offsets, which are stored before it is read: from where the last
    one ended (`initialOffset` at first) to `latestOffset`. Its `partitions(start, end)` are read by the spout's tasks
    on the executors, task i those of the numbers i, i + t, …; what they give, rows or record batches, is emitted. A
    replay reads the same offsets, and is compared with what they gave: another number of rows, or other values, stop
    the topology. `commit(end)` is called when all up to `end` is committed, `stop()` at the end.

    A `SimpleDataSourceStreamReader` is read in the driver: `read(start)` says where a batch ends, and its rows come
    from `readBetweenOffsets`, which it must have.

    Args:
        source (type[DataSource]): The class of the data source; it has `streamReader` or `simpleStreamReader`.
        options (Mapping[str, str] | None): What `spark.readStream.option` would say, by name.
        schema (StructType | str | None): The schema, where the source has none of its own, as a `StructType` or DDL;
            its names are the fields. The attempt, which comes before them as "tx", is put there by the spout.

    Raises:
        InvalidSpout: `source` is no data source, or its schema is none.
        CannotReplay: the source cannot be read as a stream.
        InvalidStream: the names of the schema cannot be fields.
    """

    emits_on_executors = True

    def __init__(
        self,
        source: type[DataSource],
        options: Mapping[str, str] | None = None,
        schema: StructType | str | None = None,
    ) -> None:
        if not (isinstance(source, type) and issubclass(source, DataSource)):
            raise InvalidSpout(
                f"source is {shown(source)}, expected a class derived from pyspark.sql.datasource.DataSource, not an "
                "object of it, nor a reader"
            )
        has = {name: getattr(source, name) is not getattr(DataSource, name) for name in _READERS}
        if not any(has.values()):
            raise CannotReplay(
                f"data source {source.__name__} has neither streamReader nor simpleStreamReader{_meant(source)}: "
                "without offsets no part of it can be given again, so it is not a fit for a transactional spout; give "
                "it one of them, or read it into a DataFrame with a stable order, for DataFrameTransactionalSpout"
            )
        for name, value in (options or {}).items():
            if not isinstance(name, str) or not isinstance(value, str):
                raise InvalidSpout(f"options hold {shown(name)}: {shown(value)}, expected texts, as Spark gives them")
        self._source = source
        self._options = dict(options or {})
        self._schema = self._checked_schema(schema)
        self._fields = checked_fields(f"DataSourceTransactionalSpout({source.__name__})", self._schema.names)
        self.emits_on_executors = has["streamReader"]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._source.__name__})"

    def get_coordinator(self, conf: Conf, context: TopologyContext) -> IPartitionedCoordinator:
        """Return the coordinator, with a reader of its own."""
        tasks = len(context.component_tasks(context.this_component_id))
        who = f"spout {context.this_component_id!r}"
        return ReaderCoordinator(self._reader(who), who, tasks)

    def get_emitter(self, conf: Conf, context: TopologyContext) -> IPartitionedEmitter:
        """Return the emitter of one task, with a reader of its own."""
        who = f"spout {context.this_component_id!r}"
        return ReaderEmitter(self._reader(who), who, len(self._fields))

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """Declare the attempt and the names of the schema."""
        declarer.declare(Fields(ATTEMPT_FIELD, *self._fields))

    def _made(self) -> DataSource:
        return self._source(CaseInsensitiveDict(self._options))

    def _checked_schema(self, schema: StructType | str | None) -> StructType:
        who = f"data source {self._source.__name__}"
        if schema is None:
            if self._source.schema is DataSource.schema:
                raise InvalidSpout(f"{who} has no schema(); give it one, or pass schema=… to the spout")
            schema = self._made().schema()
        try:
            schema = schema_of(schema) if isinstance(schema, str) else schema
        except ValueError as error:
            raise InvalidSpout(
                f"{who}: the schema {shown(schema)} cannot be read: {error}; give a StructType"
            ) from None
        if not isinstance(schema, StructType):
            raise InvalidSpout(f"{who}: the schema is {shown(schema)}, expected a StructType or DDL such as 'a INT'")
        return schema

    def _reader(self, who: str) -> Reader:
        name = "streamReader" if self.emits_on_executors else "simpleStreamReader"
        reader: Any = getattr(self._made(), name)(self._schema)
        expected: Any = DataSourceStreamReader if self.emits_on_executors else SimpleDataSourceStreamReader
        if not isinstance(reader, expected):
            raise SourceUnusable(
                f"{who}: {name}() of {self._source.__name__} returned {shown(reader)}, expected a {expected.__name__}"
            )
        needed = ("initialOffset", *(("latestOffset", "partitions") if self.emits_on_executors else _SIMPLE))
        for method in needed:
            if getattr(type(reader), method) is getattr(expected, method):
                raise CannotReplay(
                    f"{who}: {type(reader).__name__} has no {method}: without it a batch "
                    "cannot be given again, so it is not a fit for a transactional spout; give the reader one"
                )
        made: Reader = reader
        return made


_READERS = ("streamReader", "simpleStreamReader")
_SIMPLE = ("read", "readBetweenOffsets")


def _meant(source: type) -> str:
    return did_you_mean("streamReader", [known for known in vars(source) if not known.startswith("_")])
