"""Warnings of what grows old while it waits for its commit: Flink's case of 502 of 1000 and a ratio of 0.5."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from stormline import PreparedTransaction, compile_topology
from stormline.runtime.coordination.sink_ages import SinkAges
from stormline.runtime.messages.sink_handle import SinkHandle
from stormline.runtime.world.world import REAL
from stormline.topology.plan import Plan
from tests.kits.two_phase import ScriptedSink, sunk


class _Limited(ScriptedSink):
    prepared_limit_secs = 1000.0


def _plan(sink: Any) -> Plan:
    return compile_topology(sunk(sink))


@pytest.mark.parametrize(("age_secs", "warned"), [(498.0, False), (502.0, True), (None, False)])
def test_half_of_the_limit_is_warned_of_as_the_resource_lists_it(
    age_secs: float | None, warned: bool, caplog: pytest.LogCaptureFixture
) -> None:
    ages = SinkAges(REAL, _plan(_Limited("old")))
    listed = [PreparedTransaction("a", "a", age_secs), PreparedTransaction("not ours to commit", "b", 900.0)]
    ages.warn("sink", listed, {"a"})
    text = (
        "1 transactions of bolt 'sink' wait for their commit since up to 502 s, the oldest is a: after 1000 s the "
        "resource drops them, and their rows are lost"
    )
    assert (text in caplog.text) is warned
    assert bool(caplog.text) is warned


def test_where_the_resource_does_not_list_the_time_since_they_were_fixed_counts(
    caplog: pytest.LogCaptureFixture,
) -> None:
    now = [0.0]
    ages = SinkAges(replace(REAL, monotonic=lambda: now[0]), _plan(_Limited("old")))
    ages.fixed([SinkHandle("sink", "a", "a"), SinkHandle("sink", "b", "b")])
    now[0] = 498.0
    ages.warn("sink", None, {"a", "b"})
    assert caplog.text == ""
    now[0] = 502.0
    ages.warn("sink", None, {"a"})
    assert "1 transactions of bolt 'sink'" in caplog.text


def test_a_resource_without_a_limit_is_never_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    ages = SinkAges(REAL, _plan(ScriptedSink("old")))
    ages.fixed([SinkHandle("sink", "a", "a")])
    ages.warn("sink", [PreparedTransaction("a", "a", 1e9)], {"a"})
    assert caplog.text == ""
