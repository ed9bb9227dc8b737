"""Each tuple: lets a bolt execute rows one by one, as Tuples. One that the bolt has not kept serves for the next row.

To make a Tuple and to free it takes longer than a small `execute`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from sys import getrefcount
from typing import Any

from stormline.runtime.tuples.columns import Row
from stormline.topology.fields import Fields
from stormline.topology.tuples import Tuple, TupleSource

NOBODY = -1
"""No number of references: each row gets a Tuple of its own."""


def execute_each(execute: Callable[..., Any], rows: Sequence[Row], source: TupleSource, *more: Any) -> None:
    """Call `execute` with each row as a Tuple, and with what else there is."""
    if more:
        _with_more(execute, rows, source, _ALONE_WITH_MORE, *more)
    else:
        _alone(execute, rows, source, _ALONE)


def _alone(execute: Callable[[Tuple], Any], rows: Sequence[Row], source: TupleSource, alone: int) -> int:
    """Call `execute` with each row; return the references that there were to the last Tuple.

    Args:
        alone: so many there are where nobody else has one.
    """
    tup, found = Tuple([], source), alone
    for row in rows:
        tup.values = row
        execute(tup)
        if (found := getrefcount(tup)) != alone:
            tup = Tuple([], source)
    return found


def _with_more(
    execute: Callable[[Tuple, Any], Any], rows: Sequence[Row], source: TupleSource, alone: int, more: Any
) -> int:
    """Call `execute` as `_alone` does, with one thing more."""
    tup, found = Tuple([], source), alone
    for row in rows:
        tup.values = row
        execute(tup, more)
        if (found := getrefcount(tup)) != alone:
            tup = Tuple([], source)
    return found


def probed(run: Callable[..., int], *more: Any) -> int:
    """Return how many references there are to a Tuple that nobody kept; `NOBODY` where that does not tell it.

    Interpreters count differently, and a debugger has references of its own.
    """
    source = TupleSource("probe", "default", 0, Fields("tx"))
    kept: list[Tuple] = []
    alone = run(lambda tup, *more: None, [[0]], source, NOBODY, *more)
    run(lambda tup, *more: kept.append(tup), [[1], [2]], source, alone, *more)
    return alone if alone <= 2 and [tup.values for tup in kept] == [[1], [2]] else NOBODY


_ALONE, _ALONE_WITH_MORE = probed(_alone), probed(_with_more, None)
