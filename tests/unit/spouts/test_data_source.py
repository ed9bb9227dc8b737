"""DataSourceTransactionalSpout over readers as people write them, in this process; with Spark in tests/spark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.datasource import DataSource, SimpleDataSourceStreamReader
from pyspark.sql.types import DecimalType, LongType, MapType, StringType, StructField, StructType

from stormline.errors import CannotReplay, InvalidSpout, InvalidStream, StormlineError
from stormline.runtime.spark.ddl import schema_of
from stormline.spark import DataSourceTransactionalSpout
from stormline.testing import MemoryStateServer
from tests.kits.sources import Crash, Sink, drain, new_sink
from tests.topologies.readers import LogReader, LogSource, OldReader, OldSource, SimpleReader, SimpleSource


@pytest.fixture
def sink() -> Sink:
    return new_sink()


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "log"
    write(path, 23)
    return path


def write(path: Path, count: int, first: int = 0) -> None:
    with path.open("a") as file:
        file.writelines(f"{number}\n" for number in range(first, first + count))


def rows(count: int) -> list[Any]:
    return [(number, f"line {number}") for number in range(count)]


def spout(source: type[DataSource], path: Path, **options: str) -> DataSourceTransactionalSpout:
    return DataSourceTransactionalSpout(source, {"path": str(path), **options})


@pytest.mark.parametrize("tasks", [1, 3])
@pytest.mark.parametrize(
    ("source", "options"),
    [(LogSource, {}), (LogSource, {"columnar": "true"}), (OldSource, {}), (SimpleSource, {})],
    ids=["rows", "record batches", "before 4.2", "simple"],
)
def test_each_row_is_in_one_batch_though_batches_fail_and_commits_crash(
    source: Any, options: dict[str, str], tasks: int, log: Path, sink: Sink
) -> None:
    server = MemoryStateServer()
    sink.crash_at = {1}
    with pytest.raises(StormlineError, match=Crash.__name__):
        drain(spout(source, log, **options), tasks, server)
    drain(spout(source, log, **options), tasks, server)
    assert sink.rows == rows(23)
    write(log, 10, 23)
    drain(spout(source, log, **options), 4 - tasks, server, changed=True)
    assert sink.rows == rows(33)
    assert len(sink.stored) == (2 if source is OldSource else 6)
    assert int(log.with_suffix(".committed").read_text()) <= 33
    assert log.with_suffix(".stopped").exists() == (source is not SimpleSource)


def test_the_reader_is_told_what_is_committed_and_only_that(log: Path, sink: Sink) -> None:
    told: list[int] = []

    class Told(LogReader):
        def commit(self, end: dict[str, Any]) -> None:
            told.append(end["line"])
            assert end["line"] <= sum(map(len, sink.stored.values()))

    drain(spout(source_of(Told), log))
    assert told == sorted(set(told))
    assert set(told) <= {7, 14, 21, 23}


def test_record_batches_may_come_in_other_sizes_again(log: Path, sink: Sink) -> None:
    import pyarrow as pa

    sizes = iter([7, 3, 2, 1, 7, 7, 7, 7, 7, 7, 7, 7])

    class Resizes(LogReader):
        def partitions(self, start: Any, end: Any) -> Any:
            return [(start["line"], end["line"])]

        def read(self, partition: Any) -> Iterator[Any]:
            start, end = partition
            size = next(sizes)
            for at in range(start, end, size):
                numbers = list(range(at, min(at + size, end)))
                yield pa.RecordBatch.from_pydict({"n": numbers, "text": [f"line {n}" for n in numbers]})

    server = MemoryStateServer()
    sink.crash_at = {1}
    with pytest.raises(StormlineError, match=Crash.__name__):
        drain(spout(source_of(Resizes), log), server=server)
    drain(spout(source_of(Resizes), log), server=server)
    assert sink.rows == rows(23)


def source_of(reader: Any) -> type[DataSource]:
    """Return a data source with this reader."""

    class Source(LogSource):
        def streamReader(self, schema: StructType) -> Any:
            return reader(self.options)

    class Simple(SimpleSource):
        def simpleStreamReader(self, schema: StructType) -> Any:
            return reader(self.options)

    return Simple if issubclass(reader, SimpleDataSourceStreamReader) else Source


def stops(reader: Any, log: Path, match: str, server: MemoryStateServer | None = None) -> None:
    with pytest.raises(StormlineError, match=match):
        drain(spout(source_of(reader), log), server=server)


def test_a_reader_that_gives_other_rows_again_is_told(log: Path, sink: Sink) -> None:
    server = MemoryStateServer()
    sink.crash_at = {2}
    stops(LogReader, log, "Crash", server)
    between = r"between the offsets {'line': 7} and {'line': 14}"
    stops(OtherAtEight, log, rf"spout 'spout' gives other rows {between} in share 0 than the 7", server)
    stops(NoneAtEight, log, rf"spout 'spout' gave 7 rows {between} in share 0, and now gives 6", server)
    drain(spout(LogSource, log), server=server)
    assert sink.rows == rows(23)


class OtherAtEight(LogReader):
    def read(self, partition: Any) -> Iterator[Any]:
        return ((n if n != 8 else 77, text) for n, text in super().read(partition))


class NoneAtEight(LogReader):
    def read(self, partition: Any) -> Iterator[Any]:
        return (row for row in super().read(partition) if row[0] != 8)


def test_a_source_that_was_made_anew_is_told(log: Path, sink: Sink) -> None:
    server = MemoryStateServer()
    drain(spout(OldSource, log), server=server)
    log.write_text("1\n2\n")
    stops(
        OldReader,
        log,
        r"spout 'spout': OldReader goes up to {'line': 2} now, and was read up to {'line': 23}: 'line' went back",
        server,
    )


def test_an_offset_that_goes_back_within_a_dict_is_told(log: Path, sink: Sink) -> None:
    """As of topics and partitions: what was read is not read again, whatever else there is."""

    class Nested(OldReader):
        def initialOffset(self) -> dict[str, Any]:
            return {"log": {"0": {"line": 0}}, "epoch": 1}

        def latestOffset(self) -> dict[str, Any]:  # type: ignore[override]
            return {"log": {"0": {"line": len(self.log.lines())}}, "epoch": 2}

        def partitions(self, start: Any, end: Any) -> Any:
            return super().partitions(start["log"]["0"], end["log"]["0"])

        def commit(self, end: Any) -> None: ...

    server = MemoryStateServer()
    drain(spout(source_of(Nested), log), server=server)
    log.write_text("1\n2\n")
    stops(Nested, log, r"and was read up to {'log': {'0': {'line': 23}}, .*}: 'log.0.line' went back", server)
    assert sink.rows == rows(23)


def test_one_that_raises_in_the_middle_stops_the_topology_which_goes_on_once_it_is_mended(
    log: Path, sink: Sink
) -> None:
    server = MemoryStateServer()

    class Breaks(LogReader):
        def read(self, partition: Any) -> Iterator[Any]:
            for row in super().read(partition):
                yield row
                if row[0] == 16:
                    raise ZeroDivisionError("at 16")

    stops(Breaks, log, r"(?s)ZeroDivisionError in .*'spout'.*at 16", server)
    assert sink.rows == rows(14)
    drain(spout(LogSource, log), server=server)
    assert sink.rows == rows(23)


class OnlyRead(SimpleReader):
    readBetweenOffsets = SimpleDataSourceStreamReader.readBetweenOffsets


class Stands(SimpleReader):
    def read(self, start: Any) -> Any:
        return iter([(1, "a")]), start


class OneValue(SimpleReader):
    def read(self, start: Any) -> Any:
        return start


class NoDict(LogReader):
    def initialOffset(self) -> Any:
        return 5


class NoJson(LogReader):
    def latestOffset(self, start: Any, limit: Any) -> Any:
        return {"line": {1, 2}}


class Narrow(LogReader):
    def read(self, partition: Any) -> Iterator[Any]:
        yield (1,)


@pytest.mark.parametrize(
    ("reader", "why"),
    [
        (
            OnlyRead,
            r"spout 'spout': OnlyRead has no readBetweenOffsets: without it a batch cannot be given again, so it",
        ),
        (
            Stands,
            r"spout 'spout': read\({'line': 0}\) gave rows, and the end offset {'line': 0}, which is where it began",
        ),
        (OneValue, r"read\({'line': 0}\) returned {'line': 0}, expected \(iterator, end offset\)"),
        (NoDict, r"initialOffset\(\) of NoDict gave the offset 5, expected a dict of texts, whole numbers"),
        (NoJson, r"latestOffset\(start, limit\) of NoJson gave the offset {'line': {1, 2}}, expected a dict"),
        (Narrow, r"its reader gave \(1,\), expected a tuple of 2 values, one for each field of the schema"),
    ],
)
def test_a_reader_that_gives_something_else_is_told(reader: Any, why: str, log: Path, sink: Sink) -> None:
    stops(reader, log, why)
    assert sink.rows == []


def test_a_reader_that_is_none_is_told(log: Path, sink: Sink) -> None:
    class Source(LogSource):
        def streamReader(self, schema: StructType) -> Any:
            return "none"

    with pytest.raises(
        StormlineError, match=r"streamReader\(\) of Source returned 'none', expected a DataSourceStreamRea"
    ):
        drain(spout(Source, log))


class TestDeclaring:
    def test_a_batch_source_is_refused_with_the_way_out(self) -> None:
        class Batch(DataSource):
            def schema(self) -> str:
                return "a INT"

            def streamreader(self) -> None: ...

        why = r"data source Batch has neither streamReader nor simpleStreamReader; did you mean 'streamreader'\?"
        with pytest.raises(CannotReplay, match=why):
            DataSourceTransactionalSpout(Batch)

    @pytest.mark.parametrize("source", [LogSource({}), LogReader, "log", None])
    def test_what_is_no_data_source_is_refused(self, source: Any) -> None:
        with pytest.raises(
            InvalidSpout, match=r"source is .*, expected a class derived from pyspark.sql.datasource.DataSo"
        ):
            DataSourceTransactionalSpout(source)

    def test_options_are_texts(self) -> None:
        with pytest.raises(InvalidSpout, match=r"options hold 'n': 5, expected texts, as Spark gives them"):
            DataSourceTransactionalSpout(LogSource, {"n": 5})  # type: ignore[dict-item]

    def test_a_schema_is_needed_and_names_the_fields(self) -> None:
        class Bare(LogSource):
            schema = DataSource.schema  # type: ignore[assignment]

        with pytest.raises(InvalidSpout, match=r"data source Bare has no schema\(\); give it one, or pass schema=… to"):
            DataSourceTransactionalSpout(Bare)
        with pytest.raises(
            InvalidSpout, match=r"the schema 'a SHAPE' cannot be read: type 'shape' is not known; give a St"
        ):
            DataSourceTransactionalSpout(Bare, schema="a SHAPE")
        with pytest.raises(
            InvalidSpout, match=r"data source Bare: the schema is 7, expected a StructType or DDL such as"
        ):
            DataSourceTransactionalSpout(Bare, schema=7)  # type: ignore[arg-type]
        with pytest.raises(InvalidStream, match=r"the spout itself puts 'tx', the attempt, first"):
            DataSourceTransactionalSpout(Bare, schema="tx INT")

    def test_readers_run_on_the_executors_and_simple_ones_in_the_driver(self) -> None:
        assert DataSourceTransactionalSpout(LogSource).emits_on_executors
        assert not DataSourceTransactionalSpout(SimpleSource).emits_on_executors


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("a INT", ["a"]),
        ("a INT, `b c` STRING NOT NULL COMMENT 'x, y'", ["a", "b c"]),
        ("m MAP<STRING, ARRAY<STRUCT<x: INT, y: DECIMAL(10, 2)>>>, d decimal", ["m", "d"]),
        ("v VARCHAR(10), t TIMESTAMP_NTZ, z: double", ["v", "t", "z"]),
        ("", []),
    ],
)
def test_ddl_is_read_without_spark(text: str, names: list[str]) -> None:
    assert schema_of(text).names == names


def test_ddl_gives_the_types_that_spark_gives() -> None:
    assert schema_of("a BIGINT, m MAP<STRING, DECIMAL(9,3)> NOT NULL") == StructType(
        [
            StructField("a", LongType()),
            StructField("m", MapType(StringType(), DecimalType(9, 3)), nullable=False),
        ]
    )


@pytest.mark.parametrize("text", ["a", "a INT b INT", "a ARRAY<INT", "a INT;", "a STRUCT<x INT>>"])
def test_ddl_that_is_none_is_told(text: str) -> None:
    with pytest.raises(ValueError, match=r"ends too early|is expected|not understood"):
        schema_of(text)
