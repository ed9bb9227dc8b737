"""Fields and Values."""

import copy
import pickle

import pytest

from stormline import Fields, StormlineError, Values
from stormline.topology.errors import InvalidStream, UnknownField


def test_fields_are_an_ordered_sequence_of_names() -> None:
    fields = Fields("tx", "word", "count")
    assert list(fields) == fields.to_list() == ["tx", "word", "count"]
    assert (len(fields), fields[1], fields[-1], fields[1:]) == (3, "word", "count", ("word", "count"))
    assert "word" in fields
    assert "wrod" not in fields
    assert [fields.field_index(name) for name in fields] == [0, 1, 2]
    assert repr(fields) == "Fields('tx', 'word', 'count')"


@pytest.mark.parametrize(
    "made", [Fields(["a", "b"]), Fields(("a",), "b"), Fields(Fields("a", "b")), Fields("a", ["b"])]
)
def test_fields_take_names_and_sequences_of_names(made: Fields) -> None:
    assert made == Fields("a", "b")
    assert hash(made) == hash(Fields("a", "b"))


def test_fields_survive_pickle_and_copy() -> None:
    fields = Fields("tx", "word")
    assert pickle.loads(pickle.dumps(fields)) == copy.deepcopy(fields) == fields


def test_fields_are_equal_to_fields_only() -> None:
    assert Fields("a") != Fields("b")
    assert Fields("a") != ["a"]


@pytest.mark.parametrize("names", [("a", ""), ("a", None), ("a", 3), (["a", b"b"],), ({"a"},)])
def test_a_name_that_is_no_text_or_empty_is_an_error_that_shows_it(names: tuple[object, ...]) -> None:
    with pytest.raises(InvalidStream, match=r"^Fields\(.*: got .*, expected non-empty text for each field name$"):
        Fields(*names)  # type: ignore[arg-type]


def test_a_name_given_twice_is_named() -> None:
    with pytest.raises(InvalidStream, match=r"^Fields\('a', 'b', 'a'\): field 'a' is given twice; give each field its"):
        Fields("a", "b", "a")


def test_an_unknown_field_is_an_error_that_names_those_that_exist() -> None:
    with pytest.raises(UnknownField) as caught:
        Fields("tx", "word").field_index("wrod")
    assert str(caught.value) == (
        "this tuple has no field 'wrod'; its fields are ['tx', 'word']; did you mean 'word'?"
    )  # fmt: skip
    assert isinstance(caught.value, (StormlineError, KeyError, ValueError))


@pytest.mark.parametrize("name", [0, None, ["word"], ("tx",)])
def test_a_field_name_that_is_no_text_is_unknown_too(name: object) -> None:
    with pytest.raises(UnknownField, match=r"this tuple has no field .*; its fields are \['tx', 'word'\]"):
        Fields("tx", "word").field_index(name)  # type: ignore[arg-type]


def test_fields_answer_to_storms_getters() -> None:
    fields = Fields("tx", "word")
    assert (fields.get(1), fields.size(), fields.to_list()) == ("word", 2, ["tx", "word"])
    assert fields.contains("word")
    assert not fields.contains("wrod")


def test_values_are_a_list_of_their_arguments() -> None:
    assert Values("a", [1], None) == ["a", [1], None]
    assert Values() == []
