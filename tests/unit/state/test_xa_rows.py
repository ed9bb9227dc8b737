"""How rows go into a database by two-phase commit: what of them is taken, and what PostgreSQL gets in binary."""

from __future__ import annotations

import pytest

from stormline.state.xa.postgresql_binary import binary_types, fit
from stormline.state.xa.sink import taken

DECLARED = {"id": "bigint", "small": "smallint", "n": "integer", "word": "character varying(20)", "at": "interval"}


def test_columns_of_known_types_may_be_sent_in_binary_under_the_names_that_psycopg_knows() -> None:
    assert binary_types(["word", "id", "n"], DECLARED) == ["varchar", "int8", "int4"]


@pytest.mark.parametrize("column", ["at", "nowhere"])
def test_a_column_of_another_type_or_none_goes_as_text_with_all_others(column: str) -> None:
    assert binary_types(["id", column], DECLARED) is None


@pytest.mark.parametrize(
    ("kind", "value", "sent_as_it_is"),
    [
        ("int4", 2**31 - 1, True),
        ("int4", 2**31, False),
        ("int4", -(2**31), True),
        ("int4", -(2**31) - 1, False),
        ("int2", 2**15, False),
        ("int8", 2**70, True),  # of which psycopg raises
        ("int4", None, True),
        ("int4", "5", True),
        ("int8", True, False),
        ("float8", False, False),
        ("bool", True, True),
    ],
)
def test_what_psycopg_would_send_as_another_number_is_noticed(kind: str, value: object, sent_as_it_is: bool) -> None:
    assert fit(["text", kind], [("a", 1), ("b", value)]) is sent_as_it_is


@pytest.mark.parametrize(
    ("places", "rows"), [([2, 1], [("b", "a"), ("d", "c")]), ([2], [("b",), ("d",)]), ([], [(), ()])]
)
def test_what_is_taken_of_rows_is_a_row_whatever_its_length(places: list[int], rows: list[tuple[str, ...]]) -> None:
    assert taken([[0, "a", "b"], [0, "c", "d"]], places) == rows
