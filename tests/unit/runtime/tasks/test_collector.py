"""What a task may emit, and when it is routed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pytest

from stormline import Fields, TransactionAttempt, Values
from stormline.runtime.tasks.collector import ROWS_MAX, Output, TaskCollector
from stormline.topology.errors import DirectStreamMismatch, StaleEmit, UndeclaredStream, WrongArity, WrongAttempt
from stormline.topology.plan import PlannedComponent
from stormline.topology.streams import StreamDeclaration
from stormline.topology.topology import Component, ComponentKind

ATTEMPT = TransactionAttempt(1, 1)


class Caught:
    """A route that keeps what it takes, call by call."""

    def __init__(self) -> None:
        self.calls: list[list[list[Any]]] = []

    def take(self, rows: list[list[Any]]) -> None:
        self.calls.append(rows)

    def take_direct(self, task: int, row: list[Any]) -> None:
        self.calls.append([[task, *row]])

    def flush(self) -> None: ...


def collector(*routes: Caught) -> TaskCollector:
    streams = {
        "default": StreamDeclaration(Fields("tx", "value"), direct=False),
        "to": StreamDeclaration(Fields("tx", "value"), direct=True),
    }
    component = Component("words", ComponentKind.BATCH_BOLT, object(), 1, False, streams, {}, {})  # type: ignore[arg-type]
    planned = PlannedComponent(component, (7,), 0, None)
    outputs = {name: Output(stream, cast(Any, routes)) for name, stream in streams.items()}
    return TaskCollector(planned, 7, ATTEMPT, outputs)


def test_rows_wait_until_there_are_enough_or_the_call_of_user_code_ends() -> None:
    route = Caught()
    to = collector(route)
    for n in range(ROWS_MAX + 3):
        to.emit([ATTEMPT, n])
    assert [len(rows) for rows in route.calls] == [ROWS_MAX]
    assert to.emitted == ROWS_MAX + 3
    to.flush()
    to.flush()
    assert [len(rows) for rows in route.calls] == [ROWS_MAX, 3]
    assert [row[1] for rows in route.calls for row in rows] == list(range(ROWS_MAX + 3))
    assert to.emitted == ROWS_MAX + 3


class Refusing(Caught):
    """A route that raises what it is told to."""

    error: BaseException = ValueError("no way to write this")

    def take(self, rows: list[list[Any]]) -> None:
        raise self.error

    def take_direct(self, task: int, row: list[Any]) -> None:
        raise self.error


def emit_many(to: TaskCollector) -> None:
    for n in range(ROWS_MAX):
        to.emit([ATTEMPT, n])


@pytest.mark.parametrize(
    "emit",
    [
        emit_many,
        lambda to: to.emit_all([[ATTEMPT, 1]]),
        lambda to: (to.emit([ATTEMPT, 1]), to.emit_all([[ATTEMPT, 2]])),
        lambda to: to.emit_direct(8, [ATTEMPT, 1], "to"),
    ],
)
def test_what_routing_raises_is_raised_again_at_the_end_of_the_call_though_user_code_has_caught_it(
    emit: Callable[[TaskCollector], object],
) -> None:
    """Rows of other calls are lost with it, or have been routed: the attempt must fail."""
    route = Refusing()
    to = collector(Caught(), route)
    with pytest.raises(ValueError, match="no way to write this"):
        emit(to)
    for _ in range(2):
        with pytest.raises(ValueError, match="no way to write this") as raised:
            to.flush()
        assert raised.value is route.error


def test_what_is_refused_before_it_is_taken_in_may_be_caught() -> None:
    route = Caught()
    to = collector(route)
    with pytest.raises(WrongArity):
        to.emit([ATTEMPT])
    to.emit([ATTEMPT, 1])
    to.flush()
    assert route.calls == [[[ATTEMPT, 1]]]


def test_what_was_emitted_does_not_change_with_the_callers_list() -> None:
    route = Caught()
    to = collector(route)
    row = [ATTEMPT, 0]
    for n in range(3):
        row[1] = n
        to.emit(row)
    to.flush()
    assert route.calls == [[[ATTEMPT, 0], [ATTEMPT, 1], [ATTEMPT, 2]]]


@pytest.mark.parametrize("row", [Values(ATTEMPT, 1), (ATTEMPT, 1), (ATTEMPT, {})])
def test_the_stream_may_come_first_as_in_storm(row: Any) -> None:
    route = Caught()
    to = collector(route)
    to.emit("default", row)
    to.emit(row, "default")
    to.emit_direct(9, "to", row)
    to.emit_direct(9, row, "to")
    to.flush()
    assert route.calls == [[[9, *row]], [[9, *row]], [[*row], [*row]]]


def test_what_is_wrong_in_storms_order_is_refused_as_in_ours() -> None:
    to = collector(Caught())
    with pytest.raises(UndeclaredStream, match=r"emits to stream 'defualt'.*did you mean 'default'"):
        to.emit("defualt", [ATTEMPT, 1])
    with pytest.raises(UndeclaredStream, match=r"emits to stream 'ot'; it declares"):
        to.emit_direct(9, "ot", [ATTEMPT, 1])
    with pytest.raises(UndeclaredStream, match=r"emits to stream \[1\]; it declares"):
        to.emit([ATTEMPT, 1], [1])
    with pytest.raises(DirectStreamMismatch, match=r"emits plainly to stream 'to', which is direct"):
        to.emit("to", [ATTEMPT, 1])
    with pytest.raises(DirectStreamMismatch, match=r"not declared with direct=True"):
        to.emit_direct(9, "default", [ATTEMPT, 1])
    with pytest.raises(WrongArity, match=r"emits 2 values \['o', 'x'\] to stream 'default'"):
        to.emit("default", "ox")
    with pytest.raises(WrongAttempt, match=r"as first value to stream 'default'"):
        to.emit("default", ["default", 1])
    to.close()
    for emit in (lambda: to.emit("default", [ATTEMPT, 1]), lambda: to.emit_direct(9, "to", [ATTEMPT, 1])):
        with pytest.raises(StaleEmit, match=r"emits for attempt 1:1, which has ended"):
            emit()
    assert to.emitted == 0


def test_many_rows_are_emitted_at_once_after_those_that_wait() -> None:
    route = Caught()
    to = collector(route)
    to.emit([ATTEMPT, 0])
    to.emit_all([[ATTEMPT, 1], (ATTEMPT, 2)])  # type: ignore[list-item]
    to.emit_all([])
    assert [row[1] for rows in route.calls for row in rows] == [0, 1, 2]
    assert all(type(row) is list for rows in route.calls for row in rows)
    assert to.emitted == 3


def test_each_route_has_rows_of_its_own() -> None:
    one, other = Caught(), Caught()
    to = collector(one, other)
    to.emit_all([[ATTEMPT, 1]])
    assert one.calls == other.calls
    one.calls[0][0][1] = "changed"
    assert other.calls == [[[ATTEMPT, 1]]]


def test_an_attempt_may_be_equal_without_being_the_same_object() -> None:
    route = Caught()
    to = collector(route)
    to.emit((TransactionAttempt(1, 1), 5))
    to.emit_all([[TransactionAttempt(1, 1), 6]])
    assert [row[1] for rows in route.calls for row in rows] == [5, 6]


@pytest.mark.parametrize("emit", [lambda to, row, *stream: to.emit(row, *stream),
                                  lambda to, row, *stream: to.emit_all([row], *stream)])  # fmt: skip
def test_a_wrong_tuple_is_refused_at_once(emit: Any) -> None:
    to = collector(Caught())
    with pytest.raises(WrongArity, match=r"bolt 'words', task 7 emits 3 values .* has the 2 fields \['tx', 'value'\]"):
        emit(to, [ATTEMPT, 1, 2])
    with pytest.raises(WrongArity, match=r"emits 2 values \['a', 'b'\]"):
        emit(to, "ab")
    with pytest.raises(WrongAttempt, match=r"emits 1:2 as first|TransactionAttempt.* as first value"):
        emit(to, [TransactionAttempt(1, 2), 1])
    with pytest.raises(UndeclaredStream, match=r"emits to stream 'defualt'.*did you mean 'default'"):
        emit(to, [ATTEMPT, 1], "defualt")
    with pytest.raises(DirectStreamMismatch, match=r"emits plainly to stream 'to', which is direct"):
        emit(to, [ATTEMPT, 1], "to")
    assert to.emitted == 0
    to.close()
    with pytest.raises(StaleEmit, match=r"emits for attempt 1:1, which has ended"):
        emit(to, [ATTEMPT, 1])


def test_direct_tuples_go_at_once_and_not_after_the_end() -> None:
    route = Caught()
    to = collector(route)
    to.emit_direct(9, [ATTEMPT, 1], "to")
    assert route.calls == [[[9, ATTEMPT, 1]]]
    assert to.emitted == 1
    with pytest.raises(DirectStreamMismatch, match=r"not declared with direct=True"):
        to.emit_direct(9, [ATTEMPT, 1])
    to.close()
    with pytest.raises(StaleEmit):
        to.emit_direct(9, [ATTEMPT, 1], "to")
