"""Columns: tuples of one attempt as a pyarrow record batch, and where they meet rows."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import repeat
from typing import Any

from stormline.bolts.arrow import ORIGIN_KEYS
from stormline.topology.arrow import pyarrow_for
from stormline.topology.attempt import TransactionAttempt
from stormline.topology.columns import array_of, values_of
from stormline.topology.errors import ColumnCannotTravel
from stormline.topology.tuples import TupleSource

Row = list[Any]
ROWS_AT_ONCE = 8192
"""So many tuples a row bolt gets of a record batch at a time: Python objects take much more room than columns."""


class Columns:
    """A record batch whose columns are the stream's fields after the first, in their order; never changed."""

    __slots__ = ("attempt", "batch")

    def __init__(self, attempt: TransactionAttempt, batch: Any) -> None:
        self.attempt = attempt
        self.batch = batch

    def __len__(self) -> int:
        rows: int = self.batch.num_rows
        return rows

    def slice(self, start: int, rows: int) -> Columns:
        """Return some of the rows, without copying them."""
        return Columns(self.attempt, self.batch.slice(start, rows))

    def take(self, indices: Any) -> Columns:
        """Return the rows at these places, in this order."""
        return Columns(self.attempt, self.batch.take(indices))

    def values(self, index: int) -> list[Any]:
        """Return the values of the field at `index`, which is not 0."""
        return self.values_within(index, self.batch.column(index - 1))

    def values_within(self, index: int, array: Any) -> list[Any]:
        """Return the values of `array`, made of the field at `index`; raise a `ColumnCannotTravel` that names it."""
        try:
            return values_of(array)
        except ColumnCannotTravel as error:
            name = self.batch.schema.names[index - 1]
            raise ColumnCannotTravel(f"column {name!r} of a record batch: {error}") from None

    def rows(self) -> list[Row]:
        """Return rows, each beginning with the attempt."""
        if not self.batch.num_columns:
            return [[self.attempt] for _ in range(len(self))]
        columns = [self.values(i) for i in range(1, self.batch.num_columns + 1)]
        return list(map(list, zip(repeat(self.attempt), *columns)))

    def rows_in_parts(self) -> Iterator[list[Row]]:
        """Give all rows, some at a time."""
        for start in range(0, len(self), ROWS_AT_ONCE):
            yield self.slice(start, ROWS_AT_ONCE).rows()


Tuples = list[Row] | Columns
"""How tuples move within the engine: as they were emitted."""


def columns_of(tuples: Tuples, source: TupleSource) -> Columns:
    """Return tuples as columns.

    Raises:
        ColumnCannotTravel: rows hold what columns cannot; it names component, stream and field.
        MissingExtra: pyarrow is not installed.
    """
    if isinstance(tuples, Columns):
        return tuples
    pa = pyarrow_for(f"a record batch of the tuples of {source.component!r}, stream {source.stream!r},")
    arrays = []
    for i, name in enumerate(source.fields[1:], 1):
        try:
            arrays.append(array_of([row[i] for row in tuples]))
        except ColumnCannotTravel as error:
            raise ColumnCannotTravel(
                f"{source.component!r} emitted to stream {source.stream!r}, to which a bolt listens that takes record "
                f"batches; field {name!r}: {error}"
            ) from None
    if arrays:
        batch = pa.RecordBatch.from_arrays(arrays, names=list(source.fields[1:]))
    else:
        batch = pa.RecordBatch.from_struct_array(pa.array([{}] * len(tuples), pa.struct([])))
    return Columns(tuples[0][0], batch)


def rows_of(tuples: Tuples) -> Iterator[list[Row]]:
    """Give tuples as rows, some at a time."""
    if isinstance(tuples, Columns):
        yield from tuples.rows_in_parts()
    else:
        yield tuples


def delivered(tuples: Tuples, source: TupleSource) -> Any:
    """Return the record batch that a bolt is given: its schema's metadata says who emitted it."""
    batch = columns_of(tuples, source).batch
    origin = dict(zip(ORIGIN_KEYS, (source.component, source.stream, str(source.task)), strict=True))
    return batch.replace_schema_metadata({**(batch.schema.metadata or {}), **origin})
