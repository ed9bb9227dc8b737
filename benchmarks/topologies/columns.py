"""The synthetic words as record batches, and how they are counted: the same for bolts and by hand."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.topologies.synthetic import DISTINCT_WORDS, STRIDE, words


@lru_cache(maxsize=1)
def _distinct() -> Any:
    return pa.array([f"word{i}" for i in range(DISTINCT_WORDS)])


@lru_cache(maxsize=16)
def _picks(first: int, count: int) -> Any:
    return pa.array(np.arange(first, first + count, dtype=np.int32) % DISTINCT_WORDS * STRIDE % DISTINCT_WORDS)


def record_batch(first: int, count: int) -> Any:
    """Make the record batch of words `first` to `first + count - 1`: each time anew, of picks made once a process."""
    return pa.RecordBatch.from_arrays([_distinct().take(_picks(first, count))], names=["word"])


def counted_words(batch: Any) -> Any:
    """Return a record batch with each word of a batch once, and how often it occurs."""
    counted = pc.value_counts(batch.column(0))
    return pa.RecordBatch.from_arrays(counted.flatten(), names=["word", "count"])


def count_words(counts: dict[str, int], batch: Any) -> None:
    """Add how often each word occurs in a batch to `counts`."""
    add_counts(counts, counted_words(batch))


def add_counts(counts: dict[str, int], counted: Any) -> None:
    """Add a record batch of words and numbers to `counts`."""
    found, numbers = (column.to_pylist() for column in counted.columns)
    for word, number in zip(found, numbers, strict=True):
        counts[word] = counts.get(word, 0) + number


assert record_batch(3, 5).column(0).to_pylist() == words(3, 5)
