"""Which of many rows a database refuses is found by halving."""

from __future__ import annotations

from typing import Any

import pytest

from stormline.state.columns import Column, ColumnType
from stormline.state.errors import RowRefused, StoreFailed
from stormline.state.refused_rows import first_refused, write_rows
from stormline.state.table import Kind, Table


@pytest.mark.parametrize("count", [1, 2, 3, 7, 100])
def test_the_first_row_that_is_refused_is_found_wherever_it_is(count: int) -> None:
    for refused in range(count):
        asked: list[tuple[int, int]] = []

        def takes(first: int, end: int, refused: int = refused, asked: list[tuple[int, int]] = asked) -> bool:
            asked.append((first, end))
            return not first <= refused < end

        assert first_refused(count, takes) == refused
        assert len(asked) <= count.bit_length()


def test_of_several_the_first_is_named() -> None:
    assert first_refused(50, lambda first, end: not {20, 21, 40} & set(range(first, end))) == 20


def test_where_the_table_itself_was_undone_nobody_knows_the_key() -> None:
    table = Table("words", Kind.TRANSACTIONAL, (Column("word", ColumnType.TEXT),), (Column("n", ColumnType.INTEGER),))

    class MadeTheTable:
        """A connection whose transaction has made the table."""

        there = True

        def write(self, table: Table, rows: Any) -> None:
            raise RowRefused("too long") if self.there else StoreFailed("there is no such table")

        def rollback(self) -> None:
            self.there = False

        def begin(self) -> None:
            pass

    connection: Any = MadeTheTable()
    with pytest.raises(StoreFailed, match=r"^too long; it is the row of key \(nobody knows which\): correct what "):
        write_rows(connection, table, [["a", "b"], [1, 1], [1, 1]])
