"""A thread of user code's own: calls one after another, each waited for, and one that hangs is given up."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator

import pytest

from stormline.errors import CallAbandoned
from stormline.runtime.world.own_thread import OwnThread
from stormline.runtime.world.world import REAL
from tests.kits.components import eventually


@pytest.fixture
def own() -> Iterator[OwnThread]:
    thread = OwnThread(REAL, "of-a-test")
    yield thread
    thread.close()


@pytest.fixture
def go_on() -> Iterator[threading.Event]:
    event = threading.Event()
    yield event
    event.set()


def test_all_calls_run_in_one_thread_that_is_not_the_callers(own: OwnThread) -> None:
    seen = {own.call(threading.get_ident) for _ in range(3)}
    assert len(seen) == 1
    assert seen != {threading.get_ident()}


def test_what_a_call_returns_or_raises_is_the_callers(own: OwnThread) -> None:
    assert own.call(lambda: 7) == 7
    with pytest.raises(ZeroDivisionError):
        own.call(lambda: 1 / 0)
    with pytest.raises(SystemExit):
        own.call(lambda: exec("raise SystemExit(3)"))
    assert own.call(lambda: 8) == 8, "and the thread goes on"


class Given:
    """What a call is given, and gives back."""


def test_what_a_call_was_given_and_gave_lives_no_longer_than_whoever_asked_for_it(own: OwnThread) -> None:
    def of_a_call() -> weakref.ref[Given]:
        given = Given()
        assert own.call(lambda: given) is given
        return weakref.ref(given)

    assert of_a_call()() is None


def test_calls_run_in_the_order_in_which_they_were_asked_for(own: OwnThread, go_on: threading.Event) -> None:
    order: list[int] = []
    own.begin(go_on.wait)
    calls = [own.begin(lambda n=n: order.append(n)) for n in range(20)]  # type: ignore[misc]
    go_on.set()
    for call in calls:
        call.wait()
    assert order == list(range(20))


def test_a_call_that_is_taken_back_before_its_turn_never_runs(own: OwnThread, go_on: threading.Event) -> None:
    order: list[str] = []
    own.begin(go_on.wait, "hangs")
    first = own.begin(lambda: order.append("first"), "mine")
    other = own.begin(lambda: order.append("other"), "another's")
    own.withdraw("mine")
    with pytest.raises(CallAbandoned, match="abandoned"):
        first.wait()
    go_on.set()
    other.wait()
    assert order == ["other"]


def test_a_call_that_runs_is_not_taken_back_and_since_when_it_runs_is_known(
    own: OwnThread, go_on: threading.Event
) -> None:
    hanging = own.begin(lambda: go_on.wait() and "came back", "hangs")
    eventually(lambda: own.running_since() is not None)
    own.withdraw("hangs")
    go_on.set()
    assert hanging.wait() == "came back"


def test_a_thread_that_is_closed_does_what_was_asked_for_and_ends() -> None:
    own, done = OwnThread(REAL, "of-a-test"), []
    own.begin(lambda: done.append(1))
    own.close()
    eventually(lambda: not own.thread.is_alive())
    assert done == [1]
    with pytest.raises(CallAbandoned):
        own.call(lambda: None)


def test_nothing_runs_between_calls(own: OwnThread) -> None:
    own.call(lambda: None)
    assert own.running_since() is None
