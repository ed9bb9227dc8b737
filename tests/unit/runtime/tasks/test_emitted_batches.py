"""emit_batch: what it checks, what it counts, and in which order it routes."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from stormline import Fields
from stormline.runtime.tasks.debug_log import Logged
from stormline.runtime.tasks.emitted_batches import BatchCheck
from stormline.runtime.tuples.columns import Columns
from stormline.topology.errors import (
    ColumnCannotTravel,
    DirectStreamMismatch,
    NotARecordBatch,
    StaleEmit,
    UndeclaredStream,
    WrongArity,
    WrongColumns,
)
from tests.unit.runtime.tasks.test_collector import ATTEMPT, Caught, collector

BATCH = pa.record_batch({"value": [1, 2]})


def test_a_batch_comes_after_the_rows_that_wait_and_each_row_counts() -> None:
    route, other = Caught(), Caught()
    to = collector(route, other)
    to.emit([ATTEMPT, 0])
    to.emit_batch(BATCH)
    to.emit([ATTEMPT, 3])
    to.emit_batch(pa.table({"value": pa.chunked_array([[4], [5, 6]])}))
    to.emit_batch(BATCH.slice(2))
    rows: list[Any] = [call.rows() if isinstance(call, Columns) else call for call in route.calls]
    assert [row for call in rows for row in call] == [[ATTEMPT, n] for n in (0, 1, 2, 3, 4, 5, 6)]
    assert len(route.calls) == 5, "the empty one is not routed"
    assert to.emitted == 7
    assert other.calls[1] is route.calls[1], "columns are never changed, so all share them"


def test_what_a_batch_must_be() -> None:
    to = collector(Caught())
    who = r"bolt 'words', task 7, to stream 'default', emits a "
    for given, kind in (([[1]], "list"), ({"value": [1]}, "dict"), (pa.array([1]), "Int64Array")):
        with pytest.raises(
            NotARecordBatch, match=rf"{who}{kind} as batch; expected a pyarrow.RecordBatch .*\['value'\]"
        ):
            to.emit_batch(given)
    for wrong in ({}, {"other": [1]}, {"value": [1], "more": [1]}):
        with pytest.raises(
            WrongColumns, match=rf"{who}record batch with the columns .*; expected one for .* \['value'\]\Z"
        ):
            to.emit_batch(pa.table(wrong))
    with pytest.raises(WrongArity, match=r"\['tx', 'value'\].*; leave out 'tx', the attempt is implied"):
        to.emit_batch(pa.record_batch({"tx": [1], "value": [1]}))
    with pytest.raises(WrongColumns, match=r"\['value', 'value'\]"):
        to.emit_batch(pa.RecordBatch.from_arrays([pa.array([1]), pa.array([1])], names=["value", "value"]))
    interval = pa.array([(1, 2, 3)], pa.month_day_nano_interval())
    message = rf"{who}record batch, column 'value': type month_day_nano_interval does not travel; cast it"
    with pytest.raises(ColumnCannotTravel, match=message):
        to.emit_batch(pa.record_batch({"value": interval}))
    assert to.emitted == 0


def test_streams_are_checked_as_for_rows() -> None:
    to = collector(Caught())
    with pytest.raises(UndeclaredStream, match=r"emits to stream 'defualt'.*did you mean 'default'"):
        to.emit_batch(BATCH, "defualt")
    with pytest.raises(DirectStreamMismatch, match=r"emits plainly to stream 'to', which is direct"):
        to.emit_batch(BATCH, "to")
    to.close()
    with pytest.raises(StaleEmit, match=r"emits for attempt 1:1, which has ended"):
        to.emit_batch(BATCH)


def test_columns_are_found_by_name_and_put_in_the_order_of_the_fields() -> None:
    check = BatchCheck(Fields("tx", "a", "b"), "bolt 'x'")
    for _ in range(2):
        (batch,) = check(pa.record_batch({"b": ["x"], "a": [1]}))
        assert batch.to_pydict() == {"a": [1], "b": ["x"]}
        (batch,) = check(pa.record_batch({"a": [2], "b": ["y"]}))
        assert batch.to_pydict() == {"a": [2], "b": ["y"]}
    with pytest.raises(WrongColumns):
        check(pa.record_batch({"a": [2]}))


class Closing(Caught):
    """Closes the collector when it takes the first batch, as another thread does that abandons a commit."""

    to: Any = None

    def take(self, rows: Any) -> None:
        super().take(rows)
        self.to.close()


def test_of_a_table_nothing_more_is_emitted_once_the_attempt_has_ended() -> None:
    route = Closing()
    route.to = collector(route)
    with pytest.raises(StaleEmit, match=r"emits for attempt 1:1, which has ended"):
        route.to.emit_batch(pa.table({"value": pa.chunked_array([[1], [2]])}))
    assert len(route.calls) == 1


def test_debug_logs_a_batch_whose_values_no_tuple_can_hold(caplog: pytest.LogCaptureFixture) -> None:
    columns = Columns(ATTEMPT, pa.record_batch({"t": pa.array([1], pa.timestamp("ns"))}))
    with caplog.at_level("INFO", "stormline"):
        Logged("x", 3, "default").take(columns)
    assert "x, task 3 emits to default: a record batch of 1 rows; column 't' of a record batch: type" in caplog.text
