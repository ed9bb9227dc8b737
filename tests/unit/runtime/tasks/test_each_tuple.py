"""A Tuple that a bolt has let go of serves for the next row; one that somebody has kept, wherever, stays as it was."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import Any

import pytest

from stormline import Fields, Tuple
from stormline.runtime.tasks import each_tuple
from stormline.runtime.tasks.each_tuple import NOBODY, execute_each, probed
from stormline.topology.tuples import TupleSource

SOURCE = TupleSource("spout", "default", 1, Fields("tx", "n"))
ROWS: list[list[Any]] = [["attempt", n] for n in range(100)]

More = pytest.mark.parametrize("more", [(), ("collector",)], ids=["batch-bolt", "basic-bolt"])


@More
def test_one_that_nobody_keeps_serves_for_all_rows(more: Any) -> None:
    seen: list[Any] = []
    execute_each(lambda tup, *given: seen.append((id(tup), tup.values, given)), ROWS, SOURCE, *more)
    assert [values for _, values, _ in seen] == ROWS
    assert {given for _, _, given in seen} == {more}
    assert len({number for number, _, _ in seen}) == 1


def in_a_list(kept: list[Callable[[], Tuple]], tup: Tuple) -> None:
    kept.append([tup].pop)


def in_a_closure(kept: list[Callable[[], Tuple]], tup: Tuple) -> None:
    kept.append(lambda: tup)


def in_a_method_of_its_own(kept: list[Callable[[], Tuple]], tup: Tuple) -> None:
    method = tup.get_values
    kept.append(lambda: method.__self__)  # type: ignore[attr-defined]


def in_an_error(kept: list[Callable[[], Tuple]], tup: Tuple) -> None:
    try:
        raise ValueError
    except ValueError as error:
        caught = error
    frame: Any = caught.__traceback__
    kept.append(lambda: frame.tb_frame.f_locals["tup"])


def in_a_generator(kept: list[Callable[[], Tuple]], tup: Tuple) -> None:
    def later() -> Any:
        yield
        yield tup

    begun = later()
    next(begun)
    kept.append(lambda: next(begun))


@More
@pytest.mark.parametrize("keep", [in_a_list, in_a_closure, in_a_method_of_its_own, in_an_error, in_a_generator])
def test_one_that_is_kept_stays_as_it_was(keep: Any, more: Any) -> None:
    kept: list[Callable[[], Tuple]] = []

    def execute(tup: Tuple, *given: Any) -> None:
        if tup.values[1] % 3:
            keep(kept, tup)

    execute_each(execute, ROWS, SOURCE, *more)
    assert [held().values for held in kept] == [row for row in ROWS if row[1] % 3]


def test_one_that_another_thread_works_on_stays_as_it_was() -> None:
    given: queue.SimpleQueue[Tuple | None] = queue.SimpleQueue()
    seen: list[Any] = []

    def work() -> None:
        while (tup := given.get()) is not None:
            seen.append((tup.values, tup.get_value(1)))

    thread = threading.Thread(target=work)
    thread.start()
    execute_each(given.put, ROWS * 100, SOURCE)
    given.put(None)
    thread.join()
    assert [values for values, _ in seen] == ROWS * 100
    assert all(values[1] == n for values, n in seen)


def test_where_references_do_not_tell_each_row_gets_one_of_its_own() -> None:
    def unnoticed(execute: Any, rows: Any, source: Any, alone: int) -> int:
        tup = Tuple([], source)
        for tup.values in rows:
            execute(tup)
        return 1

    assert probed(unnoticed) == NOBODY
    assert probed(lambda *given: 3) == NOBODY  # somebody else looks on
    kept: list[Tuple] = []
    each_tuple._alone(kept.append, ROWS, SOURCE, NOBODY)
    assert [tup.values for tup in kept] == ROWS
