"""Every type that travels, whole and as a slice: routed, packed and unpacked, with the checksum of its values."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from stormline import TransactionAttempt
from stormline.runtime.tuples.column_checksum import ColumnChecksum
from stormline.runtime.tuples.column_partitioning import by_index, by_tasks, keyed, slices
from stormline.runtime.tuples.columns import Columns
from stormline.runtime.tuples.packing import pack_batch, reduced_array, unpack_batch
from stormline.topology.arrow import type_problem
from stormline.topology.serialization import PLAIN

ATTEMPT = TransactionAttempt(1, 1)
INTS = [1, None, 2, 1, 3, 3, None, 4]
LETTERS = [*"abcdabc", None]
LISTS: list[Any] = [[1], None, [], [None]] * 2
HALVES = [Decimal("1.50"), None] * 4

ARRAYS = [
    pa.nulls(8),
    pa.array([True, None, False, True] * 2),
    *(
        pa.array(INTS, kind)
        for kind in (pa.int8(), pa.uint16(), pa.int32(), pa.int64(), pa.time32("s"), pa.time64("us"))
    ),
    *(pa.array(INTS, kind) for kind in (pa.timestamp("s"), pa.timestamp("ms", "Europe/Berlin"), pa.duration("ms"))),
    pa.array([2**64 - 1, *INTS[1:]], pa.uint64()),
    *(pa.array([1.5, None, -0.0, 2.0] * 2, kind) for kind in (pa.float16(), pa.float32(), pa.float64())),
    pa.array([n and n * 1000 for n in INTS], pa.timestamp("ns")),
    pa.array(INTS, pa.int32()).cast(pa.date32()),
    pa.array([n and n * 86_400_000 for n in INTS], pa.date64()),
    *(pa.array(LETTERS, kind) for kind in (pa.string(), pa.large_string())),
    *(pa.array([b"ab", None] * 4, kind) for kind in (pa.binary(), pa.large_binary(), pa.binary(2))),
    *(pa.array(HALVES, kind) for kind in (pa.decimal128(5, 2), pa.decimal256(60, 5))),
    *(pa.array(LISTS, kind) for kind in (pa.list_(pa.int64()), pa.large_list(pa.int8()))),
    pa.array([[1, 2], None] * 4, pa.list_(pa.int8(), 2)),
    pa.array([{"a": 1, "b": "x"}, None] * 4),
    pa.array([{}] * 8, pa.struct([])),
    pa.array([[{"a": [1]}], None] * 4),
    pa.array([[("a", 1)], None] * 4, pa.map_(pa.string(), pa.int8())),
    pa.array(LETTERS).dictionary_encode(),
    pa.array(INTS).dictionary_encode(),
    pa.ListArray.from_arrays(pa.array(range(9)), pa.array(LETTERS).dictionary_encode()),
    pa.StructArray.from_arrays([pa.array(LETTERS).dictionary_encode()], names=["a"]),
]


def parts(array: Any, cut: int) -> list[Any]:
    checksum = ColumnChecksum(PLAIN)
    for start in range(0, len(array), cut):
        checksum.add(array.slice(start, cut))
    return checksum.parts()


@pytest.mark.parametrize("offset", [0, 3])
@pytest.mark.parametrize("array", ARRAYS, ids=lambda array: str(array.type))
def test_a_type_that_travels_does_so_in_every_way(array: Any, offset: int) -> None:
    assert type_problem(array.type) is None
    batch = pa.RecordBatch.from_arrays([array, pa.array(range(8))], names=["k", "i"]).slice(offset)
    columns = Columns(ATTEMPT, batch)
    rows = columns.rows()
    assert Columns(ATTEMPT, unpack_batch(pack_batch(batch))).rows() == rows
    for fields in ([1], [2, 1, 0]):
        keys, codes = keyed(columns, fields)
        found = [keys[code] for code in codes.to_pylist()]
        assert found == [row[1] if fields == [1] else (row[2], row[1], row[0]) for row in rows]
    for task, share in by_index(columns, [5, 6, 7], pa.array([2 * i % 3 for i in range(len(rows))], pa.int32())):
        assert share.rows() == [row for i, row in enumerate(rows) if 2 * i % 3 == task - 5]
    shares = dict(by_tasks(columns, [[1, 2] if i % 2 else [] for i in range(len(rows))]))
    assert shares[1].rows() == shares[2].rows() == rows[1::2]
    assert [row for _, share in slices(columns, [1, 2, 3], 1) for row in share.rows()] == rows
    reduced = reduced_array(batch.column(0))
    if reduced is not NotImplemented:
        assert reduced[0](*reduced[1]) == batch.column(0)
    whole = parts(batch.column(0), 8)
    assert parts(batch.column(0), 1) == parts(batch.column(0), 2) == parts(pa.array(batch.column(0)), 3) == whole


@pytest.mark.parametrize(
    "same",
    [
        [pa.array(INTS, kind) for kind in (pa.int8(), pa.uint8(), pa.uint64(), pa.int64())],
        [pa.array([1.5, None], kind) for kind in (pa.float16(), pa.float32(), pa.float64())],
        [pa.array(LETTERS), pa.array(LETTERS, pa.large_string()), pa.array(LETTERS).dictionary_encode()],
        [pa.array([b"ab", None], kind) for kind in (pa.binary(), pa.large_binary(), pa.binary(2))],
        [pa.array(HALVES, kind) for kind in (pa.decimal128(5, 2), pa.decimal128(9, 4), pa.decimal256(60, 5))],
        [pa.array([86_400_000], pa.date64()), pa.array([1], pa.int32()).cast(pa.date32())],
        [pa.array([1], pa.timestamp("s")), pa.array([1_000_000], pa.timestamp("us"))],
        [pa.array([1], pa.timestamp("us", zone)) for zone in ("UTC", "Asia/Tokyo", "+02:00")],
        [pa.array([1], pa.time32("s")), pa.array([1_000_000], pa.time64("us"))],
        [pa.array([1], pa.duration("s")), pa.array([1_000_000], pa.duration("us"))],
    ],
    ids=lambda same: str(same[0].type),
)
def test_the_checksum_of_equal_values_is_equal_whatever_type_was_inferred(same: list[Any]) -> None:
    assert len({str(parts(array, 8)) for array in same}) == 1


def test_the_checksum_of_different_values_differs_though_their_bytes_do_not() -> None:
    """A batch whose commit may have begun must not come out as another one (law 2, sameness)."""
    different = [
        pa.array([Decimal("1.0"), None]),
        pa.array([Decimal("0.10"), None]),
        pa.array([1, None], pa.int64()),
        pa.array([True, None]),
        pa.array([1, None], pa.timestamp("us")),
        pa.array([1, None], pa.timestamp("us", "UTC")),
        pa.array([1, None], pa.timestamp("ms")),
        pa.array([1, None], pa.duration("us")),
        pa.array([1, None], pa.time64("us")),
        pa.array([5e-324, None]),
        pa.array(["\1", None]),
        pa.array([b"\1", None]),
        pa.array([None, 1]),
        pa.array([1]),
        pa.array([-1, None]),
        pa.array([2**64 - 1, None], pa.uint64()),
        pa.array([["a"], None]),
    ]
    assert len({str(parts(array, 8)) for array in different}) == len(different)
    assert parts(pa.array(["ab", "c"]), 8) != parts(pa.array(["a", "bc"]), 8)


def test_rows_without_columns_are_kept_on_every_way() -> None:
    batch = pa.record_batch({"a": [1, 2, 3]}).select([])
    columns = Columns(ATTEMPT, batch)
    assert unpack_batch(pack_batch(batch)).num_rows == 3
    assert [len(share) for _, share in slices(columns, [1, 2], 0)] == [2, 1]
    assert [(task, len(share)) for task, share in by_tasks(columns, [[1], [1, 2], []])] == [(1, 2), (2, 1)]
    assert pa.Table.from_batches([batch, batch]).to_batches()[0].num_rows == 6
