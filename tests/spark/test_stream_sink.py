"""The format "stormline" of Structured Streaming: its options, its columns, and a batch that Spark replays.

A driver that is killed in the middle is in tests/cluster/test_stream_sink_killed.py.
"""

from __future__ import annotations

import os
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pytest
from pyspark import SparkContext
from pyspark.sql import Row, SparkSession
from pyspark.sql.types import (
    ArrayType,
    DateType,
    DecimalType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from stormline.errors import InvalidStore
from stormline.runtime.spark.stream_sink import StormlineDataSource, sink_of
from stormline.spark import register
from stormline.state import SQLiteStore, TransactionalMap
from stormline.state.inspection import Inspection

OPTIONS = {"store": "sqlite:x.sqlite", "table": "words", "key": "word", "queryName": "counts"}
COLUMNS = StructType([StructField("word", StringType()), StructField("count", LongType())])


def test_options_make_a_map_of_the_rows_columns() -> None:
    schema = StructType(
        [
            StructField("count", LongType()),
            StructField("word", StringType()),
            StructField("day", DateType()),
            StructField("at", TimestampType()),
            StructField("price", DecimalType(10, 2)),
        ]
    )
    sink = sink_of({**OPTIONS, "key": "word, day", "checkpointLocation": "/c", "mode": "increment"}, schema)
    assert (sink.query, sink.mode, sink.map.store, sink.map.table) == (
        "counts",
        "increment",
        SQLiteStore("x.sqlite"),
        "words",
    )
    assert sink.map.key == {"word": str, "day": date}
    assert sink.map.value == {"count": int, "at": datetime, "price": Decimal}


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"stor": "x"}, r"has no option 'stor', expected some of store, .*; did you mean 'store'\?"),
        ({"table": ""}, r"needs the option 'table', as \.option\('table', 'counts'\)"),
        ({"queryName": ""}, r"needs the query's name: \.queryName\('counts'\); the fence is kept under it"),
        ({"key": "wrod"}, r"is given the key \['wrod'\], and the rows have \['word', 'count'\]; did you mean 'word'\?"),
        ({"store": "sqlit:x"}, r"begins with 'sqlit', expected sqlite:PATH"),
        ({"mode": "append"}, r"stores in mode 'append', expected one of upsert, increment"),
        ({"key": "word,count"}, r"the value of 'words' is \{\}, expected at least one column"),
    ],
)
def test_options_that_do_not_go_together_are_told(options: dict[str, str], why: str) -> None:
    with pytest.raises(InvalidStore, match=why):
        sink_of({**OPTIONS, **options}, COLUMNS)


def test_a_column_that_no_store_has_and_a_mode_that_replaces_all_are_told() -> None:
    schema = StructType([*COLUMNS.fields, StructField("tags", ArrayType(StringType()))])
    with pytest.raises(
        InvalidStore, match=r"column 'tags' is of type array<string>, which no store has; cast it to one"
    ):
        sink_of(OPTIONS, schema)
    with pytest.raises(
        InvalidStore, match=r"takes the output modes append and update, not complete, which would repla"
    ):
        StormlineDataSource(OPTIONS).streamWriter(COLUMNS, overwrite=True)


def test_rows_are_gathered_by_key_and_timestamps_get_their_zone() -> None:
    schema = StructType([*COLUMNS.fields, StructField("at", TimestampType())])
    writer = StormlineDataSource({**OPTIONS, "key": "word,at"}).streamWriter(schema, overwrite=False)
    noon = datetime(2013, 1, 31, 12, tzinfo=UTC)
    local = noon.astimezone().replace(tzinfo=None)  # as Spark gives it
    found = writer.write(iter([Row(word="cat", count=1, at=local), Row(word="dog", count=None, at=local)]))
    assert found.rows == {("cat", noon): 1, ("dog", noon): None}
    writer.abort([found], 0)


def test_a_batch_whose_record_is_lost_is_replayed_and_counts_once(spark: SparkContext, tmp_path: Path) -> None:
    session = SparkSession(spark)
    register(session)
    store = SQLiteStore(tmp_path / "words.sqlite")
    into = TransactionalMap(store, "words", key={"word": str}, value={"seen": int})
    (tmp_path / "in").mkdir()

    def land(number: int, *rows: str) -> None:
        path = tmp_path / "in" / f"{number}.csv"
        path.write_text("\n".join(rows))
        os.utime(path, (1_000_000 + number, 1_000_000 + number))

    def run() -> None:
        files = session.readStream.schema("word string, seen long").option("maxFilesPerTrigger", 1)
        writer = files.csv(str(tmp_path / "in")).writeStream.format("stormline").queryName("words")
        writer = writer.option("store", str(store)).option("table", "words").option("key", "word")
        writer = writer.option("mode", "increment").option("checkpointLocation", str(tmp_path / "checkpoint"))
        writer.trigger(availableNow=True).start().awaitTermination()

    land(0, "cat,1", "dog,2", "cat,1")
    land(1, "cat,5")
    run()
    assert into.items() == {"cat": 7, "dog": 2}
    for name in ("1", ".1.crc"):  # as if the driver had died after the effect
        (tmp_path / "checkpoint" / "commits" / name).unlink()
    land(2, "owl,9")
    run()
    assert into.items() == {"cat": 7, "dog": 2, "owl": 9}
    with Inspection.of(store) as seen:
        assert seen.fences("words")[""].txid == 3
