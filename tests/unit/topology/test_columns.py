"""Values in columns and back: nothing changes on the way, or it is refused with what, and what to do."""

from __future__ import annotations

import datetime as dt
import enum
import uuid
import zoneinfo
from decimal import Decimal
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stormline import Fields, TransactionAttempt
from stormline.runtime.tuples.columns import ROWS_AT_ONCE, Columns, columns_of, delivered, rows_of
from stormline.topology.arrow import type_problem
from stormline.topology.columns import array_of, values_of
from stormline.topology.errors import ColumnCannotTravel
from stormline.topology.tuples import TupleSource

ATTEMPT = TransactionAttempt(1, 1)
EAST = dt.timezone(dt.timedelta(hours=2))
BERLIN = zoneinfo.ZoneInfo("Europe/Berlin")

SCALARS: list[st.SearchStrategy[Any]] = [
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False),
    st.text(),
    st.binary(),
    st.dates(),
    st.times().map(lambda value: value.replace(fold=0)),
    st.timedeltas(dt.timedelta(days=-100_000_000), dt.timedelta(days=100_000_000)),
    st.datetimes().map(lambda value: value.replace(fold=0)),
    st.datetimes(dt.datetime(2, 1, 1), dt.datetime(9998, 1, 1), timezones=st.just(dt.UTC)),
    st.decimals(allow_nan=False, allow_infinity=False, places=3, min_value=-(10**9), max_value=10**9),
]


def columns_strategy() -> st.SearchStrategy[list[Any]]:
    """Return lists of values of one kind, or None."""
    of_one_kind = [st.lists(st.none() | scalar, max_size=20) for scalar in SCALARS]
    lists = [st.lists(st.none() | st.lists(st.none() | scalar, max_size=3), max_size=8) for scalar in SCALARS]
    dicts = [
        st.lists(st.none() | st.fixed_dictionaries({"a": scalar, "b": st.none()}), max_size=8) for scalar in SCALARS
    ]
    return st.one_of(*of_one_kind, *lists, *dicts)


def same(one: Any, other: Any) -> bool:
    """Return whether values are equal and of one type, all the way down."""
    if type(one) is not type(other):
        return False
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    return bool(one == other)


@settings(max_examples=150, deadline=None)
@given(columns_strategy())
def test_values_come_back_as_they_were(values: list[Any]) -> None:
    assert same(values_of(array_of(values)), values)


def test_what_comes_back_equal_though_not_the_same() -> None:
    assert values_of(array_of([1, 2.5, None])) == [1.0, 2.5, None]
    assert values_of(array_of([Decimal("1.0"), Decimal("1.25")])) == [Decimal("1.00"), Decimal("1.25")]
    zoned = [dt.datetime(2020, 1, 1, tzinfo=EAST), dt.datetime(2020, 1, 1, tzinfo=dt.UTC), None]
    assert values_of(array_of(zoned)) == zoned
    assert values_of(array_of([dt.datetime(2020, 7, 1, tzinfo=BERLIN)])) == [dt.datetime(2020, 7, 1, tzinfo=BERLIN)]
    (nan,) = values_of(array_of([float("nan")]))
    assert nan != nan, "not None"


class Level(enum.IntEnum):
    LOW = 1


class Odd(dt.tzinfo):
    """A zone that no database knows."""

    def utcoffset(self, when: Any) -> dt.timedelta:
        return dt.timedelta(hours=3)

    def dst(self, when: Any) -> None:
        return None

    def tzname(self, when: Any) -> str:
        return "Odd"


class Pair(NamedTuple):
    x: int


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([1, "a", None], r"values of several types, int and str, are in one column; emit a value that is of one"),
        (["a", b"a"], r"several types, bytes and str"),
        ([True, 1], r"several types, bool and int"),
        ([dt.date(2020, 1, 1), dt.datetime(2020, 1, 1)], r"several types, date and datetime"),
        ([Decimal(1), 1], r"several types, Decimal and int"),
        ([[1], ["a"]], r"several types, int and str"),
        ([None, 2**63], r"the int 9223372036854775808 has more than 64 bits; emit it as text"),
        ([2**53 + 1, 0.5], r"the values do not go into one column: Integer value 9007199254740993 is outside"),
        ([(1, 2)], r"a tuple \(\(1, 2\)\) has no place in a column; emit a value that is of one built-in type"),
        ([{1}], r"a set \(\{1\}\) has no place"),
        ([uuid.UUID(int=1)], r"a UUID \(UUID\('0000.*\) has no place"),
        ([bytearray(b"x")], r"a bytearray .* has no place"),
        ([Level.LOW], r"a Level \(.*\) has no place"),
        ([Pair(1)], r"a Pair \(Pair\(x=1\)\) has no place"),
        ([{"a": 1}, {"b": 1}], r"dicts whose keys are not the same text in every row are in one column"),
        ([{1: 1}], r"dicts whose keys are not the same text"),
        ([{"a": 1}, {"a": "x"}], r"several types, int and str"),
        ([dt.datetime(2020, 1, 1), dt.datetime(2020, 1, 1, tzinfo=EAST)], r"datetimes with and without a zone"),
        ([dt.time(1, tzinfo=EAST)], r"a time with a zone would lose it"),
        ([dt.datetime(2020, 1, 1, fold=1)], r"a datetime with fold=1 and without a zone would lose it"),
        ([dt.datetime(2020, 1, 1, tzinfo=dt.timezone(dt.timedelta(seconds=1)))], r"the zone of datetime.* has no"),
        ([dt.datetime(2020, 1, 1, tzinfo=dt.timezone(dt.timedelta(microseconds=1)))], r"the zone of datetime.* has no"),
        ([dt.datetime(2020, 1, 1, tzinfo=Odd())], r"the zone of datetime.* has no place in a column; emit a value"),
        ([dt.datetime.max.replace(tzinfo=dt.timezone(dt.timedelta(hours=-1)))], r"the zone of datetime.* has no place"),
        ([[2**63]], r"the list \[9223372036854775808\] has no place in a column: Python int too large"),
        (["\ud800"], r"the str '\\ud800' has no place in a column: .*surrogates not allowed"),
        ([Decimal("NaN")], r"the Decimal Decimal\('NaN'\) has no place in a column"),
        ([Decimal("1E+100")], r"the Decimal .* has no place in a column"),
        ([dt.timedelta.max], r"the timedelta .* has no place in a column"),
    ],
)  # fmt: skip
def test_what_would_change_in_a_column_is_refused(values: list[Any], message: str) -> None:
    with pytest.raises(ColumnCannotTravel, match=message):
        array_of(values)


def test_nanoseconds_come_out_in_microseconds_where_that_loses_nothing() -> None:
    moment = dt.datetime(2020, 1, 1, 0, 0, 0, 7)
    exact = [
        (pa.array([moment], pa.timestamp("ns")), moment),
        (pa.array([7_000], pa.duration("ns")), dt.timedelta(microseconds=7)),
        (pa.array([7_000], pa.time64("ns")), dt.time(0, 0, 0, 7)),
        (pa.array([moment]).cast(pa.timestamp("ns", "UTC")), moment.replace(tzinfo=zoneinfo.ZoneInfo("UTC"))),
    ]
    for array, value in exact:
        assert same(values_of(array), [value])
    with pytest.raises(ColumnCannotTravel, match=r"type timestamp\[ns\] holds what no value of Python can: Casting"):
        values_of(pa.array([1], pa.timestamp("ns")))
    columns = Columns(ATTEMPT, pa.record_batch({"t": pa.array([1], pa.timestamp("ns"))}))
    with pytest.raises(ColumnCannotTravel, match=r"column 't' of a record batch: type timestamp\[ns\] holds"):
        columns.rows()


NS = pa.timestamp("ns")


@pytest.mark.parametrize(
    "kind",
    [pa.list_(NS), pa.large_list(NS), pa.list_(NS, 1), pa.struct({"a": pa.int8(), "t": NS}), pa.map_(pa.string(), NS)],
    ids=str,
)
def test_nanoseconds_within_a_value_come_out_as_pythons_own_too(kind: Any) -> None:
    """pyarrow makes pandas.Timestamp of them where pandas is installed, and cuts times of day without a word."""
    moment = dt.datetime(1970, 1, 1, 0, 0, 0, 1)
    for nanoseconds, expected in ((1000, moment), (1001, None)):
        value: Any = [nanoseconds]
        if pa.types.is_struct(kind):
            value = {"a": 1, "t": nanoseconds}
        elif pa.types.is_map(kind):
            value = [("k", nanoseconds)]
        array = pa.array([value, None], kind)
        if expected is None:
            with pytest.raises(ColumnCannotTravel, match=r"timestamp\[ns\].* holds what no value of Python can"):
                values_of(array)
            continue
        found, none = values_of(array)
        assert none is None
        found = found["t"] if isinstance(found, dict) else found[0][1] if pa.types.is_map(kind) else found[0]
        assert same(found, expected)


def test_a_dictionary_of_nanoseconds_comes_out_as_pythons_own() -> None:
    encoded = pa.array([1000, None, 1000], NS).dictionary_encode()
    moment = dt.datetime(1970, 1, 1, 0, 0, 0, 1)
    assert all(map(same, values_of(encoded), [moment, None, moment]))


BAD_UTF8 = pa.Array.from_buffers(
    pa.string(), 1, [None, pa.array([0, 1], pa.int32()).buffers()[1], pa.py_buffer(b"\xff")]
)


@pytest.mark.parametrize(
    "array",
    [
        pa.array([2**62], pa.duration("s")),
        pa.array([2**55], pa.timestamp("s")),
        pa.array([2**30], pa.date32()),
        pa.array([0], pa.timestamp("us", "Mars/Olympus")),
        pa.StructArray.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"]),
        BAD_UTF8,
    ],
    ids=lambda array: str(array.type),
)
def test_what_no_value_of_python_holds_names_the_column(array: Any) -> None:
    columns = Columns(ATTEMPT, pa.RecordBatch.from_arrays([array], names=["c"]))
    with pytest.raises(
        ColumnCannotTravel, match=r"column 'c' of a record batch: type .* holds what no value of Python"
    ):
        columns.rows()


@pytest.mark.parametrize(
    "kind",
    [pa.null(), pa.bool_(), pa.int8(), pa.uint64(), pa.float16(), pa.string(), pa.large_binary(), pa.binary(3),
     pa.date64(), pa.time32("s"), pa.timestamp("ns", "UTC"), pa.duration("s"), pa.decimal256(50, 2),
     pa.list_(pa.int8()), pa.large_list(pa.string()), pa.list_(pa.int8(), 2), pa.struct({"a": pa.int8()}),
     pa.map_(pa.string(), pa.int8()), pa.dictionary(pa.int8(), pa.string())],
)  # fmt: skip
def test_types_with_values_that_tuples_hold_too_travel(kind: Any) -> None:
    assert type_problem(kind) is None
    assert values_of(pa.array([None], kind)) == [None]


@pytest.mark.parametrize(
    "kind",
    [pa.month_day_nano_interval(), pa.string_view(), pa.list_(pa.string_view()), pa.struct({"a": pa.string_view()}),
     pa.map_(pa.string(), pa.string_view()), pa.sparse_union([pa.field("a", pa.int8())]),
     pa.run_end_encoded(pa.int32(), pa.int8())],
)  # fmt: skip
def test_other_types_do_not(kind: Any) -> None:
    assert "does not travel" in str(type_problem(kind))


def test_a_column_that_outgrows_one_array_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pa, "array", lambda values, from_pandas: pa.chunked_array([["a"], ["b"]]))
    with pytest.raises(ColumnCannotTravel, match=r"the column holds more than 2 GiB; emit smaller batches"):
        array_of(["a", "b"])


# ---------------------------------------------------------------------------------------- rows and columns


SOURCE = TupleSource("words", "default", 7, Fields("tx", "n", "word"))


def test_rows_become_columns_by_the_fields_after_the_first_and_rows_again() -> None:
    rows: list[list[Any]] = [[ATTEMPT, 1, "a"], [ATTEMPT, None, "b"]]
    columns = columns_of([[*row] for row in rows], SOURCE)
    assert columns.batch.schema.names == ["n", "word"]
    assert len(columns) == 2
    assert columns.rows() == rows
    assert columns_of(columns, SOURCE) is columns
    assert list(rows_of(columns)) == [rows]
    assert list(rows_of(rows)) == [rows]


def test_tuples_of_nothing_but_the_attempt_are_counted_too() -> None:
    columns = columns_of([[ATTEMPT]] * 3, TupleSource("words", "default", 7, Fields("tx")))
    assert len(columns) == 3
    assert columns.rows() == [[ATTEMPT]] * 3
    assert delivered(columns, SOURCE).num_rows == 3


def test_a_large_batch_becomes_rows_part_by_part() -> None:
    columns = Columns(ATTEMPT, pa.record_batch({"n": pa.array(range(2 * ROWS_AT_ONCE + 1))}))
    parts = list(rows_of(columns))
    assert [len(part) for part in parts] == [ROWS_AT_ONCE, ROWS_AT_ONCE, 1]
    assert [row[1] for part in parts for row in part] == list(range(2 * ROWS_AT_ONCE + 1))


def test_a_value_that_has_no_place_names_component_stream_and_field() -> None:
    message = (
        r"'words' emitted to stream 'default', to which a bolt listens that takes record batches; field 'word': a set"
    )
    with pytest.raises(ColumnCannotTravel, match=message):
        columns_of([[ATTEMPT, 1, {1}]], SOURCE)
