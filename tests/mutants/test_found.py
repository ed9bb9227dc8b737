"""What counts as killed, and what only shows that a mutant is broken code.

Laws by number, as docs/laws.md has them: law 1 (order), law 2 (sameness).
"""

from __future__ import annotations

import pytest

from tests.mutants.found import Found, failed_in_runtime, python_errors

IN_RUNTIME = '  File "/tmp/mutant-1/stormline/runtime/coordination/coordinator.py", line 204, in _committed\n'
IN_HARNESS = '  File "/tmp/mutant-1/tests/simulation/scheduler.py", line 171, in task\n'
IN_LIBRARY = '  File "/usr/lib/python3.11/heapq.py", line 3, in heappop\n'


def trace(*lines: str) -> str:
    return "".join(["Traceback (most recent call last):\n", *lines])


def stopped(wrapper: str, inner: str) -> str:
    """As a driver's end reads where what it stopped for is in the message."""
    return f"a driver stopped with {wrapper}: topology 'simulated' stopped: {inner}\n; nothing durable is lost"


PYTHONS = (
    "TypeError",
    "NameError",
    "AttributeError",
    "UnboundLocalError",
    "ImportError",
    "ModuleNotFoundError",
    "KeyError",
    "IndexError",
    "LookupError",
    "ValueError",
    "UnicodeDecodeError",
    "SyntaxError",
    "RuntimeError",
    "RecursionError",
    "NotImplementedError",
    "ZeroDivisionError",
)


@pytest.mark.parametrize(
    ("violation", "killed_by"),
    [
        ("law 1: 3 is recorded after 1", "law check"),
        ("exactly once: keyed lacks [(0, 1)] and holds [] more than once", "law check"),
        ("model: law 2: the batch is the same for ever", "law check"),
        ("liveness: 2 is committed", "liveness"),
        ("a thread died of Deadlock: nothing is left to happen", "liveness"),
        ("a driver stopped with NotNext: transaction 3", "runtime's NotNext"),
        ("a driver could not start: StateCorrupt: it is", "runtime's StateCorrupt"),
        ("a history died of Fenced: epoch 1 is over", "runtime's Fenced"),
        ("a driver stopped with EngineStopped: wave 3 came to nothing: cut", "runtime's EngineStopped"),
        ("a driver stopped with TopologyFailed: it is not the same batch", "runtime's TopologyFailed"),
        ("a driver stopped with TooManyAttempts: transaction 2 has failed 6 times", "runtime's TooManyAttempts"),
        ("the hunt died of Hang: it was not done after 600 s", None),
        ("the hunt died of Exit: No module named 'stormline'", None),
        ("a driver stopped with StormlineError: some other one", None),
        ("a thread died of Empty: ", None),
        (None, None),
    ],
)
def test_what_oracle_and_runtime_say_of_the_protocol_counts(violation: str | None, killed_by: str | None) -> None:
    assert Found(7, 0.5, violation).killed_by == killed_by


@pytest.mark.parametrize("error", PYTHONS)
def test_python_s_own_errors_do_not_count_bare_or_in_an_error_of_the_runtime_s(error: str) -> None:
    text = trace(IN_RUNTIME, f"{error}: so it is\n")
    assert Found(7, 0.5, f"a driver stopped with {error}: so it is").killed_by is None
    assert Found(7, 0.5, f"thread waves of driver 1 died of {error}('so it is')", text).killed_by is None
    assert Found(7, 0.5, f"a history died of {error}: so it is", text).killed_by is None
    for wrapper in ("EngineStopped", "TopologyFailed", "TooManyAttempts"):
        assert Found(7, 0.5, stopped(wrapper, text)).killed_by is None
        assert Found(7, 0.5, stopped(wrapper, f"{error} in finish_batch of 'keyed': so it is")).killed_by is None


@pytest.mark.parametrize(
    ("error", "killed_by"),
    [
        ("stormline.topology.errors.UnknownAttempt: it asks for 8:2", "runtime's TopologyFailed"),
        ("kazoo.exceptions.NoNodeError", None),
        ("struct.error: 'i' format requires a number", None),
        ("greenlet.error: cannot switch to a different thread", None),
    ],
)
def test_a_wrapped_error_counts_where_it_is_one_of_stormline_s(error: str, killed_by: str | None) -> None:
    assert Found(7, 0.5, stopped("TopologyFailed", trace(IN_RUNTIME, f"{error}\n"))).killed_by == killed_by


@pytest.mark.parametrize("error", ["KeyError", "TypeError"])
def test_a_standstill_that_one_of_python_s_errors_was_logged_in_does_not_count(error: str) -> None:
    assert Found(7, 0.5, "liveness: 2 is committed", logged=(error,)).killed_by is None
    assert Found(7, 0.5, "a thread died of Deadlock: nothing is left", logged=(error,)).killed_by is None
    assert Found(7, 0.5, "law 1: 3 is recorded after 1", logged=(error,)).killed_by == "law check"


@pytest.mark.parametrize(
    ("frames", "killed_by"),
    [
        ((IN_RUNTIME,), "runtime's assertion"),
        ((IN_HARNESS, IN_RUNTIME), "runtime's assertion"),
        ((IN_HARNESS,), None),
        ((IN_RUNTIME, IN_HARNESS), None),
        ((IN_RUNTIME, IN_LIBRARY), None),
        ((), None),
    ],
)
def test_an_assertion_counts_where_the_runtime_makes_it(frames: tuple[str, ...], killed_by: str | None) -> None:
    text = trace(*frames, "AssertionError: (3, 1)\n")
    for violation in (
        "a driver stopped with AssertionError: (3, 1)",
        "a thread died of AssertionError: (3, 1)",
        "thread waves of driver 1 died of AssertionError((3, 1))",
        "a history died of AssertionError: ",
    ):
        assert Found(7, 0.5, violation, text).killed_by == killed_by
        assert Found(7, 0.5, violation).killed_by is None, "without a traceback nobody knows whose it is"
    for wrapper in ("EngineStopped", "TopologyFailed"):
        assert Found(7, 0.5, stopped(wrapper, text)).killed_by == killed_by


def test_a_hunt_that_ends_by_an_assertion_has_killed_nothing() -> None:
    text = trace(IN_RUNTIME, "AssertionError\n")
    assert Found(0, 0.0, "the hunt died of Exit 1: AssertionError", text).killed_by is None
    assert Found(0, 0.0, "a history died of KeyError: 3", text).killed_by is None


def test_the_last_assertion_of_a_chain_is_the_one_that_counts() -> None:
    runtime, harness = trace(IN_RUNTIME, "AssertionError\n"), trace(IN_HARNESS, "AssertionError\n")
    assert failed_in_runtime(harness + runtime)
    assert not failed_in_runtime(runtime + harness)
    assert not failed_in_runtime("")


def test_python_s_errors_are_named_once_and_those_with_a_name_of_their_own_are_not_among_them() -> None:
    assert python_errors("KeyError: 3\nTypeError('x') KeyError") == ("KeyError", "TypeError")
    assert python_errors("ConnectionError StormlineError kazoo.exceptions.NoNodeError FloatValueErrors") == ()
