"""What user code says reaches logs and terminals bounded, and without what a terminal obeys."""

from __future__ import annotations

import logging
import pickle
import threading
from typing import Any

import pytest

from stormline import BaseBatchBolt, ReportedFailedException
from stormline.cli.errors import error_text
from stormline.runtime.cluster.in_process_cluster import InProcessCluster
from stormline.runtime.coordination import stop_reasons
from stormline.runtime.coordination.stop_reasons import fatal_error
from stormline.runtime.errors import TopologyFailed
from stormline.runtime.messages.wave import Failure
from stormline.runtime.tasks.user_code import PACKED_BYTES_MAX, failure_of, packed_exception
from stormline.runtime.world.world import REAL
from stormline.topology.texts import TEXT_MAX, bounded, printable, told
from tests.kits.components import line
from tests.unit.runtime.tasks.test_collector import Caught, collector

EVIL = "\x1b]0;owned\x07\x1b[2J\x9b31m\rok\x08\u202etxt\udcff\x00"
ESCAPES = set(EVIL) - set("]0;owned[2J31mokt\ntx")


def test_what_a_terminal_obeys_is_shown_as_its_escape() -> None:
    assert printable("a\tb\nc é 漢 😀") == "a\tb\nc é 漢 😀"
    assert printable(EVIL) == (r"\x1b]0;owned\x07\x1b[2J\x9b31m\rok\x08\u202etxt\udcff\x00")
    assert not ESCAPES & set(error_text(EVIL))


def test_a_long_text_is_its_head_its_tail_and_how_much_was_left_out() -> None:
    assert bounded("x" * TEXT_MAX) == "x" * TEXT_MAX
    text = "a" * 40 + "b" * 1000 + "c" * 40
    assert bounded(text, 80) == "a" * 40 + "\n… 1,000 characters left out …\n" + "c" * 40
    assert len(told("\x1b" * 30_000_000)) < 5 * TEXT_MAX


class Raises(BaseBatchBolt):
    """Raises what it is told to."""

    def __init__(self, error: str) -> None:
        self.error = error

    def prepare(self, conf: Any, context: Any, collector: Any, batch_id: Any) -> None: ...
    def execute(self, tup: Any) -> None: ...

    def finish_batch(self) -> None:
        raise ERRORS[self.error]()


class ExitsWhenUnpickled(Exception):
    def __reduce__(self) -> Any:
        return _exits, ()


def _exits() -> None:
    raise SystemExit(0)


class InterruptsWhenUnpickled(Exception):
    def __reduce__(self) -> Any:
        return _interrupts, ()


def _interrupts() -> None:
    raise KeyboardInterrupt


class ExitsWhenPickled(Exception):
    def __reduce__(self) -> Any:
        raise SystemExit(0)


class ExitsWhenShown(Exception):
    def __str__(self) -> str:
        raise SystemExit(0)


ERRORS: dict[str, Any] = {
    "long": lambda: ValueError("x" * 30_000_000),
    "escapes": lambda: ValueError(EVIL),
    "exits when unpickled": ExitsWhenUnpickled,
    "interrupts when unpickled": InterruptsWhenUnpickled,
    "exits when pickled": ExitsWhenPickled,
    "exits when shown": ExitsWhenShown,
}


@pytest.mark.parametrize("error", ERRORS)
def test_whatever_an_exception_does_the_topology_fails_with_a_text_that_can_be_shown(error: str) -> None:
    topology = line("t", {0: ["go"]}, 1, lambda b: b.set_bolt("raises", Raises(error)).global_grouping("spout"))
    with pytest.raises(TopologyFailed) as failed, InProcessCluster() as cluster:
        cluster.submit_topology("t", {}, topology).await_drained(60)
    text = str(failed.value)
    assert f"{type(ERRORS[error]()).__name__} in finish_batch of 'raises'" in text
    assert len(text) < 10 * TEXT_MAX
    assert not ESCAPES & set(text)


def test_an_exception_that_unpickles_to_an_exit_here_and_not_there_is_left_out() -> None:
    packed = pickle.dumps(ExitsWhenUnpickled())
    assert packed_exception(ExitsWhenUnpickled()) is None
    error = fatal_error(REAL, "t", None, Failure("b", 1, "it failed", fatal=True, exception=packed))
    assert error.__cause__ is None
    assert "topology 't' stopped: it failed" in str(error)


GATE = threading.Event()


class HangsWhenUnpickled(Exception):
    def __reduce__(self) -> Any:
        return _hangs, ()


def _hangs() -> Exception:
    GATE.wait(60)
    return ValueError("late")


def test_an_exception_that_hangs_when_it_is_unpickled_does_not_keep_a_topology_from_ending(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(stop_reasons, "UNPACK_SECS", 0.01)
    packed = pickle.dumps(HangsWhenUnpickled())
    assert fatal_error(REAL, "t", None, Failure("b", 1, "it failed", fatal=True, exception=packed)).__cause__ is None
    GATE.set()


def test_a_large_exception_does_not_travel_and_a_small_one_does() -> None:
    assert packed_exception(ValueError("x" * PACKED_BYTES_MAX)) is None
    packed = packed_exception(ValueError("small"))
    assert packed is not None
    cause = fatal_error(REAL, "t", None, Failure("b", 1, "it failed", fatal=True, exception=packed)).__cause__
    assert repr(cause) == "ValueError('small')"


def test_what_user_code_reports_is_logged_bounded_and_printable(caplog: pytest.LogCaptureFixture) -> None:
    collector(Caught()).report_error(ValueError(EVIL + "x" * 10**6))
    with caplog.at_level(logging.WARNING):
        failure_of(ReportedFailedException(EVIL + "x" * 10**6), "b", 1, "execute")
    assert [record.levelname for record in caplog.records] == ["ERROR", "WARNING"]
    for record in caplog.records:
        assert "left out" in record.getMessage()
        assert not ESCAPES & set(record.getMessage())
        assert record.exc_info is None
