"""Spark Structured Streaming with Python `foreachBatch`, on the same pyspark and local[2] as Stormline.

    python -m benchmarks.peers.structured_streaming [--work global_count,words,small_batches] [--form row|pandas|sql]
        [--dsn DSN]

Batches of exactly B tuples come from Spark's own `rate-micro-batch` source, in 2 partitions (3 of 3 tuples where
batches are small); an SQL expression makes the words. The function given to `foreachBatch` counts the batch and then,
in one transaction of SQLite, or of the PostgreSQL that `--dsn` names, adds the counts to the stored ones and stores
the batch id beside them; a batch id that is stored already adds nothing.
The stream's offsets and commits go to a checkpoint directory on disk, as always.

Time runs from one commit to another, after a warm-up of some seconds and batches.

Three forms of the count, all on the executors but for the last sums:

- `row` (default): `rdd.mapPartitions` with a loop over the rows; for words a dict a partition and `reduceByKey`. Each
  tuple passes through a Python loop, as it passes through a bolt's `execute`.
- `pandas`: `mapInPandas` with a loop over the words, the same loop behind Arrow. It needs pyarrow and pandas.
- `sql`: `count()` and `groupBy().count()`. No tuple reaches Python; it is the counterpart of columnar bolts, and shows
  what a batch costs Structured Streaming whatever is done with it.
"""

from __future__ import annotations

import operator
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.version import __version__ as pyspark_version

from benchmarks.peers.batch_stores import BatchStore, PostgreSQLBatches, SQLiteBatches
from benchmarks.peers.protocol import (
    DISTINCT,
    GLOBAL,
    GLOBAL_COUNT,
    SMALL_BATCHES,
    STRIDE,
    WORDS,
    Job,
    Measurement,
    checked,
    jobs,
    word_counts,
)

DEFAULTS = {GLOBAL_COUNT: (8, 100_000), WORDS: (8, 100_000), SMALL_BATCHES: (10, 9)}
WARM_UP_SECS, WARM_UP_BATCHES = 3.0, 3
START_SECS_MAX = 120.0


def count_rows(rows: Iterable[Any]) -> Iterator[int]:
    """Count a partition, row by row."""
    count = 0
    for _ in rows:
        count += 1
    yield count


def count_words(rows: Iterable[Any]) -> Iterable[tuple[str, int]]:
    """Count a partition's words, row by row."""
    counts: dict[str, int] = {}
    for row in rows:
        word = row.word
        counts[word] = counts.get(word, 0) + 1
    return counts.items()


def count_frames(frames: Iterable[Any]) -> Iterator[Any]:
    """Count a partition of data frames, word by word."""
    import pandas

    count = 0
    for frame in frames:
        for _ in frame["word"]:
            count += 1
    yield pandas.DataFrame({"n": [count]})


def count_frames_words(frames: Iterable[Any]) -> Iterator[Any]:
    """Count the words of a partition of data frames, word by word."""
    import pandas

    counts: dict[str, int] = {}
    for frame in frames:
        for word in frame["word"]:
            counts[word] = counts.get(word, 0) + 1
    yield pandas.DataFrame({"word": list(counts), "n": list(counts.values())})


def global_by_row(batch: DataFrame) -> Mapping[str, int]:
    return {GLOBAL: batch.rdd.mapPartitions(count_rows).sum()}


def global_by_pandas(batch: DataFrame) -> Mapping[str, int]:
    return {GLOBAL: sum(row.n for row in batch.mapInPandas(count_frames, "n long").collect())}


def global_by_sql(batch: DataFrame) -> Mapping[str, int]:
    return {GLOBAL: batch.count()}


def words_by_row(batch: DataFrame) -> Mapping[str, int]:
    return dict(batch.rdd.mapPartitions(count_words).reduceByKey(operator.add, 2).collect())


def words_by_pandas(batch: DataFrame) -> Mapping[str, int]:
    partial = batch.mapInPandas(count_frames_words, "word string, n long")
    return dict(map(tuple, partial.groupBy("word").sum("n").collect()))


def words_by_sql(batch: DataFrame) -> Mapping[str, int]:
    return dict(map(tuple, batch.groupBy("word").count().collect()))


FORMS: dict[str, tuple[Callable[[DataFrame], Mapping[str, int]], Callable[[DataFrame], Mapping[str, int]]]] = {
    "row": (global_by_row, words_by_row),
    "pandas": (global_by_pandas, words_by_pandas),
    "sql": (global_by_sql, words_by_sql),
}
"""For each form, how a batch is counted as a whole and by words."""


class Run:
    """The function for foreachBatch, and the clock of its commits."""

    def __init__(self, job: Job, store: BatchStore) -> None:
        self._job = job
        self._store = store
        self._count = FORMS[job.form][job.work == WORDS]
        self.done = threading.Event()
        self._first = self._begun = 0.0
        self.batches = self.measured = 0
        self.secs = 0.0

    def __call__(self, batch: DataFrame, batch_id: int) -> None:
        """Count a batch and store its counts."""
        if self.done.is_set():
            return
        self._store.add(batch_id, self._count(batch))
        now = time.perf_counter()
        self.batches += 1
        self._first = self._first or now
        if self._begun:
            self.measured += 1
            self.secs = now - self._begun
            if self.measured >= self._job.batches or self.secs >= self._job.secs_max:
                self.done.set()
        elif self.batches >= WARM_UP_BATCHES and now - self._first >= WARM_UP_SECS:
            self._begun = now


def measure(spark: SparkSession, job: Job, directory: Path) -> Measurement:
    """Run one streaming query over words that Spark makes, until its batches are measured."""
    partitions = 3 if job.work == SMALL_BATCHES else 2
    source = spark.readStream.format("rate-micro-batch")
    numbers = source.option("rowsPerBatch", job.batch_tuples).option("numPartitions", partitions).load()
    words = numbers.select(
        sql.concat(sql.lit("word"), (sql.col("value") * STRIDE % DISTINCT).cast("string")).alias("word")
    )
    return measured_query("structured_streaming", words, job, directory, f"rate-micro-batch, {partitions} partitions")


def measured_query(peer: str, words: DataFrame, job: Job, directory: Path, source: str) -> Measurement:
    """Run one streaming query until its batches are measured, and check what it has stored."""
    store = PostgreSQLBatches(job.dsn) if job.dsn else SQLiteBatches(directory / f"{job.work}.sqlite")
    run = Run(job, store)
    writer = words.writeStream.foreachBatch(run).option("checkpointLocation", str(directory / f"{job.work}-checkpoint"))
    query = writer.start()
    deadline = time.monotonic() + START_SECS_MAX + 2 * job.secs_max
    try:
        while not run.done.wait(0.02):
            if not query.isActive:
                query.awaitTermination(0)  # raises what ended it
                raise RuntimeError(f"{job.work}: the query ended after {run.batches} batches")
            if time.monotonic() > deadline:
                raise TimeoutError(f"{job.work}: no end after {run.batches} batches")
    finally:
        query.stop()
    result = checked(job.work, word_counts(0, run.batches * job.batch_tuples), store.counts())
    store.close()
    database = "PostgreSQL" if job.dsn else "SQLite"
    return Measurement(
        peer,
        pyspark_version,
        job.work,
        run.measured * job.batch_tuples,
        run.measured,
        run.secs,
        result,
        f"form {job.form}, foreachBatch into {database}, {source}, local[2]",
    )


def session(name: str, directory: Path, jars: Sequence[Path] = ()) -> SparkSession:
    """Start Spark as all peers that run on it have it; what it writes goes into `directory`."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = (
        SparkSession.builder.master("local[2]")
        .appName(name)
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.local.dir", str(directory))
        .config("spark.sql.shuffle.partitions", 2)
        .config("spark.sql.warehouse.dir", str(directory / "warehouse"))
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
    )
    if jars:
        builder = builder.config("spark.jars", ",".join(map(str, jars)))
    spark: SparkSession = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def stop(signal_number: int, frame: object) -> None:
    """End as at Ctrl-C, which ends Spark's JVM too."""
    raise KeyboardInterrupt


def main() -> int:
    """Measure and print."""
    measured = jobs(__doc__, DEFAULTS, forms=tuple(FORMS))
    signal.signal(signal.SIGTERM, stop)
    with tempfile.TemporaryDirectory(prefix="structured-streaming-peer-", ignore_cleanup_errors=True) as name:
        directory = Path(name)
        spark = session("structured-streaming-peer", directory)
        try:
            for job in measured:
                print(measure(spark, job, directory).as_line(), flush=True)
        finally:
            spark.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
