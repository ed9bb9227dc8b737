"""Committers that gather in files, and in what stands for one: an int, a map, a directory."""

from __future__ import annotations

import dbm.dumb
import os
import shelve
import sqlite3
import tempfile
from pathlib import Path

import numpy as np

from tests.holding.holding_bolt import HoldingBolt

LARGEST = 1000


class MemoryMap(HoldingBolt):
    """A numpy.memmap, which pickles as a plain array: what is written into a copy is in no file."""

    def hold(self) -> None:
        name = f"memmap-{self.attempt.transaction_id}-{self.attempt.attempt_id}-{self.context.this_task_id}"
        self.path = self.directory / name
        self.cells = np.memmap(self.path, dtype=np.int64, mode="w+", shape=(LARGEST,))

    def gather(self, value: int) -> None:
        self.cells[value] += 1

    def gathered(self) -> list[int]:
        self.cells.flush()
        return [int(value) for value in np.repeat(np.arange(LARGEST), np.fromfile(self.path, dtype=np.int64))]


class Shelf(HoldingBolt):
    """A shelve, which is a dict on disk."""

    def hold(self) -> None:
        name = f"shelf-{self.attempt.transaction_id}-{self.attempt.attempt_id}-{self.context.this_task_id}"
        self.shelf = shelve.Shelf(dbm.dumb.open(str(self.directory / name)))  # type: ignore[arg-type]  # noqa: SIM115

    def gather(self, value: int) -> None:
        self.shelf[str(value)] = value

    def gathered(self) -> list[int]:
        values = list(self.shelf.values())
        self.shelf.close()
        return values


class TemporaryDirectory(HoldingBolt):
    """A directory that vanishes with its owner, and so with the owner's copy."""

    def hold(self) -> None:
        self.spool = tempfile.TemporaryDirectory()

    def gather(self, value: int) -> None:
        (Path(self.spool.name) / str(value)).touch()

    def gathered(self) -> list[int]:
        values = [int(path.name) for path in Path(self.spool.name).iterdir()]
        self.spool.cleanup()
        return values


class Descriptor(HoldingBolt):
    """An open descriptor is an int, and another file, or none, in another process."""

    def hold(self) -> None:
        descriptor, path = tempfile.mkstemp(dir=self.directory)
        os.unlink(path)
        self.descriptor = descriptor

    def gather(self, value: int) -> None:
        os.write(self.descriptor, b"%d " % value)

    def gathered(self) -> list[int]:
        os.lseek(self.descriptor, 0, os.SEEK_SET)
        with open(self.descriptor, "rb") as file:
            return [int(value) for value in file.read().split()]


class SqliteConnection(HoldingBolt):
    """A database in memory, which ends with its connection, and which one thread alone may use."""

    def hold(self) -> None:
        self.db = sqlite3.connect(":memory:")
        self.db.execute("CREATE TABLE gathered (value)")

    def gather(self, value: int) -> None:
        self.db.execute("INSERT INTO gathered VALUES (?)", (value,))

    def gathered(self) -> list[int]:
        values = [value for (value,) in self.db.execute("SELECT value FROM gathered")]
        self.db.close()
        return values


FILES: list[type[HoldingBolt]] = [MemoryMap, Shelf, TemporaryDirectory, Descriptor, SqliteConnection]
