"""Committers that gather in memory that they share with something else of their process."""

from __future__ import annotations

import ctypes
import mmap
from pathlib import Path

import numpy as np

from tests.holding.holding_bolt import HoldingBolt

LARGEST = 100
TASKS = 2
CELLS = np.zeros(LARGEST * TASKS, dtype=np.int64)


class ViewOfModulesArray(HoldingBolt):
    """A view of an array of the module; a copy of it is a view of nothing."""

    def hold(self) -> None:
        self.first = LARGEST * self.context.this_task_index
        self.view = CELLS[self.first : self.first + LARGEST]
        self.view[:] = 0

    def gather(self, value: int) -> None:
        self.view[value] += 1

    def gathered(self) -> list[int]:
        mine = CELLS[self.first : self.first + LARGEST]
        return [int(value) for value in np.repeat(np.arange(LARGEST), mine)]


class CtypesArray(HoldingBolt):
    """A ctypes array over the bytes of another object."""

    def hold(self) -> None:
        self.memory = bytearray(LARGEST)
        self.cells = (ctypes.c_uint8 * LARGEST).from_buffer(self.memory)
        self.first = ctypes.pointer(self.cells)

    def gather(self, value: int) -> None:
        self.first.contents[value] += 1

    def gathered(self) -> list[int]:
        return [value for value, count in enumerate(self.memory) for _ in range(count)]


class CtypesCopy(HoldingBolt):
    """A ctypes array that pickles, bytes beside it: the two are one memory no more in a copy."""

    def hold(self) -> None:
        self.memory = bytearray(LARGEST)
        self.cells = (ctypes.c_uint8 * LARGEST).from_buffer(self.memory)

    def gather(self, value: int) -> None:
        self.memory[value] += 1

    def gathered(self) -> list[int]:
        return [value for value, count in enumerate(self.cells) for _ in range(count)]


class AnonymousMap(HoldingBolt):
    """Memory that belongs to this process and its children."""

    def hold(self) -> None:
        self.memory = mmap.mmap(-1, LARGEST)

    def gather(self, value: int) -> None:
        self.memory[value] += 1

    def gathered(self) -> list[int]:
        return [value for value in range(LARGEST) for _ in range(self.memory[value])]


class OpenFile(HoldingBolt):
    """A file that is written through a buffer, and read by its name."""

    def hold(self) -> None:
        name = f"file-{self.attempt.transaction_id}-{self.attempt.attempt_id}-{self.context.this_task_id}"
        self.file = (self.directory / name).open("w", encoding="ascii")

    def gather(self, value: int) -> None:
        self.file.write(f"{value}\n")

    def gathered(self) -> list[int]:
        self.file.close()
        return [int(line) for line in Path(self.file.name).read_text(encoding="ascii").split()]


PROCESSES: list[type[HoldingBolt]] = [ViewOfModulesArray, CtypesArray, CtypesCopy, AnonymousMap, OpenFile]
