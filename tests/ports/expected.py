"""For each program: what its world holds before it runs, when it is done, and what must have come of it, exactly."""

from __future__ import annotations

import random
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from tests.ports import (
    acking_spout,
    duck_typed,
    hbase_counters,
    kafka_opaque,
    kafka_transactional,
    numbered_rows,
    opaque_executor,
    parsing_thread,
    partitioned_executor,
    redis_pool,
    sqlite_outbox,
    transactional_global_count,
    transactional_words,
    tutorial,
    tweets,
)
from tests.ports.services import hbase, kafka, redis

Outcome = tuple[Any, Any]


@dataclass(frozen=True)
class Port:
    """One program.

    `check`: what has come of it, and what must have. `done`: whether all is counted, asked where the spout is always
    ready and so never drained. `survives`: whether all that it needs for a replay outlives its driver, as written.
    """

    program: ModuleType
    fill: Callable[[], None]
    check: Callable[[], Outcome]
    done: Callable[[], bool] | None = None
    survives: bool = True
    config: dict[str, Any] = field(default_factory=dict)

    def topology(self) -> Any:
        return self.program.topology()

    def conf(self) -> dict[str, Any]:
        """Return the program's own settings, with no time in them."""
        return {**getattr(self.program, "config", {}), **self.config}


# ---------------------------------------------------------------------------------------- storm-starter's


def _no_global_count() -> None:
    transactional_global_count.TransactionalGlobalCount.DATABASE.clear()


def _check_global_count() -> Outcome:
    value = transactional_global_count.TransactionalGlobalCount.DATABASE["GLOBAL-COUNT"]
    return (value.count, value.txid), (19, 3)


def _no_words() -> None:
    transactional_words.TransactionalWords.COUNT_DATABASE.clear()
    transactional_words.TransactionalWords.BUCKET_DATABASE.clear()


def _check_words() -> Outcome:
    words = transactional_words.TransactionalWords
    counts = {word: value.count for word, value in words.COUNT_DATABASE.items()}
    buckets = {bucket: value.count for bucket, value in words.BUCKET_DATABASE.items()}
    return (counts, buckets), ({"cat": 8, "dog": 7, "apple": 2, "chicken": 1, "banana": 1}, {0: 5})


# ---------------------------------------------------------------------------------------- a book's, and contributed

_drawn = random.Random(7)
TWEETS = [
    " ".join(
        [
            "hello",
            *(f"@user{_drawn.randrange(6)}" for _ in range(_drawn.randrange(3))),
            *(f"#tag{_drawn.randrange(5)}" for _ in range(_drawn.randrange(3))),
        ]
    )
    for _ in range(105)
]
MESSAGES = [[f"message {n % 17}" for n in range(partition, 90, 4)] for partition in range(4)]


def _fill_tweets() -> None:
    redis.flush()
    client = redis.Redis("localhost")
    for number, tweet in enumerate(TWEETS):
        client.set(str(number), tweet)
    client.set("NEXT_WRITE", len(TWEETS))


def _check_tweets() -> Outcome:
    users, hashtags, both = Counter[str](), Counter[str](), Counter[str]()
    for tweet in TWEETS:
        named = {word[1:] for word in tweet.split() if word[0] == "@"}
        tagged = {word[1:] for word in tweet.split() if word[0] == "#"}
        users.update(named)
        hashtags.update(tagged)
        both.update(f"{user}:{tag}" for user in named for tag in tagged)
    client = redis.Redis("localhost")
    stored = [client.hgetall(name) for name in ("users", "hashtags", "users_hashtags")]
    return (stored, client.get("LAST_COMMITTED")), ([users, hashtags, both], 11)


def _start_brokers(refusing: float) -> None:
    kafka.start(
        {
            "kafka1": kafka.Broker([MESSAGES[0], MESSAGES[2]], refusing, 1),
            "kafka2": kafka.Broker([MESSAGES[1], MESSAGES[3]], refusing, 2),
        }
    )
    kafka_transactional.DATABASE.clear()
    kafka_opaque.DATABASE.clear()


COUNTED = Counter(message for partition in MESSAGES for message in partition)


def _check_kafka() -> Outcome:
    return {message: count for message, (count, _) in kafka_transactional.DATABASE.items()}, COUNTED


def _check_opaque_kafka() -> Outcome:
    return {message: value.current for message, value in kafka_opaque.DATABASE.items()}, COUNTED


def _check_hbase() -> Outcome:
    counters: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for url, site, day in hbase_counters.CLICKS:
        counters[url].update([f"daily:{day}", f"site:{site}"])
    rows = {key: {c: n for c, n in row.items() if c != "txid"} for key, row in hbase.table("shorturl").rows.items()}
    return rows, counters


def _fill_redis_words() -> None:
    redis.flush()
    redis_pool.RedisBolt.pool = None
    redis.Pool.opened = 0


def _check_redis_words() -> Outcome:
    return (redis.Redis("localhost").hgetall("words"), redis.Pool.opened), (Counter(redis_pool.WORDS), 1)


def _check_tutorial() -> Outcome:
    return tutorial.MyCommitter.db_map["GLOBAL_KEY"].count, tutorial.LINES


# ---------------------------------------------------------------------------------------- spouts of their own


def _rows(program: ModuleType) -> list[str]:
    return [row for partition in program.PARTITIONS.values() for row in partition]


def _check_partitioned_executor() -> Outcome:
    rows = _rows(partitioned_executor)
    return {row: count for row, (count, _) in partitioned_executor.DATABASE.items()}, dict.fromkeys(rows, 1)


def _check_opaque_executor() -> Outcome:
    rows = _rows(opaque_executor)
    return {row: count for row, (count, _) in opaque_executor.DATABASE.items()}, dict.fromkeys(rows, 1)


def _check_numbered_rows() -> Outcome:
    tasks = [f"task {task}" for task in range(2)]
    last = numbered_rows.BATCHES * numbered_rows.TAKE
    rows = {task: [row for _, batch in numbered_rows.ROWS for row in batch if row.startswith(task)] for task in tasks}
    txids = [txid for txid, _ in numbered_rows.ROWS]
    expected = {task: [f"{task}, row {n + 1}" for n in range(last)] for task in tasks}
    return (txids, rows), (list(range(1, numbered_rows.BATCHES + 1)), expected)


def _fill_queue() -> None:
    acking_spout.QUEUE = acking_spout.Queue()
    acking_spout.QUEUE.publish([f"message {n}" for n in range(100)])
    acking_spout.RECEIVED.clear()


def _check_queue() -> Outcome:
    published = sorted(f"message {n}" for n in range(100))
    received = sorted(message for _, batch in acking_spout.RECEIVED for message in batch)
    queue = acking_spout.QUEUE
    return (received, sorted(queue.acked), queue.unacked), (published, published, {})


def _check_seconds() -> Outcome:
    seconds = Counter[str]()
    for number in range(len(parsing_thread.EVENTS)):
        seconds[f"user{number % 11}"] += number
    return {user: stored for user, (stored, _) in parsing_thread.DATABASE.items()}, seconds


def _check_duck_typed() -> Outcome:
    lines = [line for lines in duck_typed.FILES.values() for line in lines]
    return sorted(line for batch in duck_typed.SEEN.values() for line in batch), sorted(lines)


AMOUNTS = [(f"account{number % 9}", number) for number in range(100)]
OUTBOX = Path("outbox.sqlite")  # in the current directory


def _fill_outbox() -> None:
    with closing(sqlite3.connect(OUTBOX)) as db, db:
        db.executescript(sqlite_outbox.SCHEMA)
        db.executemany("INSERT INTO outbox (account, amount) VALUES (?, ?)", AMOUNTS)


def _check_outbox() -> Outcome:
    balances = Counter[str]()
    for account, amount in AMOUNTS:
        balances[account] += amount
    with closing(sqlite3.connect(OUTBOX)) as db:
        stored = dict(db.execute("SELECT account, amount FROM balances"))
        sent = db.execute("SELECT sent, count(*) FROM outbox GROUP BY sent").fetchall()
    return (stored, sent), (balances, [(1, len(AMOUNTS))])


PORTS = {
    "global_count": Port(transactional_global_count, _no_global_count, _check_global_count),
    "words": Port(transactional_words, _no_words, _check_words),
    "tweets": Port(tweets, _fill_tweets, _check_tweets, survives=False),
    "kafka_transactional": Port(
        kafka_transactional,
        lambda: _start_brokers(0.02),
        _check_kafka,
        lambda: sum(count for count, _ in list(kafka_transactional.DATABASE.values())) >= COUNTED.total(),
    ),
    "kafka_opaque": Port(
        kafka_opaque,
        lambda: _start_brokers(0.1),
        _check_opaque_kafka,
        lambda: sum(value.current for value in list(kafka_opaque.DATABASE.values())) >= COUNTED.total(),
    ),
    "hbase_counters": Port(hbase_counters, hbase.drop_all, _check_hbase),
    "redis_pool": Port(redis_pool, _fill_redis_words, _check_redis_words),
    "tutorial": Port(
        tutorial,
        tutorial.MyCommitter.db_map.clear,
        _check_tutorial,
        lambda: getattr(tutorial.MyCommitter.db_map.get("GLOBAL_KEY"), "count", 0) >= tutorial.LINES,
    ),
    "partitioned_executor": Port(
        partitioned_executor,
        partitioned_executor.DATABASE.clear,
        _check_partitioned_executor,
        lambda: len(partitioned_executor.DATABASE) >= len(_rows(partitioned_executor)),
        survives=False,
    ),
    "opaque_executor": Port(
        opaque_executor,
        opaque_executor.DATABASE.clear,
        _check_opaque_executor,
        lambda: len(opaque_executor.DATABASE) >= len(_rows(opaque_executor)),
        survives=False,
    ),
    "numbered_rows": Port(numbered_rows, numbered_rows.ROWS.clear, _check_numbered_rows, survives=False),
    "acking_spout": Port(acking_spout, _fill_queue, _check_queue, survives=False),
    "parsing_thread": Port(parsing_thread, parsing_thread.DATABASE.clear, _check_seconds),
    "duck_typed": Port(duck_typed, duck_typed.SEEN.clear, _check_duck_typed),
    "sqlite_outbox": Port(sqlite_outbox, _fill_outbox, _check_outbox),
}
