"""OutputFieldsDeclarer: what a component says it emits."""

import re
from typing import Any

import pytest

from stormline import Fields
from stormline.topology.errors import InvalidStream
from stormline.topology.streams import OutputFieldsDeclarer, StreamDeclaration


def test_streams_are_kept_with_their_fields_and_whether_they_are_direct() -> None:
    declarer = OutputFieldsDeclarer("split")
    declarer.declare(Fields("tx", "word"))
    declarer.declare_stream("errors", ["tx"], direct=True)
    declarer.declare_stream("more", ("tx", "n"))
    assert declarer.streams == {
        "default": StreamDeclaration(Fields("tx", "word"), direct=False),
        "errors": StreamDeclaration(Fields("tx"), direct=True),
        "more": StreamDeclaration(Fields("tx", "n"), direct=False),
    }


def test_the_default_stream_can_be_direct() -> None:
    declarer = OutputFieldsDeclarer("split")
    declarer.declare(Fields("tx"), direct=True)
    assert declarer.streams["default"].direct


@pytest.mark.parametrize("again", ["default", "other"])
def test_a_stream_declared_twice_is_an_error(again: str) -> None:
    declarer = OutputFieldsDeclarer("split")
    declarer.declare(Fields("tx"))
    declarer.declare_stream("other", Fields("tx"))
    message = f"component 'split' declares stream '{again}' twice; declare each stream once"
    with pytest.raises(InvalidStream, match=message):
        declarer.declare_stream(again, Fields("tx", "n"))


@pytest.mark.parametrize(
    ("stream", "fields", "direct", "message"),
    [
        ("", ["tx"], False, "declares stream ''; expected non-empty text"),
        (7, ["tx"], False, "declares stream 7; expected non-empty text"),
        ("s", "word", False, "stream 's': got the text 'word', expected Fields('word', …)"),
        ("s", [], False, "stream 's' declares no field; the first field of every stream carries the transaction att"),
        ("s", ["tx", ""], False, "stream 's': Fields('tx', ''): got '', expected non-empty text for each field name"),
        ("s", ["tx", 1], False, "stream 's': Fields('tx', 1): got 1, expected non-empty text for each field name"),
        ("s", ["tx", "tx"], False, "stream 's': Fields('tx', 'tx'): field 'tx' is given twice; give each field"),
        ("s", None, False, "stream 's': got fields None and direct False; expected declare_stream(stream_id, Fields"),
        ("s", True, ["tx"], "stream 's': got fields True and direct ['tx']; expected declare_stream(stream_id, Fields"),
        ("s", ["tx"], "word", "stream 's': got fields ['tx'] and direct 'word'; expected declare_stream(stream_id"),
    ],
)
def test_what_is_no_declaration_names_component_and_stream(stream: Any, fields: Any, direct: Any, message: str) -> None:
    declarer = OutputFieldsDeclarer("split")
    with pytest.raises(InvalidStream, match=re.escape(message)) as caught:
        declarer.declare_stream(stream, fields, direct)
    assert str(caught.value).startswith("component 'split'")
    assert declarer.streams == {}
