"""WaveThread: a Spark that hangs does not hold up whoever cancels a wave, or ends the topology."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from stormline.runtime.coordination import wave_thread
from stormline.runtime.coordination.wave_thread import WaveThread
from stormline.runtime.messages.wave import Wave, WaveAttempt
from stormline.runtime.world.world import REAL
from stormline.topology.attempt import TransactionAttempt
from tests.kits.components import eventually

WAVE = Wave(7, (WaveAttempt(TransactionAttempt(1, 1), None),))


class Hanging:
    """An engine whose calls wait for `answered`."""

    def __init__(self) -> None:
        self.answered = threading.Event()
        self.cancels = 0

    def process(self, wave: Wave) -> Any:
        self.answered.wait()

    def cancel(self) -> None:
        self.cancels += 1
        self.answered.wait()


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hanging]:
    monkeypatch.setattr(wave_thread, "CANCEL_SECS", 0.05)
    monkeypatch.setattr(wave_thread, "FINISH_SECS", 0.05)
    made = Hanging()
    yield made
    made.answered.set()


def test_a_cancel_that_does_not_return_is_told_of_and_waited_for_no_longer(
    engine: Hanging, caplog: pytest.LogCaptureFixture
) -> None:
    untyped: Any = engine
    ended: list[object] = []
    waves = WaveThread(REAL, untyped, ended.append, timeout_secs=None)
    waves.start(WAVE)
    waves.cancel()
    waves.cancel()
    assert engine.cancels == 1
    assert waves.hangs
    assert caplog.messages == [
        "cancelling wave 7, txid 1 has not returned for 0.05 s: Spark hangs. The topology can be stopped; unless Spark "
        "comes back no wave ends"
    ]
    waves.close(wait_secs=600)  # returns at once
    engine.answered.set()
    eventually(lambda: ended and not waves.hangs)
