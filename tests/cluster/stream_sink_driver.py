"""A driver of Structured Streaming that stores by the format "stormline": `python -m … FOLDER NAME=URL…`.

It reads the JSON files in FOLDER/in, one a batch, into a table of each URL. Where FOLDER/hold exists, the second batch
of each query waits after its effect, before Spark writes that it is done, and says so by FOLDER/NAME.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.datasource import WriterCommitMessage
from pyspark.sql.types import StructType

from stormline.runtime.spark.stream_sink import StormlineDataSource, StreamWriter, sink_of

SCHEMA = "word string, seen long, at timestamp"


class HeldSource(StormlineDataSource):
    """The sink, which can be held up; `path` is the folder."""

    def streamWriter(self, schema: StructType, overwrite: bool) -> StreamWriter:
        """Return the writer."""
        return HeldWriter(sink_of(self.options, schema), schema.fieldNames(), Path(self.options["path"]))


class HeldWriter(StreamWriter):
    """Waits after the effect of the second batch, as long as its JVM lives."""

    def __init__(self, sink: Any, names: Sequence[str], folder: Path) -> None:
        super().__init__(sink, names)
        self._folder = folder

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        """Store the batch, and wait where it is to."""
        super().commit(messages, batchId)
        parent = os.getppid()
        if batchId == 1 and (self._folder / "hold").exists():
            (self._folder / self._sink.query).touch()
            while os.getppid() == parent:
                time.sleep(0.05)


def main() -> None:
    """Run the queries until they have read all files."""
    folder = Path(sys.argv[1])
    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.shuffle.partitions": "2",
        "spark.log.level": "ERROR",
    }
    builder = SparkSession.builder.master("local[2]")
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.dataSource.register(HeldSource)
    queries = []
    for name, _, url in (argument.partition("=") for argument in sys.argv[2:]):
        rows = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).json(str(folder / "in"))
        writer = rows.select("word", "seen").writeStream.format("stormline").queryName(name)
        writer = writer.option("store", url).option("table", "words").option("key", "word").option("mode", "increment")
        writer = writer.option("path", str(folder)).option("checkpointLocation", str(folder / "checkpoints" / name))
        queries.append(writer.trigger(availableNow=True).start())
    for query in queries:
        query.awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main()
