"""HoldingBolt: a committer whose subclasses say in what they gather, and where they store."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any, ClassVar

from stormline import BaseTransactionalBolt, FailedException, ICommitter, Tuple

DRIVER, EXECUTORS = "driver", "executors"
FAILURES = {"before": 2, "after": 3, "execute": 4, "prepare": 5}
"""At which transaction what fails, once."""


class HoldingBolt(BaseTransactionalBolt, ICommitter):
    """Gathers numbers in a list and stores them in a SQLite file.

    `placements`: where its commits may run. What stores in an object of the driver's process can commit nowhere else:
    there is no such object in an executor, whatever travels. That is the one reason to leave `EXECUTORS` out.
    """

    placements: ClassVar[tuple[str, ...]] = (DRIVER, EXECUTORS)

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    # ------------------------------------------------------------------------------------ for subclasses

    def hold(self) -> None:
        """Open, in `prepare`."""
        self.values: list[int] = []

    def gather(self, value: int) -> None:
        """Take one number, in `execute`."""
        self.values.append(value)

    def gathered(self) -> Iterable[int]:
        """Return all numbers, in `finish_batch`."""
        return self.values

    def store(self, txid: int, task: int, numbers: list[int]) -> None:
        """Store the numbers of a transaction, once."""
        store_in_file(self.directory / type(self).__name__, txid, task, numbers)

    @classmethod
    def stored(cls, directory: Path) -> list[int]:
        """Return all numbers that are stored."""
        with closing(sqlite3.connect(directory / cls.__name__)) as db:
            return [number for (number,) in db.execute("SELECT number FROM numbers ORDER BY number")]

    # ------------------------------------------------------------------------------------ as a bolt

    def prepare(self, conf: Any, context: Any, collector: Any, batch_id: Any) -> None:
        self.conf, self.context, self.attempt = conf, context, batch_id
        self.hold()
        self.fail_once("prepare")

    def execute(self, tup: Tuple) -> None:
        self.gather(tup.get_integer(1))
        self.fail_once("execute")

    def finish_batch(self) -> None:
        self.fail_once("before")
        self.store(self.attempt.transaction_id, self.context.this_task_index, sorted(self.gathered()))
        self.fail_once("after")

    def fail_once(self, where: str) -> None:
        """Fail in the one transaction that is to fail there, in whatever process."""
        if FAILURES[where] == self.attempt.transaction_id:
            try:
                (self.directory / f"failed-{where}").touch(exist_ok=False)
            except FileExistsError:
                return
            raise FailedException(f"on order, {where}")


def store_in_file(path: Path, txid: int, task: int, numbers: list[int]) -> None:
    """Store the numbers of a transaction's task where they are not there yet."""
    with closing(sqlite3.connect(path, timeout=30, isolation_level=None)) as db:
        db.execute("CREATE TABLE IF NOT EXISTS done (txid, task, PRIMARY KEY (txid, task))")
        db.execute("CREATE TABLE IF NOT EXISTS numbers (number)")
        db.execute("BEGIN IMMEDIATE")
        if db.execute("INSERT OR IGNORE INTO done VALUES (?, ?)", (txid, task)).rowcount:
            db.executemany("INSERT INTO numbers VALUES (?)", [(number,) for number in numbers])
        db.execute("COMMIT")
