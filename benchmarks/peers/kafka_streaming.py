"""Structured Streaming over Kafka, its own source, on the same pyspark and local[2] as Stormline.

    python -m benchmarks.peers.kafka_streaming --servers HOST:PORT --topic TOPIC [--form row|sql] [--dsn DSN]
    python -m benchmarks.peers.kafka_streaming copy SERVERS FROM TO CHECKPOINT [TRIGGER]

The first counts records by their key in batches of B, and stores counts and batch id in one transaction, as
`structured_streaming.py` does. The second copies FROM to TO until it is ended, a letter before each value: at least
once, as its Kafka sink is; TRIGGER is `micro-batch`, each batch as soon as the last one is done, or `real-time`.
"""

from __future__ import annotations

import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from benchmarks.peers.environments import HOME
from benchmarks.peers.protocol import WORDS, jobs
from benchmarks.peers.structured_streaming import FORMS, measured_query, session, stop

DEFAULTS = {WORDS: (8, 100_000)}
TRIGGERS = ("micro-batch", "real-time")
REAL_TIME_CHECKPOINT = "5 minutes"
"""How often the real-time mode writes down how far it is."""
STARTED = "the query has started"
NEEDED = ("spark-sql-kafka", "spark-token-provider-kafka", "kafka-clients", "commons-pool2")
"""Spark has all else that they come with."""


def jars() -> list[Path]:
    """Return the jars of Spark's Kafka source, which `prepare` has fetched."""
    return [
        jar for jar in sorted((HOME / "kafka_streaming" / "jars").glob("*.jar")) if any(n in jar.name for n in NEEDED)
    ]


def source(spark: SparkSession, servers: str, topic: str, records_max: int | None = None) -> DataFrame:
    """Return the records of a topic, from its beginning."""
    reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", servers).option("subscribe", topic)
    if records_max is not None:
        reader = reader.option("maxOffsetsPerTrigger", records_max)
    return reader.option("startingOffsets", "earliest").option("kafka.isolation.level", "read_committed").load()


def count(argv: Sequence[str]) -> None:
    """Measure and print."""
    measured = jobs(__doc__, DEFAULTS, forms=tuple(FORMS), argv=argv)
    with tempfile.TemporaryDirectory(prefix="kafka-streaming-peer-", ignore_cleanup_errors=True) as name:
        spark = session("kafka-streaming-peer", Path(name), jars())
        try:
            for job in measured:
                records = source(spark, job.servers, job.topic, job.batch_tuples)
                words = records.select(sql.col("key").cast("string").alias("word"))
                print(
                    measured_query("kafka_streaming", words, job, Path(name), "its Kafka source").as_line(), flush=True
                )
        finally:
            spark.stop()


def copy(servers: str, source_topic: str, target: str, checkpoint: str, trigger: str = TRIGGERS[0]) -> None:
    """Copy until ended."""
    with tempfile.TemporaryDirectory(prefix="kafka-streaming-peer-", ignore_cleanup_errors=True) as name:
        spark = session("kafka-streaming-peer", Path(name), jars())
        try:
            records = source(spark, servers, source_topic)
            value = sql.concat(sql.lit("t"), sql.col("value").cast("string")).alias("value")
            writer = records.select(value).writeStream.format("kafka").option("kafka.bootstrap.servers", servers)
            writer = writer.option("topic", target).option("checkpointLocation", checkpoint)
            if trigger == TRIGGERS[1]:
                writer = writer.outputMode("update").trigger(realTime=REAL_TIME_CHECKPOINT)
            query = writer.start()
            print(STARTED, flush=True)
            query.awaitTermination()
        finally:
            spark.stop()


def main() -> int:
    """Count, or copy."""
    signal.signal(signal.SIGTERM, stop)
    if sys.argv[1:2] == ["copy"]:
        copy(*sys.argv[2:])
    else:
        count(sys.argv[1:])
    return 0


if __name__ == "__main__":
    sys.exit(main())
