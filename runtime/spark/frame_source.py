"""FrameSource: the rows of a DataFrame in their order, from any place on."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as f

from stormline.runtime.spark.frame_order import REMEDY, FrameOrder, check_columns, named
from stormline.spouts.errors import CannotReplay, SourceChanged, SourceUnusable
from stormline.spouts.iterator.positioned import Position, Reading
from stormline.topology.errors import CorruptData, shown

_NOWHERE = "nowhere"
Frame = Callable[[SparkSession], DataFrame] | DataFrame


class FrameSource:
    """A position is [place, rows up to there]. The rest of the frame is sorted once a run, a replay takes the first
    rows.

    Args:
        frame: the DataFrame, or what makes it of a session.
        order_by: the columns that order it.
        fields: the columns of a row.
        refresh_secs: how often to look for more rows after the last one; None: never in this run.
        check_read: whether to count the rows up to where reading begins.
    """

    def __init__(
        self,
        frame: Frame,
        order_by: Sequence[str],
        fields: Sequence[str],
        refresh_secs: float | None,
        check_read: bool,
    ) -> None:
        self._made = frame
        self._order_by = order_by
        self._fields = fields
        self._refresh_secs = refresh_secs
        self._check_read = check_read
        self._ended_at: Position | None = _NOWHERE
        self._look_at = 0.0

    def after(self, start: Position | None, who: str, rows_max: int | None = None) -> Reading:
        """Give the rows after a position; none after the last, until it is time to look again.

        Raises:
            SourceUnusable: rows cannot be told apart, or have no place; a column is not there.
            SourceChanged: other rows stand before the position than were read.
        """
        goes_on = rows_max is None
        if goes_on and start == self._ended_at and (self._refresh_secs is None or time.monotonic() < self._look_at):
            return
        place, total = _taken_apart(start, len(self._order_by))
        frame = self._frame(who)
        order = FrameOrder(frame.schema, self._order_by, who)
        check_columns(frame.schema, self._fields, who)
        rest = frame
        if place is not None:
            is_after = order.is_after(place)
            if goes_on and self._check_read:
                self._check(frame.where(~f.coalesce(is_after, f.lit(False))).count(), total, place, who)
            rest = frame.where(is_after)
        rows = order.sorted(rest).select(*order.place(), *map(named, self._fields))
        given = rows.toLocalIterator() if rows_max is None else iter(rows.limit(rows_max).collect())
        width = len(self._order_by)
        for row in given:
            values = [_plain(value) for value in row]
            self._check_place(values[:width], place, who)
            place, total = values[:width], total + 1
            yield [place, total], values[width:]
        if goes_on:
            self._ended_at = None if place is None else [place, total]
            self._look_at = time.monotonic() + (self._refresh_secs or 0.0)

    def _frame(self, who: str) -> DataFrame:
        frame = self._made
        if not isinstance(frame, DataFrame):
            frame = frame(SparkSession.builder.getOrCreate())
            if not isinstance(frame, DataFrame):
                raise SourceUnusable(f"{who}: frame(spark) returned {shown(frame)}, expected a DataFrame")
        if frame.isStreaming:
            raise CannotReplay(
                f"{who}: the DataFrame is a stream, which has no order, and gives each row once; read what it reads: "
                "KafkaTransactionalSpout, DataSourceTransactionalSpout, or a table that it writes"
            )
        return frame

    def _check_place(self, found: list[Any], last: list[Any] | None, who: str) -> None:
        if None in found:
            raise SourceUnusable(
                f"{who}: a row has {dict(zip(self._order_by, found, strict=True))}, a null where it is ordered by, "
                "so it has no place; leave such rows out of the DataFrame, or give them a value: coalesce"
            )
        if found == last:
            raise SourceUnusable(
                f"{who}: two rows have {dict(zip(self._order_by, found, strict=True))}: which of them comes first is "
                f"not said, so a batch that ends between them could not be given again; {REMEDY}"
            )

    def _check(self, found: int, total: int, place: list[Any], who: str) -> None:
        if found == total:
            return
        where = f"up to {dict(zip(self._order_by, place, strict=True))}"
        what = (
            f"{found - total} came in before it, where nobody looks again"
            if found > total
            else f"{total - found} of them have been removed or changed"
        )
        raise SourceChanged(
            f"{who} has read {total} rows {where}, and there are {found} now: {what}; order by what only grows, such "
            "as an id or the time of arrival, or begin anew under another topology id; where old rows are removed on "
            "purpose, pass check_read=False to the spout"
        )


def _taken_apart(start: Any, width: int) -> tuple[list[Any] | None, int]:
    if start is None:
        return None, 0
    if type(start) is list and len(start) == 2 and type(start[0]) is list and type(start[1]) is int:
        place, total = start
        if len(place) == width:
            return place, total
        raise CorruptData(
            f"the stored position of a DataFrameTransactionalSpout has {len(place)} columns, and order_by {width}: "
            "order by what it was ordered by, or begin anew under another topology id"
        )
    raise CorruptData(
        f"the stored position of a DataFrameTransactionalSpout is {shown(start)}, expected [place, rows]; restore the "
        "state from a backup, or begin anew under another topology id"
    )


def _plain(value: Any) -> Any:
    """Return a value as tuples can hold it: a struct as a dict, binary as bytes."""
    if isinstance(value, Row):
        return {name: _plain(held) for name, held in value.asDict().items()}
    if type(value) is list:
        return [_plain(held) for held in value]
    if type(value) is dict:
        return {_plain(key): _plain(held) for key, held in value.items()}
    return bytes(value) if type(value) is bytearray else value
