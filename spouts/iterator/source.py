"""Source: a user's source of rows, checked: it begins at a position, and every row has its own."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from typing import Any, Protocol

from stormline.spouts.errors import CannotReplay, SourceChanged, SourceUnusable
from stormline.spouts.iterator.positioned import Position, Reading
from stormline.topology.errors import InvalidComponent, shown

_SIMPLE = (int, str, bytes, float, bool)
_INSTEAD = "expected a function source(start) that gives (position, row)s, or a list of rows"


class Rows(Protocol):
    """What has a length, and rows by their numbers: a list, a tuple, an array, an object of the user's."""

    def __len__(self) -> int:
        """Return how many rows there are."""

    def __getitem__(self, number: int, /) -> Any:
        """Return a row by its number, from 0."""


ReplayableSource = Callable[[Position | None], Iterable[tuple[Position, Any]]] | Rows


class Source:
    """Gives the rows after a position. Raises when it is made where it cannot give rows twice.

    Args:
        source: as the user gave it.
        width: how many values a row has.

    Raises:
        CannotReplay: each row can be had once.
        InvalidComponent: it is no source at all.
    """

    def __init__(self, source: Any, width: int) -> None:
        self._begin = _beginning(source)
        self._width = width
        self._last: Any = None

    def after(self, start: Position | None, who: str, rows_max: int | None = None) -> Reading:
        """Give each position, and the values of its row, after `start`; None: from the beginning.

        Raises:
            SourceUnusable: it gives something else, or one position twice in a row.
            CannotReplay: it gives the very iterator that it gave before.
            SourceChanged: a list has fewer rows than were read of it.
        """
        given = self._begin(copy.deepcopy(start), who)
        try:
            rows = iter(given)
        except TypeError as error:
            raise SourceUnusable(
                f"{who}: source({shown(start)}) returned a {type(given).__name__}, expected an iterable of (position, "
                "row)"
            ) from error
        if rows is given and rows is self._last:
            raise CannotReplay.of(
                f"{who}: source({shown(start)}) returned the same {type(rows).__name__} as before, part of which has "
                "been read"
            )
        self._last = rows
        return self._checked(rows, start, who)

    def _checked(self, rows: Iterator[Any], start: Position | None, who: str) -> Reading:
        try:
            yield from self._each(rows, start, who)
        finally:  # in this thread: a generator may hold what belongs to it
            close = getattr(rows, "close", None)
            if callable(close):
                close()

    def _each(self, rows: Iterator[Any], start: Position | None, who: str) -> Reading:
        last = start
        for item in rows:
            if not isinstance(item, (tuple, list)) or len(item) != 2:
                raise SourceUnusable(
                    f"{who}: the source gave {shown(item)} after position {shown(last)}, expected (position, row): the "
                    "position is where to go on after this row, and source(position) begins with the next one"
                )
            position, row = item
            if position is None or _same(position, last):
                raise SourceUnusable(
                    f"{who}: the source gave the position {shown(position)} after {shown(last)}, expected another one "
                    "for each row: source(start) begins after the row whose position is `start`, and rows that share "
                    "one, as of the same time, need more to tell them apart: (time, id)"
                )
            last = position if isinstance(position, _SIMPLE) else copy.deepcopy(position)
            values = list(row) if isinstance(row, (list, tuple)) else [row]
            if len(values) != self._width:
                raise SourceUnusable(
                    f"{who}: the row at position {shown(last)} has {len(values)} values ({shown(row)}), expected "
                    f"{self._width}, one for each field"
                )
            yield last, values


def _same(position: Any, last: Any) -> bool:
    return type(position) is type(last) and bool(position == last)


def _beginning(source: Any) -> Callable[[Any, str], Any]:
    """Return what begins the source at a position."""
    kind = type(source).__name__
    if inspect.isgeneratorfunction(source) or inspect.isfunction(source) or inspect.ismethod(source):
        _check_signature(source)
        return lambda start, who: source(start)
    if hasattr(source, "__next__") or inspect.isasyncgen(source):
        raise CannotReplay.of(f"source is a {kind} object, which gives each row once")
    if callable(source):
        _check_signature(source)
        return lambda start, who: source(start)
    if isinstance(source, (str, bytes, bytearray, Mapping, Set)) or hasattr(source, "keys"):
        raise InvalidComponent(
            f"source is a {kind}, {_INSTEAD}: what it holds has no numbers from 0; make a list of it, in an order that "
            "is the same in every process"
        )
    if isinstance(source, Sequence) or (hasattr(source, "__getitem__") and hasattr(source, "__len__")):
        return lambda start, who: _numbered(source, start, who)
    if not isinstance(source, Iterable):
        raise InvalidComponent(f"source is {shown(source)}, {_INSTEAD}")
    raise CannotReplay.of(f"source is a {kind} object, which can be begun only at its beginning")


def _check_signature(source: Any) -> None:
    try:
        signature = inspect.signature(source)
    except (TypeError, ValueError):  # of one that is not written in Python
        return
    try:
        signature.bind(None)
    except TypeError:
        name = getattr(source, "__name__", type(source).__name__)
        raise CannotReplay.of(
            f"source is {name}{signature}, which does not take the one position at which to begin"
        ) from None


def _numbered(rows: Any, start: Any, who: str) -> Iterator[tuple[int, Any]]:
    number = 0 if start is None else start
    if type(number) is not int or len(rows) < number:
        raise SourceChanged(
            f"{who} was read up to position {shown(start)}, and its source has {len(rows)} rows now; "
            f"{SourceChanged.REMEDY}"
        )
    while number < len(rows):
        try:
            row = rows[number]
        except (IndexError, KeyError) as error:
            raise SourceUnusable(
                f"{who}: its source says that it has {len(rows)} rows, and has none at {number}: its __len__ must not "
                f"promise more than __getitem__ gives ({type(error).__name__}: {error})"
            ) from error
        number += 1
        yield number, row
