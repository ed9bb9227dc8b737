"""Bare loads: rows into PostgreSQL by psycopg alone, in the fastest way that we know of."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from benchmarks.measuring.settings import CORES
from benchmarks.topologies.prepared import PRICE, first_row
from benchmarks.topologies.synthetic import ROWS_AT_ONCE, words

Row = tuple[int, str, float]

INSERT = "INSERT INTO loads (id, word, amount) SELECT * FROM unnest(%s::bigint[], %s::text[], %s::float8[])"
COPY = "COPY loads (id, word, amount) FROM STDIN (FORMAT BINARY)"


def rows_of(first: int, count: int) -> Iterator[list[Row]]:
    """Give rows with numbers from `first` on, some at a time: made anew, but for their words."""
    share = words(0, count)
    for begin in range(0, count, ROWS_AT_ONCE):
        yield [(i, word, PRICE * i) for i, word in enumerate(share[begin : begin + ROWS_AT_ONCE], first + begin)]


@lru_cache(maxsize=1)
def _connection(dsn: str) -> Any:
    """Return this process's connection."""
    import psycopg

    return psycopg.connect(dsn, autocommit=True)


def load(dsn: str, process: int, batches: int, share: int) -> int:
    """Load this process's share of each batch by a binary COPY, a transaction of its own; return how many rows."""
    db = _connection(dsn)
    for batch in range(batches):
        with db.cursor() as cursor, cursor.copy(COPY) as copy:
            copy.set_types(["int8", "text", "float8"])
            for rows in rows_of(first_row(batch, CORES, share, process), share):
                for row in rows:
                    copy.write_row(row)
    return batches * share


class BarePrepares:
    """Transactions of a few rows, each prepared and committed before the next one begins, on one connection."""

    def __init__(self, dsn: str, rows: int) -> None:
        import psycopg

        self._db: Any = psycopg.connect(dsn, autocommit=True)
        self._rows = rows
        self._numbers = itertools.count()

    def run(self, commits: int) -> float:
        """Commit transactions; return the seconds it took."""
        execute = self._db.execute
        begun = time.perf_counter()
        for batch in range(commits):
            (rows,) = rows_of(batch * self._rows, self._rows)
            name = f"bare-{next(self._numbers)}"
            execute("BEGIN")
            execute(INSERT, [list(column) for column in zip(*rows, strict=True)])
            execute(f"PREPARE TRANSACTION '{name}'", prepare=False)
            execute(f"COMMIT PREPARED '{name}'", prepare=False)
        return time.perf_counter() - begun

    def close(self) -> None:
        """Let go of the connection."""
        self._db.close()
