"""InterpreterWatch: what kept the process from running any other Python code, and for how long."""

from __future__ import annotations

import ctypes
import logging
from collections.abc import Iterator

import pytest
from kazoo.protocol.states import KazooState

from stormline import TransactionAttempt
from stormline.runtime.errors import SessionLost
from stormline.runtime.tasks.user_code import UserCode, run_guarded
from stormline.runtime.world.running_calls import Calls
from stormline.runtime.world.world import REAL
from stormline.runtime.zookeeper.interpreter_watch import InterpreterWatch
from stormline.runtime.zookeeper.ownership import Ownership
from tests.kits.interpreter import hold_interpreter
from tests.unit.runtime.zookeeper.test_ownership import OWNER, Session


class Stoppable(Session):
    def stop(self) -> None:
        pass


SESSION_SECS = 1.0
HOLD_SECS = 1.6


@pytest.fixture
def watch() -> Iterator[InterpreterWatch]:
    made = InterpreterWatch()
    yield made
    made.stop()


ATTEMPT = TransactionAttempt(1, 1)


def test_where_all_threads_ran_nothing_is_said(watch: InterpreterWatch) -> None:
    assert watch.why_silent(SESSION_SECS) == ""


def test_one_call_that_let_no_other_python_code_run_is_told_with_its_component_and_the_setting(
    watch: InterpreterWatch,
) -> None:
    def holds_and_is_looked_at() -> None:
        hold_interpreter(HOLD_SECS)
        watch.why_silent(SESSION_SECS)

    of = UserCode("store", 3, ATTEMPT, Calls(REAL))
    assert run_guarded(of, "finish_batch", holds_and_is_looked_at) is None
    why = watch.why_silent(SESSION_SECS)
    assert "was busy for " in why
    assert "a session of 1 s (storm.zookeeper.session.timeout). Raise that setting" in why
    assert "It was in finish_batch of 'store', task 3, at\n" in why
    assert "in holds_and_is_looked_at" in why


def test_a_process_that_did_not_compute_either_is_told_of_without_blame(watch: InterpreterWatch) -> None:
    ctypes.PyDLL(None).sleep(2)  # as a stop of the process: nothing runs, nothing computes
    assert "and it did not compute: it was stopped, or the machine was" in watch.why_silent(SESSION_SECS)


def test_a_session_that_ends_meanwhile_says_why(watch: InterpreterWatch, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, "stormline")
    session = Stoppable()
    untyped: object = session
    ownership = Ownership(REAL, untyped, "/storm/t", OWNER, None, SESSION_SECS, watch.why_silent)  # type: ignore[arg-type]
    hold_interpreter(HOLD_SECS)
    session.listener(KazooState.LOST)
    with pytest.raises(SessionLost, match=r"has ended; .*\. The reason: this process was busy for \d+ s in"):
        ownership.raise_if_lost()
