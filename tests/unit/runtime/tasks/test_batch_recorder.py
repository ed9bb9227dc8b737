"""Recorder: a frozen batch is known again by its values, however they are cut, and no other batch is taken for it."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from stormline.runtime.tasks.batch_recorder import Recorder
from stormline.runtime.tuples.columns import Columns
from stormline.topology.errors import UnregisteredClass
from stormline.topology.serialization import PLAIN
from tests.unit.runtime.tasks.test_collector import ATTEMPT, Caught, collector


def recorded(parts: list[Any], limit: int | None = None) -> tuple[Recorder, list[Any]]:
    """Emit arrays as record batches, and all else as rows; return the recorder and the values that it passed on."""
    route = Caught()
    to = collector(route)
    recorder = Recorder(to, PLAIN, limit)
    for part in parts:
        if isinstance(part, (pa.Array, pa.ChunkedArray)):
            recorder.emit_batch(pa.table({"value": part}))
        else:
            recorder.emit([ATTEMPT, part])
    to.flush()
    calls = [call.rows() if isinstance(call, Columns) else call for call in route.calls]
    return recorder, [row[1] for call in calls for row in call]


VALUES = [1, None, 3, 4, 4]
CUTS: list[list[Any]] = [
    [pa.array(VALUES)],
    [pa.array(VALUES[:2]), pa.array(VALUES[2:])],
    [pa.array([None, *VALUES]).slice(1), pa.array([], pa.int64())],
    [pa.chunked_array([VALUES[:1], VALUES[1:4], VALUES[4:]], pa.int64())],
    [pa.array(VALUES, pa.int32())],
    [pa.array(VALUES).dictionary_encode()],
    VALUES,
]


@pytest.mark.parametrize("first", CUTS)
def test_a_frozen_batch_is_known_however_it_is_cut_and_of_more_rows_only_it_is_passed_on(first: list[Any]) -> None:
    stored, values = recorded(first)
    assert values == VALUES
    for again in CUTS:
        assert recorded(again, 5)[0].matches(stored.rows, stored.checksum)
        longer, passed = recorded([*again, pa.array([7, 8]), 9], 5)
        assert longer.matches(stored.rows, stored.checksum)
        assert passed == VALUES


@pytest.mark.parametrize("first", CUTS)
def test_another_batch_is_never_taken_for_it(first: list[Any]) -> None:
    stored, _ = recorded(first)
    for other in ([1, None, 3, 4], [1, 3, None, 4, 4], [1, None, 3, 4, 5], [1, 0, 3, 4, 4], [1.0, None, 3.0, 4.0, 4.0]):
        for again in ([pa.array(other)], other):
            assert not recorded(again, 5)[0].matches(stored.rows, stored.checksum)


def test_a_decimal_is_known_whatever_scale_its_batch_has_and_no_other_for_it() -> None:
    ten, tenth = Decimal("1.0"), Decimal("0.10")
    stored, _ = recorded([pa.array([ten]), pa.array([tenth])])
    for again in ([pa.array([ten, tenth])], [ten, tenth]):
        assert recorded(again, 2)[0].matches(stored.rows, stored.checksum)
    for other in ([pa.array([tenth, ten])], [pa.array([ten]), pa.array([ten])], [tenth, tenth]):
        assert not recorded(other, 2)[0].matches(stored.rows, stored.checksum)


def directly(tasks: list[int], values: list[Any], limit: int | None = None) -> Recorder:
    recorder = Recorder(collector(Caught()), PLAIN, limit)
    for task, value in zip(tasks, values, strict=True):
        recorder.emit_direct(task, [ATTEMPT, value], "to")
    return recorder


def test_direct_rows_are_known_whatever_the_ids_of_the_tasks_are_now() -> None:
    stored = directly([8, 9], [1, 2])
    assert directly([3, 3, 3], [1, 2, 3], 2).matches(stored.rows, stored.checksum)
    assert not directly([8, 9], [2, 1], 2).matches(stored.rows, stored.checksum)


def test_a_value_of_an_unregistered_class_is_named_with_component_stream_and_field_and_counts_nothing() -> None:
    recorder = Recorder(collector(Caught()), PLAIN, None)
    with pytest.raises(
        UnregisteredClass, match=r"'words' emitted to stream 'default', field 'value': class .*object is"
    ):
        recorder.emit([ATTEMPT, object()])
    with pytest.raises(UnregisteredClass, match=r"^class .*object is not registered"):
        recorder.emit([ATTEMPT, object()], "undeclared")
    assert recorder.rows == 0


def test_rows_that_fit_no_column_are_not_taken_for_a_batch() -> None:
    stored, _ = recorded([pa.array([1, 2])])
    assert not recorded([1, "a"], 2)[0].matches(stored.rows, stored.checksum)


def test_a_batch_is_the_same_whichever_argument_comes_first() -> None:
    ours, storms = (Recorder(collector(Caught()), PLAIN, 3) for _ in range(2))
    ours.emit([ATTEMPT, 1], "default")
    ours.emit_direct(9, [ATTEMPT, 2], "to")
    storms.emit("default", [ATTEMPT, 1])
    storms.emit_direct(9, "to", [ATTEMPT, 2])
    assert (storms.rows, storms.checksum) == (ours.rows, ours.checksum)
    assert ours.matches(2, storms.checksum)
