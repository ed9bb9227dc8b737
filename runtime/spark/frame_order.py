"""FrameOrder: the order of a DataFrame's rows by some columns, and the rows after a position in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql.types import (
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from stormline.spouts.errors import SourceUnusable
from stormline.topology.errors import did_you_mean

_PLAIN = (BooleanType, ByteType, ShortType, IntegerType, LongType, DateType, DecimalType)
"""Types whose values are the same in Python and in Spark, compare alike, and can be put into a query."""

REMEDY = "order by whole numbers, text, dates, times or decimals, enough of them to tell all rows apart: ['time', 'id']"


class FrameOrder:
    """What a row's place is in Python: the values of the columns, as can be stored and put into a query again.

    Raises:
        SourceUnusable: a column is not there, or its values do not come back from Python as they were.
    """

    def __init__(self, schema: StructType, order_by: Sequence[str], who: str) -> None:
        check_columns(schema, order_by, who)
        self._order_by = order_by
        self._types = [_type_of(schema, name, who) for name in order_by]

    def sorted(self, frame: DataFrame) -> DataFrame:
        """Return the frame in order."""
        return frame.orderBy(*map(named, self._order_by))

    def place(self) -> list[Column]:
        """Return the columns whose values are a row's place."""
        return [_read(named(name), kind) for name, kind in zip(self._order_by, self._types, strict=True)]

    def is_after(self, place: Sequence[Any]) -> Column:
        """Return whether a row comes after a place; null where the first column is."""
        columns = [named(name) for name in self._order_by]
        values = [_literal(value, kind) for value, kind in zip(place, self._types, strict=True)]
        found = columns[-1] > values[-1]
        for column, value in reversed(list(zip(columns[:-1], values[:-1], strict=True))):
            found = (column > value) | ((column == value) & found)
        return (columns[0] >= values[0]) & found  # by the first part sources leave out what they can


def named(name: str) -> Column:
    """Return the column of a name, whatever characters are in it."""
    return f.col("`" + name.replace("`", "``") + "`")


def check_columns(schema: StructType, names: Sequence[str], who: str) -> None:
    """Raise `SourceUnusable` where a DataFrame lacks one of the columns."""
    for name in names:
        if name not in schema.names:
            raise SourceUnusable(
                f"{who}: the DataFrame has no column {name!r}{did_you_mean(name, schema.names)}; its columns are "
                f"{schema.names}"
            )


def _type_of(schema: StructType, name: str, who: str) -> DataType:
    kind = schema[name].dataType
    text = isinstance(kind, StringType) and kind.simpleString() == "string"  # another collation takes a for A
    if not (text or isinstance(kind, (*_PLAIN, TimestampType, TimestampNTZType))):
        raise SourceUnusable(
            f"{who}: order_by column {name!r} is of type {kind.simpleString()}, which has no place that could be "
            f"stored and found again; {REMEDY}"
        )
    return kind


def _read(column: Column, kind: DataType) -> Column:
    if isinstance(kind, TimestampType):  # in Python it would be in the zone of this process
        return f.unix_micros(column)
    return column.cast("string") if isinstance(kind, TimestampNTZType) else column


def _literal(value: Any, kind: DataType) -> Column:
    if isinstance(kind, TimestampType):
        return f.timestamp_micros(f.lit(value))
    return f.lit(value).cast(kind)
