"""The numbered tuples: row n of partition p is the number n · partitions + p. All else follows from the number."""

from __future__ import annotations

from typing import NamedTuple

import numpy

KEYS = 60
MODULUS = 2**61
_CHUNK = 1_000_000


class Sums(NamedTuple):
    """What is known of a set of numbers: how many, their sum, and the sum of their squares modulo 2⁶¹."""

    count: int = 0  # type: ignore[assignment]  # hides a method of tuples, which nobody calls
    total: int = 0
    squares: int = 0

    def plus(self, other: Sums) -> Sums:
        """Return the sums of both sets together."""
        return Sums(self.count + other.count, self.total + other.total, (self.squares + other.squares) % MODULUS)


def key_of(number: int) -> int:
    """Return the key that a number is grouped by."""
    return (number * 2_654_435_761 >> 9) % KEYS


def sums_of_range(first: int, end: int, partition: int, partitions: int) -> Sums:
    """Return the sums of rows [first, end) of one partition, without looking at each."""
    count = end - first
    rows = (first + end - 1) * count // 2
    row_squares = _squares_below(end) - _squares_below(first)
    total = rows * partitions + partition * count
    squares = partitions**2 * row_squares + 2 * partitions * partition * rows + partition**2 * count
    return Sums(count, total, squares % MODULUS)


def _squares_below(end: int) -> int:
    return (end - 1) * end * (2 * end - 1) // 6


def sums_by_key(numbers: int) -> dict[int, Sums]:
    """Return the sums of all numbers below `numbers`, key by key, by looking at each."""
    found = dict.fromkeys(range(KEYS), Sums())
    for first in range(0, numbers, _CHUNK):
        values = numpy.arange(first, min(first + _CHUNK, numbers), dtype=numpy.uint64)
        keys = (values * numpy.uint64(2_654_435_761) >> numpy.uint64(9)) % numpy.uint64(KEYS)
        for key in range(KEYS):
            mine = values[keys == key]
            more = Sums(len(mine), int(mine.sum()), int((mine * mine).sum()) % MODULUS)
            found[key] = found[key].plus(more)
    return {key: sums for key, sums in found.items() if sums.count}
