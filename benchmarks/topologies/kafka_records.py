"""The records that K1 to K3 read: a word as key, five fields of JSON as value, the same ones over and over."""

from __future__ import annotations

import json
from collections.abc import Sequence

from benchmarks.topologies.synthetic import words

TYPES = {"id": int, "word": str, "user": str, "amount": float, "paid": bool}
"""The five fields."""

PARTITIONS = 2
ROUND_RECORDS = 100_000
"""Distinct records of a partition; they come again and again. Each word is among any 1,000 in a row."""

Records = Sequence[tuple[bytes, bytes]]


def records(partition: int, count: int = ROUND_RECORDS) -> Records:
    """Make records of one partition: keys and values."""
    first = partition * count
    made = []
    for i, word in enumerate(words(first, count), first):
        value = {"id": i, "word": word, "user": f"user-{i * 31 % 99_991}", "amount": i * 7 % 10_000 / 100}
        made.append((word.encode(), json.dumps({**value, "paid": i % 3 == 0}).encode()))
    return made
