"""The real clock: time that was slept through counts, where the machine can tell."""

from __future__ import annotations

import threading
import time

import pytest

from stormline.runtime.world import clock


def test_passed_secs_goes_on() -> None:
    before = clock.passed_secs()
    assert not threading.Event().wait(0.02)
    assert 0.02 <= clock.passed_secs() - before < 20


def test_where_there_is_no_such_clock_it_is_the_monotonic_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "_BOOTTIME", None)
    assert abs(clock.passed_secs() - time.monotonic()) < 20
