"""What a StarRocks server and its formats of rows may be declared with, and what rows they write."""

from __future__ import annotations

import gzip
import importlib.util
import json
import sys
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest

from stormline.state.starrocks import CsvRows, JsonRows, StarRocks
from stormline.state.starrocks.errors import InvalidStarRocks, RowUnwritable
from stormline.topology.errors import MissingExtra, SecretMissing

URL = "starrocks://loader@fe1:8030,fe2/shop"


def test_a_url_names_user_front_ends_and_database() -> None:
    """8030 is StarRocks' own port."""
    server = StarRocks(URL)
    assert (server.user, server.database) == ("loader", "shop")
    assert server.front_ends == [("fe1", 8030), ("fe2", 8030)]
    assert StarRocks("starrocks://root@[::1]:80/shop/").front_ends == [("::1", 80)]
    assert str(server) == URL
    assert "env" not in repr(StarRocks(URL, "env:SHOP_PASSWORD"))


@pytest.mark.parametrize(
    "url",
    ["", "http://root@h:1/shop", "starrocks://h:1/shop", "starrocks://u:secret@h:1/shop", "starrocks://u@h:1/", 5,
     "starrocks://u@h:x/shop", "starrocks://u@h:1/a/b", "starrocks://u@,h/shop"],
)  # fmt: skip
def test_a_url_that_is_none_is_refused_and_not_shown(url: Any) -> None:
    """It may hold a password."""
    with pytest.raises(
        InvalidStarRocks, match=r"a URL that is not shown here, expected starrocks://user@host:8030/"
    ) as told:
        StarRocks(url)
    assert "secret" not in str(told.value)


def test_a_password_is_given_by_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    """As of every store; it is read where a client is made."""
    with pytest.raises(InvalidStarRocks, match=r"a password that is not shown here, expected a reference") as told:
        StarRocks(URL, "s3cret")
    assert "s3cret" not in str(told.value)
    with pytest.raises(SecretMissing, match=r"the password of starrocks://.* refers to env:NO_SUCH"):
        StarRocks(URL, "env:NO_SUCH").open_client()
    monkeypatch.setenv("SHOP_PASSWORD", "x")
    StarRocks(URL, "env:SHOP_PASSWORD").open_client()


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("timeout_secs", 0, "timeout_secs is 0, expected a number of seconds, more than 0"),
        ("timeout_secs", True, "timeout_secs is True"),
        ("load_timeout_secs", 0, "load_timeout_secs is 0, expected a whole number of seconds, at least 1"),
        ("idle_timeout_secs", -1, "idle_timeout_secs is -1, expected a whole number of seconds, at least 0"),
        ("prepared_timeout_secs", 1.5, r"prepared_timeout_secs is 1\.5, expected a whole number of seconds"),
    ],
)
def test_a_time_out_that_is_none_is_refused(name: str, value: Any, message: str) -> None:
    """Whole seconds, where they go into a header."""
    with pytest.raises(InvalidStarRocks, match=message):
        StarRocks(URL, **{name: value})


COLUMNS = ("a", "b", "c", "d")


def test_a_row_of_csv_has_its_text_in_quotation_marks() -> None:
    """Numbers without, NULL as \\N, what is nested as JSON."""
    rows = CsvRows()
    assert rows.encode(COLUMNS, (1, None, True, 'a "pen"')) == b'1\t\\N\t1\t"a ""pen"""'
    assert rows.encode(COLUMNS, (1.5, Decimal("0.10"), date(2026, 1, 2), datetime(2026, 1, 2, 3, 4, 5, 600))) == (
        b'"1.5"\t"0.10"\t"2026-01-02"\t"2026-01-02 03:04:05.000600"'
    )
    assert rows.encode(("a",), ([{"k": Decimal("1.0")}, None],)) == b'"[{""k"": ""1.0""}, null]"'
    assert rows.body([b"1", b"2"]) == b"1\n2\n"


def test_a_row_of_json_has_its_columns_by_name() -> None:
    """A load is an array of rows."""
    rows = JsonRows(compression="gzip")
    row = rows.encode(COLUMNS, (1, None, "Füller", [1.5, Decimal("0.10")]))
    assert json.loads(row) == {"a": 1, "b": None, "c": "Füller", "d": [1.5, "0.10"]}
    assert json.loads(gzip.decompress(rows.body([row, row]))) == [json.loads(row)] * 2
    assert rows.headers(COLUMNS) == {"format": "json", "strip_outer_array": "true", "compression": "gzip"}


def test_what_does_not_print_is_told_in_hexadecimal_digits() -> None:
    """A header cannot hold it."""
    headers = CsvRows(column_separator="\x01", row_delimiter="|·|", parameters={"where": "a > 1"}).headers(COLUMNS)
    assert headers == {
        "where": "a > 1",
        "enclose": '"',
        "format": "csv",
        "columns": "a,b,c,d",
        "column_separator": "\\x01",
        "row_delimiter": "\\x7CC2B77C",
    }


@pytest.mark.parametrize("rows", [CsvRows(), JsonRows()], ids=["csv", "json"])
@pytest.mark.parametrize(
    ("value", "message"),
    [
        (float("nan"), "(has nan, expected a finite number|what JSON cannot hold)"),
        ([float("inf")], "what JSON cannot hold"),
        (datetime(2026, 1, 1, tzinfo=UTC), "a time with a time zone, which DATETIME has not"),
        (b"x", "has b'x', a bytes, expected text, a number, a date, None, or lists and dicts of them"),
        ({1, 2}, "a set, expected text"),
        ([b"x"], "a bytes, expected text"),
        ("\ud800", "has text that is no Unicode"),
    ],
)  # fmt: skip
def test_a_value_that_cannot_be_written_is_refused_by_its_column(rows: Any, value: Any, message: str) -> None:
    """Never changed in silence."""
    with pytest.raises(RowUnwritable, match=message):
        rows.encode(("price",), (value,))


def test_text_that_csv_would_take_for_something_else_is_refused() -> None:
    """With the format that can hold it."""
    with pytest.raises(RowUnwritable, match=r"column 'a' has the text '\\N', which in CSV is NULL; use JsonRows\(\)"):
        CsvRows().encode(("a",), ("\\N",))
    with pytest.raises(RowUnwritable, match=r"column 'a' has 'x,y', which holds a separator; use quoted=True"):
        CsvRows(column_separator=",", quoted=False).encode(("a",), ("x,y",))
    assert CsvRows(quoted=False).encode(("a", "b"), ('"', 1)) == b'"\t1'


@pytest.mark.parametrize(
    ("kind", "how", "message"),
    [
        (CsvRows, {"column_separator": ""}, r"column_separator is '', expected a text of 1 to 50 bytes"),
        (CsvRows, {"row_delimiter": "x" * 51}, r"row_delimiter is 'x+', expected a text of 1 to 50 bytes"),
        (CsvRows, {"column_separator": '"'}, r"without quotation marks"),
        (CsvRows, {"column_separator": "\n"}, r"column_separator and row_delimiter are both '\\n'"),
        (CsvRows, {"compression": "zip"}, r"compression is 'zip', expected one of '', 'gzip', 'lz4_frame'"),
        (CsvRows, {"parameters": {"Columns": "a"}}, r"parameters hold 'Columns', which the sink sets itself"),
        (JsonRows, {"parameters": {"label": "a"}}, r"parameters hold 'label', which the sink sets itself"),
        (JsonRows, {"parameters": {"max_filter_ratio": 0.1}}, r"'max_filter_ratio' = 0\.1, expected text"),
    ],
)
def test_a_format_that_cannot_be_is_refused(kind: Any, how: dict[str, Any], message: str) -> None:
    """When it is declared."""
    with pytest.raises(InvalidStarRocks, match=message):
        kind(**how)


def test_lz4_needs_pyarrow_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python itself has no LZ4."""
    assert importlib.util.find_spec("pyarrow") is not None
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtra, match=r"compression='lz4_frame' needs the package pyarrow"):
        CsvRows(compression="lz4_frame").body([b"1"])
