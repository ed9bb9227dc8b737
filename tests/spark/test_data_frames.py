"""DataFrameTransactionalSpout: each row of an ordered DataFrame once; what has no place, or changes, is told."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from stormline import LocalCluster
from stormline.errors import (
    CorruptData,
    InvalidConfig,
    InvalidSpout,
    StormlineError,
    TopologyFailed,
    UnknownField,
)
from stormline.runtime.spark.frame_source import FrameSource
from stormline.spark import DataFrameTransactionalSpout
from stormline.testing import MemoryStateServer
from tests.kits.sources import Sink, drain, new_sink, topology

TIMEOUT_SECS = 120
Rows = list[tuple[Any, ...]]


@pytest.fixture
def session(spark: SparkContext) -> SparkSession:
    made = SparkSession.builder.getOrCreate()
    made.conf.set("spark.sql.shuffle.partitions", "4")
    return made


@pytest.fixture
def sink() -> Sink:
    return new_sink()


def spout(rows: Rows, schema: str = "id INT, word STRING", order_by: Any = ("id",), **how: Any) -> Any:
    how = {"fields": ["id", "word"], "rows_per_batch": 5, **how}
    return DataFrameTransactionalSpout(lambda spark: spark.createDataFrame(rows, schema), order_by, **how)


def words(*numbers: int) -> Rows:
    """Return rows, in an order that is not theirs."""
    return sorted(((number, f"word-{number}") for number in numbers), key=lambda row: hash(row[0] * 7919 % 101))


def stops(made: Any, match: str, server: MemoryStateServer | None = None) -> None:
    with pytest.raises(StormlineError, match=match):
        drain(made, server=server)


@pytest.mark.proof
def test_each_row_is_in_one_batch_on_spark_though_a_commit_crashes(
    session: SparkSession, tmp_path: Path, sink: Sink
) -> None:
    session.createDataFrame(words(*range(32)), "id INT, word STRING").write.parquet(str(tmp_path / "words"))

    def read() -> Any:  # a path, no session: made anew by each run
        return DataFrameTransactionalSpout(
            lambda spark: spark.read.parquet(str(tmp_path / "words")), ["id"], ["id", "word"], rows_per_batch=5
        )

    sink.crash_at = {3}
    with pytest.raises(TopologyFailed, match="Crash"), LocalCluster(state_dir=tmp_path / "state") as cluster:
        cluster.submit(topology(read(), 2, fails=False), {}).await_drained(TIMEOUT_SECS)
    with LocalCluster(state_dir=tmp_path / "state") as cluster:
        cluster.submit(topology(read(), 2, fails=False), {}).await_drained(TIMEOUT_SECS)
    assert sink.rows == [(number, f"word-{number}") for number in range(32)]
    assert [len(batch) for batch in sink.stored.values()] == [5] * 6 + [2]


@pytest.mark.proof
def test_new_rows_are_read_by_the_next_run_and_a_refresh(session: SparkSession, sink: Sink) -> None:
    server = MemoryStateServer()
    rows = words(*range(12))
    drain(spout(rows), server=server)
    rows += words(*range(12, 20))
    drain(spout(rows), server=server)
    assert [row[0] for row in sink.rows] == list(range(20))

    looks = iter([*[30] * 4, 33, *[33] * 100])  # the batches of the run, two of them read twice; then more come
    many = DataFrameTransactionalSpout(
        lambda spark: spark.createDataFrame(words(*range(next(looks))), "id INT, word STRING"),
        ["id"],
        ["id", "word"],
        5,
        refresh_secs=0.001,
    )
    drain(many, server=server)
    assert [row[0] for row in sink.rows] == list(range(33))


NOON = datetime(2024, 10, 27, 0, 30, tzinfo=UTC)


@pytest.mark.proof
@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("BIGINT", lambda n: n - (1 << 62)),
        ("STRING", lambda n: f"'\\{n:03d}"),
        ("DATE", lambda n: date(1500, 1, 1) + timedelta(days=n)),
        ("DECIMAL(38,10)", lambda n: Decimal(n) / 7),
        ("TIMESTAMP", lambda n: NOON + timedelta(minutes=7 * n, microseconds=n)),
        ("TIMESTAMP_NTZ", lambda n: datetime(2024, 3, 31, 1, 59) + timedelta(minutes=n, microseconds=n)),
    ],
)
def test_each_type_of_place_is_found_again(
    session: SparkSession, kind: str, value: Callable[[int], Any], sink: Sink
) -> None:
    server = MemoryStateServer()
    rows = [(value(n), n) for n in range(23)]
    sink.crash_at = {2}

    def made() -> Any:
        return spout(rows[::-1], f"`the key` {kind}, n INT", ["the key"], fields=["n"])

    with pytest.raises(TopologyFailed, match="Crash"):
        drain(made(), server=server)
    drain(made(), server=server)
    assert sink.rows == list(range(23))


@pytest.mark.proof
def test_several_columns_order_rows_that_share_the_first(session: SparkSession, sink: Sink) -> None:
    server = MemoryStateServer()
    rows = [(n // 8, str(n // 3), n) for n in range(40)]
    made = spout(rows[::-1], "a INT, b STRING, c INT", ["a", "b", "c"], fields=["c"])
    sink.crash_at = {1, 4}
    for _ in range(2):
        with pytest.raises(TopologyFailed, match="Crash"):
            drain(made, server=server)
    drain(made, server=server)
    assert sorted(sink.rows) == list(range(40))


@pytest.mark.proof
def test_structs_and_binary_are_emitted_as_tuples_can_hold_them(session: SparkSession, sink: Sink) -> None:
    schema = "id INT, s STRUCT<x: INT, y: ARRAY<STRUCT<z: STRING>>>, b BINARY, m MAP<STRING, INT>"
    rows: Rows = [(1, (2, [("a",)]), b"\x00\xff", {"k": 1}), (2, None, None, None)]
    drain(spout(rows, schema, fields=["s", "b", "m"], rows_per_batch=1))
    assert sink.rows == [({"x": 2, "y": [{"z": "a"}]}, b"\x00\xff", {"k": 1}), (None, None, None)]


@pytest.mark.proof
def test_rows_that_share_a_place_are_told(session: SparkSession, sink: Sink) -> None:
    why = r"spout 'spout': two rows have {'id': 3}: which of them comes first is not said, so .*: \['time', 'id'\]"
    stops(spout([(n // 2, "w") for n in range(6, 20)]), why)
    server = MemoryStateServer()
    drain(spout(words(*range(5))), server=server)
    stops(
        spout(words(*range(5), 4)), r"has read 5 rows up to {'id': 4}, and there are 6 now: 1 came in before it", server
    )


@pytest.mark.proof
def test_a_null_where_it_is_ordered_by_is_told(session: SparkSession, sink: Sink) -> None:
    rows: Rows = [(1, "a"), (None, "b"), (2, "c")]
    stops(spout(rows), r"a row has {'id': None}, a null where it is ordered by, so it has no place; leave")
    assert sink.rows == []
    server = MemoryStateServer()
    drain(spout(words(1, 2)), server=server)
    stops(spout([*words(1, 2), (None, "b")]), r"has read 2 rows up to {'id': 2}, and there are 3 now", server)


@pytest.mark.proof
def test_rows_that_come_in_before_or_go_are_told_unless_nobody_asks(session: SparkSession, sink: Sink) -> None:
    server = MemoryStateServer()
    drain(spout(words(*range(10, 20))), server=server)
    why = (
        r"has read 10 rows up to {'id': 19}, and there are 11 now: 1 came in before it, where nobody looks again; order"
    )
    stops(spout(words(*range(9, 25))), why, server)
    why = r"and there are 8 now: 2 of them have been removed or changed; .* pass check_read=False to the spout"
    stops(spout(words(*range(12, 25))), why, server)
    drain(spout(words(*range(12, 25)), check_read=False), server=server)
    assert [row[0] for row in sink.rows] == list(range(10, 25))


@pytest.mark.proof
def test_rows_that_change_between_replays_are_told_before_they_are_stored(session: SparkSession, sink: Sink) -> None:
    server = MemoryStateServer()
    sink.crash_at = {2}
    with pytest.raises(TopologyFailed, match="Crash"):
        drain(spout(words(*range(12))), server=server)
    changed = [(number, word if number != 7 else "other") for number, word in words(*range(12))]
    stops(
        spout(changed),
        r"spout 'spout' gives other rows after position \[\[4\], 5\] than the 5 that it gave before",
        server,
    )
    shrunk = [row for row in words(*range(12)) if row[0] not in (8, 10, 11)]
    stops(spout(shrunk, check_read=False), r"gave 5 rows after position \[\[4\], 5\], and now gives 4", server)
    drain(spout(words(*range(12))), server=server)
    assert [row[0] for row in sink.rows] == list(range(12))


@pytest.mark.proof
def test_a_frame_that_is_another_each_time_is_found_out_at_once(session: SparkSession, sink: Sink) -> None:
    made = DataFrameTransactionalSpout(
        lambda spark: spark.range(40).withColumn("x", f.rand()), ["id"], ["id", "x"], rows_per_batch=5
    )
    stops(made, r"gives other rows after position None than the 5 that it gave before")
    assert sink.rows == []


@pytest.mark.proof
@pytest.mark.parametrize("kind", ["DOUBLE", "STRING COLLATE UNICODE_CI", "ARRAY<INT>"])
def test_columns_without_a_place_are_told(session: SparkSession, kind: str, sink: Sink) -> None:
    stops(spout([], f"id {kind}, word STRING"), r"order_by column 'id' is of type .*, which has no place")


@pytest.mark.proof
def test_columns_that_are_not_there_are_told(session: SparkSession, sink: Sink) -> None:
    stops(spout([], order_by=["idd"]), r"the DataFrame has no column 'idd'; did you mean 'id'\?; its")
    stops(spout([], fields=["wrod"]), r"the DataFrame has no column 'wrod'; did you mean 'word'\?")
    frame = session.createDataFrame(words(1), "id INT, word STRING")
    with pytest.raises(UnknownField, match=r"the DataFrame has no field 'wrod'.*did you mean 'word'\?"):
        DataFrameTransactionalSpout(frame, ["id"], ["wrod"])


def test_a_data_frame_may_be_given_as_such_and_names_its_fields(session: SparkSession, sink: Sink) -> None:
    frame: DataFrame = session.createDataFrame(words(*range(7)), "id INT, word STRING")
    made = DataFrameTransactionalSpout(frame, ["id"], rows_per_batch=5)
    with LocalCluster() as cluster:
        cluster.submit(topology(made, fails=False), {}).await_drained(TIMEOUT_SECS)
    assert sink.rows == [(number, f"word-{number}") for number in range(7)]


@pytest.mark.proof
def test_a_stream_and_what_is_no_frame_are_told(session: SparkSession, sink: Sink) -> None:
    def stream(spark: SparkSession) -> DataFrame:
        return spark.readStream.format("rate").load()

    stops(
        DataFrameTransactionalSpout(stream, ["timestamp"], ["value"]),
        r"the DataFrame is a stream, which has no order, and gives each row once; read what it reads: KafkaTrans",
    )
    none: Any = lambda spark: "none"  # noqa: E731
    stops(DataFrameTransactionalSpout(none, ["a"], ["a"]), r"frame\(spark\) returned 'none', expected a DataFrame")


def test_declarations_are_checked() -> None:
    none: Any = lambda spark: None  # noqa: E731
    with pytest.raises(
        InvalidSpout, match=r"frame of a DataFrameTransactionalSpout is 'x', expected a function that mak"
    ):
        DataFrameTransactionalSpout("x", ["id"], ["id"])  # type: ignore[arg-type]
    for order_by in ("id", [], [1], None):
        with pytest.raises(InvalidSpout, match=r"order_by of .*, expected a list of columns that tell all rows apart"):
            DataFrameTransactionalSpout(none, order_by, ["id"])  # type: ignore[arg-type]
    with pytest.raises(
        InvalidSpout, match=r"fields of a DataFrameTransactionalSpout are left out; name them, since fr"
    ):
        DataFrameTransactionalSpout(none, ["id"])
    for secs in (0, -1, True):
        with pytest.raises(
            InvalidConfig, match=r"refresh_secs is .*, expected a number of seconds, more than 0, or None"
        ):
            DataFrameTransactionalSpout(none, ["id"], ["id"], refresh_secs=secs)
    with pytest.raises(InvalidConfig, match=r"rows_per_batch is 0, expected a whole number of at least 1"):
        DataFrameTransactionalSpout(none, ["id"], ["id"], 0)


@pytest.mark.parametrize(("start", "why"), [([[1], 5], "has 1 columns, and order_by 2"), ("x", "is 'x', expected")])
def test_a_stored_position_of_another_order_is_told(start: Any, why: str) -> None:
    none: Any = lambda spark: None  # noqa: E731
    with pytest.raises(CorruptData, match=why):
        next(FrameSource(none, ["a", "b"], ["a"], None, True).after(start, "spout"))


@pytest.mark.proof
def test_the_example_of_the_page_runs(
    session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sink: Sink
) -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "sources.md").read_text(encoding="utf-8")
    found = re.search(r"## DataFrames.*?```text\n(.*?)```", page, re.DOTALL)
    assert found is not None
    monkeypatch.chdir(tmp_path)
    rows = [(NOON, n, f"item-{n}", n - 1) for n in range(4)]
    session.createDataFrame(rows, "time TIMESTAMP, id INT, item STRING, amount INT").write.parquet(
        str(tmp_path / "orders.parquet")
    )
    block: dict[str, Any] = {}
    exec(found[1].replace('"orders.parquet"', repr(str(tmp_path / "orders.parquet"))), block)
    drain(block["spout"])
    assert sink.rows == [("item-2", 1), ("item-3", 2)]
