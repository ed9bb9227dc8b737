"""Found: what a hunt found, and whether that counts: a fault of the protocol is killed, broken code is not."""

from __future__ import annotations

import re
from dataclasses import dataclass

RAISED = re.compile(r"^(?:a driver stopped with|a driver could not start:|.*\bdied of) (\w+)")
"""Violations that name what was raised; all others are what the oracle or the model states."""

PROTOCOL_ERRORS = ("Fenced", "NotNext", "SessionLost", "StateCorrupt", "UnknownAttempt")
"""What the runtime raises where it sees by itself that a law is broken."""

WRAPPERS = ("EngineStopped", "TooManyAttempts", "TopologyFailed")
"""What a driver stops with for another error, whose text is in the message."""

PYTHON_ERROR = re.compile(
    r"\b((?:Type|Name|Attribute|UnboundLocal|Import|ModuleNotFound|Lookup|Key|Index|Value|Unicode\w*|Syntax|Indentation"
    r"|Runtime|Recursion|NotImplemented|Arithmetic|Overflow|Buffer|Memory|System|EOF)Error)\b"
)
"""Python's own errors: what raises one is broken code, no fault of the protocol."""

USERS_ERROR = "ZeroDivisionError"
"""What the bolts of the simulation raise on order: it ends a history where it may not, and is then the harness's."""

QUALIFIED = re.compile(r"^([a-z_]\w*(?:\.\w+)+)(?::|$)", re.MULTILINE)
"""The last line of a traceback, where the error is none of Python's own."""

FRAME = re.compile(r'^  +File "(.+)", line \d+', re.MULTILINE)
RUNTIME = re.compile(r"(?:^|/)stormline/runtime/.+$")


def python_errors(text: str) -> tuple[str, ...]:
    """Return the names of Python's own errors that a text tells of, each once."""
    return tuple(dict.fromkeys(PYTHON_ERROR.findall(text)))


def tells_of_another(text: str) -> bool:
    """Return whether an error that wraps another one tells of one that is neither Stormline's nor without a name."""
    foreign = [name for name in QUALIFIED.findall(text)[-1:] if not name.startswith("stormline.")]
    return bool(python_errors(text) or foreign) or USERS_ERROR in text


def failed_in_runtime(trace: str) -> bool:
    """Return whether the last `assert` that a traceback ends at is the runtime's, not the harness's or another's."""
    before, found, _ = trace.rpartition("\nAssertionError")
    frames = FRAME.findall(before)
    return bool(found and frames) and RUNTIME.search(frames[-1]) is not None


@dataclass(frozen=True, slots=True)
class Found:
    """What a hunt found: a violation after `tries` seeds or examples, or none in all of them.

    Args:
        trace: the traceback of the error that the violation names.
        logged: names of Python's own errors that threads ended with, or logged, in the history that broke a law.
    """

    tries: int
    secs: float
    violation: str | None
    trace: str = ""
    logged: tuple[str, ...] = ()

    @property
    def killed_by(self) -> str | None:
        """What kind of check found a fault of the protocol. None: none did, or what it found is broken code.

        It counts what oracle or model state, what the runtime's assertions see, and the runtime's own errors; not
        where it is one of Python's errors that they tell of, or that a history came to a standstill by.
        """
        if self.violation is None:
            return None
        raised = RAISED.search(self.violation)
        error = raised[1] if raised is not None else None
        if error == "Deadlock" or self.violation.startswith("liveness"):
            return None if self.logged else "liveness"
        if error is None:
            return "law check"
        if error in PROTOCOL_ERRORS:
            return f"runtime's {error}"
        if error not in (*WRAPPERS, "AssertionError"):
            return None
        text = self.violation if error in WRAPPERS else self.trace
        if error == "AssertionError" or re.search(r"^AssertionError\b", text, re.MULTILINE):
            return "runtime's assertion" if failed_in_runtime(text) else None
        return None if tells_of_another(text) else f"runtime's {error}"
