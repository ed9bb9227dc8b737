"""Rows are cut by bytes: where they wait, where they are packed, and where they travel."""

from __future__ import annotations

from typing import Any

import pytest

from stormline.runtime.tasks.collector import FIRST_ROWS, ROWS_MAX, Output
from stormline.runtime.tasks.task_routes import PackedRoute
from stormline.runtime.tuples.blocks import SEGMENT_ROWS_MAX
from stormline.runtime.tuples.packing import Packed
from stormline.runtime.tuples.row_bytes import SEGMENT_BYTES, SEGMENT_BYTES_MAX, in_parts, rows_within
from stormline.topology.fields import Fields
from stormline.topology.serialization import PLAIN
from stormline.topology.streams import StreamDeclaration
from stormline.topology.tuples import TupleSource

MB = 1 << 20
SOURCE = TupleSource("spout", "default", 1, Fields("tx", "value"))


def rows(count: int, size: int) -> list[list[Any]]:
    return [[None, b"x" * size] for _ in range(count)]


class Sent:
    """What a route sends, packed for real."""

    def __init__(self) -> None:
        self.packed: list[Packed] = []
        self.route = PackedRoute(lambda tuples: [(7, tuples)], [7], self._pack, self._send)

    def _pack(self, tuples: Any) -> Packed:
        return Packed.of(tuples, SOURCE, PLAIN)

    def _send(self, target: int, packed: Packed) -> None:
        self.packed.append(packed)

    @property
    def rows(self) -> int:
        return sum(packed.rows for packed in self.packed)


@pytest.mark.parametrize("size", [1, 5000, MB, 3 * MB, 9 * MB])
def test_rows_like_one_may_be_together_as_far_as_a_segments_bytes_go(size: int) -> None:
    (row,) = rows(1, size)
    most = rows_within(row, SEGMENT_ROWS_MAX)
    assert 1 <= most <= SEGMENT_ROWS_MAX
    assert most == 1 or most * size <= SEGMENT_BYTES
    assert most in (1, SEGMENT_ROWS_MAX) or (most + 1) * (size + 200) > SEGMENT_BYTES


@pytest.mark.parametrize(("count", "size"), [(1, 9 * MB), (5000, 10), (100, MB), (3, 5 * MB)])
def test_parts_hold_each_row_once_in_order(count: int, size: int) -> None:
    given = rows(count, size)
    parts = list(in_parts(given))
    assert [row for part in parts for row in part] == given
    assert len(parts) == 1 or max(map(len, parts)) * size <= SEGMENT_BYTES or max(map(len, parts)) == 1


@pytest.mark.parametrize("together", [1, 40])
def test_large_rows_leave_a_route_in_segments_of_a_few_megabytes(together: int) -> None:
    sent = Sent()
    for _ in range(40 // together):
        sent.route.take(rows(together, MB))
    assert sent.rows >= 36, "they wait for others"
    sent.route.flush()
    assert sent.rows == 40
    assert max(len(packed.data) for packed in sent.packed) <= SEGMENT_BYTES + MB
    assert len(sent.packed) <= 20


def test_a_row_that_is_larger_than_a_segment_has_one_of_its_own() -> None:
    sent = Sent()
    sent.route.take([*rows(3, 10), *rows(2, 17 * MB), *rows(3, 10)])
    sent.route.flush()
    assert sent.rows == 8
    assert [packed.rows for packed in sent.packed if len(packed.data) > SEGMENT_BYTES_MAX] == [1, 1]


def test_bytes_that_no_look_at_a_row_tells_are_cut_when_they_are_packed() -> None:
    sent = Sent()
    sent.route.take([[None, ["y" * MB]] for _ in range(40)])
    sent.route.flush()
    assert sent.rows == 40
    assert max(len(packed.data) for packed in sent.packed) <= SEGMENT_BYTES_MAX


def test_small_rows_travel_as_many_together_as_before() -> None:
    sent = Sent()
    for _ in range(2 * SEGMENT_ROWS_MAX // 256):
        sent.route.take(rows(256, 10))
    assert [packed.rows for packed in sent.packed] == [SEGMENT_ROWS_MAX, SEGMENT_ROWS_MAX]


@pytest.mark.parametrize(("size", "together"), [(10, ROWS_MAX), (MB, FIRST_ROWS)])
def test_rows_wait_for_others_as_long_as_they_are_small(size: int, together: int) -> None:
    taken: list[int] = []

    class Took:
        def take(self, tuples: Any) -> None:
            taken.append(len(tuples))

        def take_direct(self, task: int, row: Any) -> None:
            raise AssertionError

        def flush(self) -> None:
            raise AssertionError

    output = Output(StreamDeclaration(Fields("tx", "value"), False), [Took()])
    for row in rows(2 * ROWS_MAX if size < MB else 2 * FIRST_ROWS, size):
        output.rows.append(row)
        if len(output.rows) >= output.waiting_max:
            output.full()
    assert taken == [together, together]
