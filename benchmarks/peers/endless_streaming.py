"""Structured Streaming without end: GlobalCount in batches of 1,000 tuples, each stored exactly once in SQLite.

    python -m benchmarks.peers.endless_streaming FOLDER

FOLDER holds the database, `counts.sqlite`, and the checkpoint, from which a next start goes on.
"""

from __future__ import annotations

import sys
from pathlib import Path

from pyspark.sql import DataFrame

from benchmarks.peers.batch_stores import SQLiteBatches
from benchmarks.peers.structured_streaming import global_by_row, session

BATCH_TUPLES = 1_000
DATABASE = "counts.sqlite"
LAST_TXID = "SELECT txid FROM last"


def main(folder: Path) -> None:
    """Run until it is killed."""
    store = SQLiteBatches(folder / DATABASE)
    spark = session("endless-streaming-peer", folder / "spark")
    source = spark.readStream.format("rate-micro-batch")
    numbers = source.option("rowsPerBatch", BATCH_TUPLES).option("numPartitions", 2).load()

    def add(batch: DataFrame, batch_id: int) -> None:
        store.add(batch_id, global_by_row(batch))

    writer = numbers.writeStream.foreachBatch(add).option("checkpointLocation", str(folder / "checkpoint"))
    writer.start().awaitTermination()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
