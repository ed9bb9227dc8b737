"""The docstrings of all that users import say what they must; and the check that holds it finds what is missing."""

from __future__ import annotations

import sys
from dataclasses import dataclass

import pytest

from docs.public_docstrings import Docstring, main, problems

__all__ = ["LIMIT", "Bare", "Base", "Child", "Kept", "Point", "Poor", "Unsaid", "rich"]

LIMIT = 3
Kept = dict[str, int]
"""What is kept."""


def rich(text: str, secs: float, *more: int) -> list[str]:
    """Wait, and give something.

    Args:
        text (str): which text, and a second line
            of it.
        secs (float): seconds to wait.
        *more (int): numbers of tasks.

    Returns:
        what it gives.

    Raises:
        ValueError, KeyError: the text is none.
    """
    if not text:
        raise ValueError(secs)
    raise KeyError(more)


class Bare:
    def nothing(self) -> None: ...


class Base:
    """Has a method."""

    def act(self, n: int) -> int:
        """Act.

        Args:
            n (int): number of tasks.

        Returns:
            what came of it.
        """
        return n


class Child(Base):
    """Overrides it."""

    def act(self, n: int) -> int:
        """Act otherwise."""
        return n


@dataclass
class Point:
    """Is somewhere."""

    x: int


class Poor:
    """Is made of something.

    Args:
        size (str): how large.
        gone (int): number of nothing.
    """

    def __init__(self, size: int) -> None:
        if size < 0:
            raise ValueError(size)

    @property
    def length(self) -> int:
        """How long."""
        raise LookupError

    def read(self, timeout: float) -> str:
        """Read.

        Args:
            timeout (float): how long.

        Raises:
            Surprise: now and then.
        """
        raise RuntimeError.with_traceback(RuntimeError(), None)

    @classmethod
    def make(cls) -> Poor:
        return cls(1)


class Unsaid:
    """Raises, and does not say what."""

    def look(self) -> None:
        """Look.

        Raises:
            an error
        """

        def inner() -> None:
            raise ValueError("of another function")

        raise AssertionError(inner)


def test_the_docstrings_of_all_that_users_import_are_complete() -> None:
    assert problems() == []


def test_what_is_missing_is_named_with_place_and_remedy() -> None:
    found = problems([sys.modules[__name__]])
    here = "tests/unit/"
    assert all(here in problem or problem.startswith("tests.unit") for problem in found)
    assert [problem.partition(": ")[2] for problem in found] == [
        "no text follows its assignment; say there what it is",
        "Bare: no docstring; say in one line what it is",
        "Point: Args lacks x; write `x (int): …`",
        "Poor: Args says size (str), and the signature int; write `size (int): …`",
        "Poor: Args does not say what size counts; name the unit: seconds, rows, tasks, a txid, …",
        "Poor: Args names gone, which is no parameter; take it out",
        "Poor: raises ValueError; add `ValueError: when, and what holds then` to Raises",
        "Poor.length: raises LookupError; add `LookupError: when, and what holds then` to Raises",
        "Poor.read: Args does not say what timeout counts; name the unit: seconds, rows, tasks, a txid, …",
        "Poor.read: does not say what it returns; begin with 'Return …', or add `Returns:`, for the str",
        "Poor.read: raises RuntimeError; add `RuntimeError: when, and what holds then` to Raises",
        "Poor.read: Raises names Surprise, which users cannot import; name an error of stormline.errors",
        "Poor.make: no docstring; say in one line, which begins with a verb, what it does",
        "Unsaid.look: Raises names no error; write `NameOfTheError: when`",
    ]


def test_a_docstring_is_cut_into_its_sections() -> None:
    doc = Docstring(rich.__doc__)
    assert doc.arguments()["text"] == ("str", "which text, and a second line of it.")
    assert doc.arguments().keys() == {"text", "secs", "*more"}
    assert doc.raised() == {"ValueError", "KeyError"}
    assert doc.says_what_is_returned()


def test_the_check_of_the_linter_ends_well_only_where_there_is_no_problem(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    main()
    assert capsys.readouterr().out == ""
    monkeypatch.setattr("docs.public_docstrings.problems", lambda: ["x: y"])
    with pytest.raises(SystemExit, match="problems in the docstrings of exported names: 1"):
        main()
    assert capsys.readouterr().out == "x: y\n"
