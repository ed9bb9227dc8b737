"""Sharing the rows of a record batch out to tasks: the same tasks that the rows would go to as tuples."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from stormline.runtime.tuples.columns import Columns
from stormline.topology.arrow import pyarrow_for

Shares = list[tuple[int, Columns]]


def slices(columns: Columns, tasks: Sequence[int], turn: int) -> Shares:
    """Cut the batch in one piece for each task; the first to get one row more is the one at `turn`."""
    n = len(tasks)
    least, more = divmod(len(columns), n)
    shares: Shares = []
    start = 0
    for i in range(n):
        rows = least + (i < more)
        if rows:
            shares.append((tasks[(turn + i) % n], columns.slice(start, rows)))
            start += rows
    return shares


def by_index(columns: Columns, tasks: Sequence[int], indices: Any) -> Shares:
    """Give row i to the task at position `indices[i]`, a pyarrow array; rows keep their order."""
    pa = pyarrow_for("routing record batches")
    lowest, highest = pa.compute.min_max(indices).values()
    if lowest.as_py() == highest.as_py():
        return [(tasks[lowest.as_py()], columns)]
    ordered = columns.take(pa.compute.array_sort_indices(indices))  # stable
    shares: Shares = []
    start = 0
    counts = {count["values"]: count["counts"] for count in indices.value_counts().to_pylist()}
    for i in sorted(counts):
        shares.append((tasks[i], ordered.slice(start, counts[i])))
        start += counts[i]
    return shares


def by_tasks(columns: Columns, chosen: Iterable[Sequence[int]]) -> Shares:
    """Give each row to the tasks chosen for it, any number of them."""
    pa = pyarrow_for("routing record batches")
    rows_of: dict[int, list[int]] = {}
    for row, tasks in enumerate(chosen):
        for task in tasks:
            rows_of.setdefault(task, []).append(row)
    return [(task, columns.take(pa.array(rows, pa.int64()))) for task, rows in rows_of.items()]


def keyed(columns: Columns, fields: Sequence[int]) -> tuple[list[Any], Any]:
    """Return keys, made of the values of `fields` (positions in a tuple), and for each row the index of its key.

    The keys hold each distinct one once, as far as pyarrow can tell. A key is a value for one field, else a tuple.
    """
    pa = pyarrow_for("routing record batches")
    try:
        keys, codes = _encoded(pa, columns, fields[0])
        if len(fields) == 1:
            return keys, codes
        keys = [(key,) for key in keys]
        for field in fields[1:]:
            keys, codes = _combined(pa, keys, codes, *_encoded(pa, columns, field))
    except pa.ArrowNotImplementedError:  # lists and structs: row by row
        of_field = [columns.values(field) if field else [columns.attempt] * len(columns) for field in fields]
        return of_field[0] if len(fields) == 1 else list(zip(*of_field, strict=True)), pa.array(range(len(columns)))
    return keys, codes


def _encoded(pa: Any, columns: Columns, field: int) -> tuple[list[Any], Any]:
    if not field:
        return [columns.attempt], pa.array([0] * len(columns), pa.int32())
    column = columns.batch.column(field - 1)
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    encoded = column.dictionary_encode(null_encoding="encode")
    return columns.values_within(field, encoded.dictionary), encoded.indices


def _combined(pa: Any, keys: list[Any], codes: Any, more: list[Any], more_codes: Any) -> tuple[list[Any], Any]:
    """Add one field to keys, of which there are never more than rows: so the numbers do not outgrow 64 bits."""
    pc = pa.compute
    width = len(more)
    numbers = pc.add(pc.multiply(codes.cast(pa.int64()), width), more_codes.cast(pa.int64()))
    encoded = numbers.dictionary_encode()
    both = [divmod(number, width) for number in encoded.dictionary.to_pylist()]
    return [(*keys[i], more[j]) for i, j in both], encoded.indices


def indices_of(chosen: Iterable[int]) -> Any:
    """Return numbers as a pyarrow array."""
    return pyarrow_for("routing record batches").array(chosen, "int32")


def assign(of_keys: Sequence[int], codes: Any) -> Any:
    """Return for each row the number that its key has."""
    return indices_of(of_keys).take(codes)
