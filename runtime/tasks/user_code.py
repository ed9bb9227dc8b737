"""Guard: runs user code, and turns what it raises into the failure of one attempt (law 10, stop or replay)."""

from __future__ import annotations

import logging
import pickle
import traceback
from collections.abc import Callable
from threading import current_thread, get_ident, main_thread
from types import TracebackType
from typing import Any, NamedTuple, TypeVar

import cloudpickle

from stormline.runtime.messages.wave import Failure
from stormline.runtime.world.running_calls import Calls
from stormline.runtime.world.thread_stack import is_ours
from stormline.topology.attempt import TransactionAttempt
from stormline.topology.errors import FailedException, ReportedFailedException, StormlineError
from stormline.topology.secrets import without_secrets
from stormline.topology.texts import told

log = logging.getLogger("stormline")

T = TypeVar("T")

PACKED_BYTES_MAX = 1 << 20
"""Bytes of an exception that travel: of a larger one only its traceback is told."""


class AttemptAborted(BaseException):
    """Unwinds user code whose attempt has failed further down a chain of plain calls."""


def users_traceback(error: BaseException) -> str:
    """Return the traceback from the first frame of user code on.

    Where there is none it is the whole one, but nothing for an error of ours: its message says it all.
    """
    tb: TracebackType | None = error.__traceback__
    first = tb
    while first is not None and is_ours(first.tb_frame.f_code.co_filename):
        first = first.tb_next
    if first is None and isinstance(error, StormlineError):
        return ""
    return told(without_secrets("".join(traceback.format_exception(type(error), error, first or tb))))


def packed_exception(error: BaseException) -> bytes | None:
    """Return the exception as bytes for Spark's own channel, or None where it cannot be packed or tells a secret.

    To pack and unpack it runs code of its class, which may raise whatever it likes.
    """
    try:
        packed: bytes = cloudpickle.dumps(error)
        if len(packed) > PACKED_BYTES_MAX:
            return None
        pickle.loads(packed)
        text = "".join(traceback.format_exception(error))
    except BaseException:
        return None
    return packed if text == without_secrets(text) else None


def _text(error: BaseException) -> str:
    try:
        return told(without_secrets(str(error)))  # in this order: half a secret is not recognized
    except BaseException as another:
        return f"<its text cannot be had: {type(another).__name__}>"


def failure_of(error: BaseException, component: str, task: int | None, where: str) -> Failure:
    """Return what an exception of user code means for its attempt."""
    message = f"{type(error).__name__} in {where} of {component!r}" + (f", task {task}" if task is not None else "")
    message += f": {_text(error)}"
    if isinstance(error, FailedException):
        if isinstance(error, ReportedFailedException):
            log.warning("%s\n%s", message, users_traceback(error).rstrip())
        return Failure(component, task, message)
    return Failure(
        component, task, message, traceback=users_traceback(error), fatal=True, exception=packed_exception(error)
    )


class UserCode(NamedTuple):
    """Whose code is called: of which task of which component, for which attempt; `calls` knows those that run."""

    component: str
    task: int | None
    attempt: TransactionAttempt
    calls: Calls


ABORTED = Failure("the attempt", None, "it has failed further down a chain of plain calls", counts=False)


def run_guarded(of: UserCode, where: str, call: Callable[..., T], *args: Any) -> T | Failure:
    """Call user code, which `where` names; return its result, or the failure of its attempt that it means."""
    component, task, attempt, calls = of
    running, thread = calls.running, get_ident()
    outer = running.get(thread)  # the call that this one is within, if any
    running[thread] = (component, task, where, attempt, calls.monotonic())
    try:
        return call(*args)
    except AttemptAborted:
        return ABORTED
    except BaseException as error:  # SystemExit, GeneratorExit, CancelledError: they end a batch, not a worker
        if isinstance(error, KeyboardInterrupt) and current_thread() is main_thread():  # a worker gets Ctrl-C there
            raise
        return failure_of(error, component, task, where)
    finally:
        running[thread] = outer
