"""How record batches are grouped: by pyarrow, as far as it makes the same of them as Python does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from stormline.state.aggregators import Aggregator, Count, Max, Min, Sum

if TYPE_CHECKING:
    import pyarrow

_BY_ARROW: dict[type[Aggregator], str] = {Sum: "sum", Min: "min", Max: "max"}


def grouped(
    batch: pyarrow.RecordBatch, fields: Sequence[str], aggregators: Sequence[Aggregator]
) -> Iterator[tuple[tuple[Any, ...], list[Any]]]:
    """Give the partial results of each group of a batch; row by row where pyarrow would not do the same."""
    calls = [_arrow_call(batch, aggregator) for aggregator in aggregators]
    if None in calls or not fields:
        names = [*fields, *(one.field for one in aggregators if one.field is not None)]
        columns = {name: batch.column(name).to_pylist() for name in names}
        keys = zip(*(columns[name] for name in fields), strict=True) if fields else [()] * batch.num_rows
        for i, group in enumerate(keys):
            yield (
                group,
                [
                    1
                    if one.field is None
                    else None
                    if columns[one.field][i] is None
                    else one.first(columns[one.field][i])
                    for one in aggregators
                ],
            )
        return
    import pyarrow

    table = pyarrow.Table.from_batches([batch])  # its task is one of as many as there are cores
    made = table.group_by(fields, use_threads=False).aggregate([call for call in calls if call])
    found = [column.to_pylist() for column in made.columns]
    by_name = dict(zip(made.column_names, found, strict=True))
    named = [by_name["count_all" if call == ([], "count_all") else f"{call[0]}_{call[1]}"] for call in calls if call]
    for group, *partials in zip(zip(*(by_name[name] for name in fields), strict=True), *named, strict=True):
        yield group, partials


def value_counts(column: pyarrow.Array) -> Iterable[tuple[Any, int]] | None:
    """Return how often each value stands in a column; None where pyarrow might not tell values apart as a dict does."""
    import pyarrow
    import pyarrow.compute

    kinds = pyarrow.types
    if not any(is_of(column.type) for is_of in (kinds.is_string, kinds.is_integer, kinds.is_boolean, kinds.is_binary)):
        return None
    values, counts = pyarrow.compute.value_counts(column).flatten()
    return zip(values.to_pylist(), counts.to_pylist(), strict=True)


def _arrow_call(batch: pyarrow.RecordBatch, aggregator: Aggregator) -> tuple[Any, str] | None:
    """Return what pyarrow calls it; None where it has nothing that is the same for these values."""
    import pyarrow

    if type(aggregator) is Count:
        return ([], "count_all") if aggregator.field is None else (aggregator.field, "count")
    name = _BY_ARROW.get(type(aggregator))
    if name is None or aggregator.field is None:
        return None
    column = batch.column(aggregator.field)
    if name == "sum":
        return (aggregator.field, name) if _sum_fits(column) else None
    return (aggregator.field, name) if pyarrow.types.is_integer(column.type) else None


def _sum_fits(column: pyarrow.Array) -> bool:
    """Return whether a sum of integers cannot pass 64 bits: pyarrow's would begin anew from below."""
    import pyarrow
    import pyarrow.compute

    if not pyarrow.types.is_integer(column.type):
        return False
    ends = pyarrow.compute.min_max(column).as_py()
    greatest = max(abs(ends["min"] or 0), abs(ends["max"] or 0))
    return bool(greatest * len(column) < 1 << 63)
