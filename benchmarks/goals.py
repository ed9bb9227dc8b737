"""What each figure must reach."""

from __future__ import annotations

from benchmarks.figure import Goal

TUPLES = "tuples/s"
TRANSACTIONS = "transactions/s"
COUNT = "GlobalCount, batches of 100,000"
WORDS = "Words, batches of 100,000"
SMALL = "GlobalCount, 3 tuples a partition"
SPARK = "Structured Streaming"
STORED = "GlobalCount, 9 tuples a transaction, into SQLite"
KEYS = "keys/s"
RECORDS = "records/s"
ROWS_A_SECOND = "rows/s"
BARE_COMMITS = "confluent-kafka's transactional produces"
BARE_KAFKA = "confluent-kafka alone, 2 processes"

GOALS: tuple[Goal, ...] = (
    Goal("P1", "P1", COUNT, "bare Python loop, 2 processes", TUPLES, 0.60),
    Goal("P1b", "P1", "the same, an emit for each tuple", "bare Python loop, 2 processes", TUPLES, 0.60),
    Goal("P2", "P2", WORDS, "bare Python loop, 2 processes", TUPLES, 0.35),
    Goal("P3", "P3", SMALL, "synchronous kazoo sets", TRANSACTIONS, 0.50),
    Goal("P4a", "P4", COUNT, SPARK, TUPLES, 10),
    Goal("P4b", "P4", SMALL, SPARK, TRANSACTIONS, 100),
    Goal("P5a", "P5", COUNT, "bytewax", TUPLES, 2),
    Goal("P5b", "P5", WORDS, "bytewax", TUPLES, 2),
    Goal("P5c", "P5", COUNT, "PyFlink", TUPLES, 20),
    Goal("P5d", "P5", WORDS, "PyFlink", TUPLES, 20),
    Goal("P6a", "P6", COUNT, "Storm 1.2.4", TUPLES, 2),
    Goal("P6b", "P6", WORDS, "Storm 1.2.4", TUPLES, 2),
    Goal("P6c", "P6", SMALL, "Storm 1.2.4", TRANSACTIONS, 2),
    Goal("P7", "P7", "latency of a transaction of 1,000, p50", "empty one-stage Spark job", "ms", 1.5, at_most=True),
    Goal("P8a", "P8", "columnar GlobalCount", "pyarrow by hand, 2 processes", TUPLES, 0.5),
    Goal("P8b", "P8", "columnar Words", "pyarrow by hand, 2 processes", TUPLES, 0.5),
    Goal("P8c", "P8", "columnar GlobalCount", "P1's row bolts", TUPLES, 10),
    Goal("P8d", "P8", "columnar Words", "P1's row bolts", TUPLES, 10),
    Goal("P8e", "P8", "the same, counted before the fields grouping", "pyarrow by hand, 2 processes", TUPLES, 0.5),
    Goal("P8f", "P8", "the same, counted before the fields grouping", "P1's row bolts", TUPLES, 10),
    Goal("P9", "P9", "a transaction's cost at txid 20,000", "at txid 200", "ms", 1.1, at_most=True),
    Goal("P10a", "P10", "a tuple's cost as batches grow, worst step", "linear", "µs", 1.15, at_most=True),
    Goal("P10b", "P10", "a tuple's cost as partitions grow, worst step", "linear", "µs", 1.15, at_most=True),
    Goal("P11", "P11", "`stormline run` until the first commit", "bare SparkContext, one job", "s", 1.5, at_most=True),
    Goal("S1a", "S1", STORED, "synchronous kazoo sets", TRANSACTIONS, 2),
    Goal("S1b", "S1", STORED, "the same, one transaction a commit of the database", TRANSACTIONS, 4),
    Goal("S2", "S2", "the same into PostgreSQL", "psycopg alone, one commit a transaction", TRANSACTIONS, 2),
    Goal("S3a", "S3", "100,000 new keys in one commit to PostgreSQL", "bare sorted binary COPY", KEYS, 0.45),
    Goal("S3b", "S3", "100,000 keys that exist", "bare sorted binary COPY of new keys", KEYS, 0.45),
    Goal("S4a", "S4", "100,000 new keys in one commit to SQLite", "bare upsert", KEYS, 0.8),
    Goal("S4b", "S4", "100,000 keys that exist, to SQLite", "bare upsert", KEYS, 0.8),
    Goal("S4c", "S4", "100,000 new keys in one commit to MariaDB", "bare upsert", KEYS, 0.8),
    Goal("S4d", "S4", "100,000 keys that exist, to MariaDB", "bare upsert", KEYS, 0.8),
    Goal("S4e", "S4", "100,000 new keys in one commit to Redis", "bare upsert", KEYS, 0.8),
    Goal("S4f", "S4", "100,000 keys that exist, to Redis", "bare upsert", KEYS, 0.8),
    Goal("S5a", "S5", "Words by the ready committer into PostgreSQL", SPARK, TUPLES, 5),
    Goal("S5b", "S5", "the same with record batches", f"{SPARK} in SQL", TUPLES, 10),
    Goal("S6a", "S6", "kill -9 of the driver until the next commit, p50", SPARK, "s", 1, at_most=True),
    Goal("S6b", "S6", "the longest of them", SPARK, "s", 1, at_most=True),
    Goal("K1", "K1", "Kafka's records of five JSON fields, counted as rows", BARE_KAFKA, RECORDS, 0.6),
    Goal("K2", "K2", "the same by record batches", f"{BARE_KAFKA}, into Arrow", RECORDS, 0.6),
    Goal("K3a", "K3", "Kafka, counted by key, into PostgreSQL", SPARK, RECORDS, 5),
    Goal("K3b", "K3", "the same by record batches", f"{SPARK} in SQL", RECORDS, 5),
    Goal("K4a", "K4", "Kafka to Kafka exactly once, 10,000 records/s, p50", f"{SPARK}, p50", "ms", 1, at_most=True),
    Goal("K4b", "K4", "the same, p99", f"{SPARK}, p50", "ms", 1, at_most=True),
    Goal("K5a", "K5", "10 records written to Kafka, each by itself", BARE_COMMITS, TRANSACTIONS, 0.8),
    Goal("K5b", "K5", "the same in groups", BARE_COMMITS, TRANSACTIONS, 3),
    Goal("T1", "T1", "batches of 100,000 rows by two-phase commit", "psycopg's COPY and COMMIT", ROWS_A_SECOND, 0.7),
    Goal("T2", "T2", "10 rows by two-phase commit", "psycopg's PREPARE, COMMIT PREPARED", TRANSACTIONS, 0.5),
)

ROWS: tuple[str, ...] = tuple(dict.fromkeys(goal.row for goal in GOALS))
