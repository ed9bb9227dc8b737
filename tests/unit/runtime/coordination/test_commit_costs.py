"""Where a bolt that executes at the commit takes a good part of the time, that is said once, with the remedy."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

import pytest

from stormline import compile_topology
from stormline.runtime.cluster.in_process_cluster import InProcessCluster
from stormline.runtime.coordination import commit_costs
from stormline.runtime.coordination.commit_costs import ExecutingSecs
from stormline.runtime.world.world import REAL
from tests.kits.components import NO_FAULT, Fault, StoreAtCommit, line, numbers

PLAN = compile_topology(
    line("t", {}, 1, lambda b: b.set_bolt("store", StoreAtCommit("t"), 2).shuffle_grouping("spout"))
)


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def counting(clock: Clock) -> ExecutingSecs:
    return ExecutingSecs(replace(REAL, monotonic=clock.monotonic), PLAN)


def commits(counted: ExecutingSecs, clock: Clock, number: int, executing: float, apart: float) -> None:
    for _ in range(number):
        clock.now += apart
        counted.add({"store": executing})


def test_more_than_a_tenth_of_the_time_is_said_once(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    commits(counting(clock), clock, 50, executing=0.5, apart=1.0)  # by two tasks: 0.25 s of each second
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    said = record.getMessage()
    assert said.startswith(
        "topology t: bolt 'store' (StoreAtCommit) executes its tuples in the driver, at the commit: "
    )
    assert "gathers = ('counts',): then it executes on the executors, in parallel" in said


def test_less_than_a_tenth_or_a_short_run_is_not_worth_a_word(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    commits(counting(clock), clock, 50, executing=0.1, apart=1.0)
    commits(counting(clock), clock, 3, executing=0.5, apart=0.5)
    assert caplog.records == []


@pytest.mark.parametrize(
    ("fault", "said"), [(Fault("execute", txid=1, error="", sleep_secs=0.3), True), (NO_FAULT, False)]
)
def test_a_run_measures_it(
    fault: Fault, said: bool, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commit_costs, "SECS_MIN", 0.2)

    def declare(b: Any) -> None:
        b.set_bolt("store", StoreAtCommit("t", fault)).global_grouping("spout")

    with InProcessCluster() as cluster:
        cluster.submit_topology("t", {}, line("t", numbers(8), 2, declare)).await_drained(20)
    assert ("executes its tuples in the driver, at the commit" in caplog.text) is said
