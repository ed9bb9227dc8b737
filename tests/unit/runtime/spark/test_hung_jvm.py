"""Spark's JVM, where it answers, has ended, or hangs."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from stormline.runtime.spark.hung_jvm import answers, end_if_hung

SECS = 0.05


def gateway(ask: Any, process: Any = None) -> Any:
    jvm = SimpleNamespace(System=SimpleNamespace(currentTimeMillis=ask))
    return SimpleNamespace(jvm=jvm, proc=process) if process is not None else SimpleNamespace(jvm=jvm)


def refuse() -> int:
    raise ConnectionRefusedError(111, "Connection refused")


@pytest.mark.parametrize("ask", [lambda: 1, refuse])
def test_a_jvm_that_answers_or_has_ended_is_left_alone(ask: Any) -> None:
    assert answers(gateway(ask), 10)
    assert end_if_hung(gateway(ask), 10)
    assert end_if_hung(None)


def test_a_jvm_that_hangs_is_killed_where_this_process_started_it(caplog: pytest.LogCaptureFixture) -> None:
    hangs = threading.Event()
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]) as process:
        assert end_if_hung(gateway(hangs.wait, process), SECS)
        assert process.poll() == -signal.SIGKILL
    hangs.set()
    assert f"Spark's JVM (process {process.pid}) has not answered for 0.05 s: it hung, and was killed so" in caplog.text


def test_a_jvm_that_hangs_and_belongs_to_somebody_else_is_told_of(caplog: pytest.LogCaptureFixture) -> None:
    hangs = threading.Event()
    assert not end_if_hung(gateway(hangs.wait), SECS)
    hangs.set()
    assert "Spark's JVM has not answered for 0.05 s: it hangs, and is left to whoever started it" in caplog.text
