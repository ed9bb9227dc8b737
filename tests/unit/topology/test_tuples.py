"""Tuple: what a bolt receives."""

import pickle
from typing import Any

import pytest

from stormline import Fields, GlobalStreamId, StormlineError, TransactionAttempt, Tuple
from stormline.topology.errors import UnknownField, UnknownPosition, WrongValueType

ATTEMPT = TransactionAttempt(3, 1)
VALUES = [ATTEMPT, "cat", 7, 2.5, True, b"raw", None]
NAMES = ["tx", "word", "n", "x", "on", "data", "none"]


@pytest.fixture
def tup() -> Tuple:
    return Tuple.of(VALUES, NAMES, component="words", stream="loud", task=4)


def test_a_tuple_knows_its_values_fields_and_source(tup: Tuple) -> None:
    assert tup.values == list(tup) == VALUES
    assert tup.fields == Fields(*NAMES)
    assert len(tup) == tup.size() == 7
    assert (tup.source_component, tup.source_stream_id, tup.source_task) == ("words", "loud", 4)
    assert tup.source_global_stream_id == GlobalStreamId("words", "loud")
    assert repr(Tuple.of([1], ["a"])) == "Tuple(source=test:1, stream=default, [1])"


def test_a_tuple_answers_to_storms_getters(tup: Tuple) -> None:
    assert (tup.get_source_component(), tup.get_source_stream_id(), tup.get_source_task()) == ("words", "loud", 4)
    assert tup.get_source_global_stream_id() == GlobalStreamId("words", "loud")
    assert tup.get_values() is tup.values
    assert tup.get_fields() is tup.fields


def test_values_are_found_by_position_and_by_name(tup: Tuple) -> None:
    for i, name in enumerate(NAMES):
        assert tup[i] is tup[name] is tup.get_value(i) is tup.get_value_by_field(name) is VALUES[i]
        assert tup.field_index(name) == i
        assert tup.contains(name)
    assert tup[-1] is None
    assert not tup.contains("wrod")


def test_select_returns_values_in_the_order_asked_for(tup: Tuple) -> None:
    assert tup.select(["n", "word"]) == [7, "cat"]
    assert tup.select(Fields("tx")) == [ATTEMPT]


@pytest.mark.parametrize(
    ("getter", "position"),
    [
        ("string", 1),
        ("integer", 2),
        ("long", 2),
        ("short", 2),
        ("byte", 2),
        ("double", 3),
        ("float", 3),
        ("boolean", 4),
        ("binary", 5),
    ],
)
def test_a_typed_getter_returns_its_type_and_refuses_every_other(tup: Tuple, getter: str, position: int) -> None:
    get, get_by_field = getattr(tup, f"get_{getter}"), getattr(tup, f"get_{getter}_by_field")
    for i, name in enumerate(NAMES):
        if i == position or VALUES[i] is None:  # None stays None, as with Storm's casts
            assert get(i) is get_by_field(name) is VALUES[i]
            continue
        for call, key in ((get, i), (get_by_field, name)):
            with pytest.raises(WrongValueType) as caught:
                call(key)
            assert str(caught.value).startswith(
                f"field {name!r} of stream 'loud' of 'words': got {VALUES[i]!r} ({type(VALUES[i]).__name__}), expected "
            )
            assert f"typed getters do not convert, use get_value({i}) and convert" in str(caught.value)
            assert isinstance(caught.value, (StormlineError, TypeError))


@pytest.mark.parametrize(
    "ask",
    [
        lambda t: t["wrod"],
        lambda t: t.get_value_by_field("wrod"),
        lambda t: t.get_string_by_field("wrod"),
        lambda t: t.field_index("wrod"),
        lambda t: t.select(["tx", "wrod"]),
    ],
)
def test_an_unknown_field_names_the_ones_that_exist(tup: Tuple, ask: Any) -> None:
    with pytest.raises(UnknownField) as caught:
        ask(tup)
    assert str(caught.value) == f"this tuple has no field 'wrod'; its fields are {NAMES}; did you mean 'word'?"


@pytest.mark.parametrize("ask", [lambda t: t[2], lambda t: t.get_value(2), lambda t: t.get_string(2)])
def test_a_position_past_the_end_says_what_there_is(ask: Any) -> None:
    with pytest.raises(UnknownPosition) as caught:
        ask(Tuple.of([ATTEMPT, "cat"], ["tx", "word"], "words"))
    assert str(caught.value) == (
        "a tuple of stream 'default' of 'words' has no value at position 2; it has 2: ['tx', 'word']"
    )
    assert isinstance(caught.value, IndexError)


def test_tuples_are_equal_on_values_and_source_and_have_no_hash(tup: Tuple) -> None:
    assert tup == Tuple.of(VALUES, NAMES, "words", "loud", 4)
    assert tup != Tuple.of(VALUES, NAMES, "words", "loud", 5)
    assert tup != Tuple.of(VALUES[::-1], NAMES, "words", "loud", 4)
    assert tup != VALUES
    with pytest.raises(TypeError, match="unhashable"):
        hash(tup)


def test_a_tuple_survives_pickle(tup: Tuple) -> None:
    copied = pickle.loads(pickle.dumps(tup))
    assert copied == tup
    assert copied.fields == tup.fields
