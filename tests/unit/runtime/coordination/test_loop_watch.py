"""A loop that hangs is told of: where, once in a while, and only then."""

from __future__ import annotations

import re
import threading
import time
from typing import Any

import pytest

from stormline import TransactionalTopologyBuilder
from stormline.runtime.cluster.in_process_cluster import InProcessCluster
from stormline.runtime.coordination import loop_watch
from tests.kits.components import Store, eventually
from tests.kits.spouts import PlainSpout, Ranges

TOLD = "for its spout's coordinator; until it answers, no new batch begins"
IN_ONE_CALL = "in one call; until that returns, nothing begins but commits that were ready before"


LET_GO = threading.Event()


class Held(PlainSpout):
    """Its coordinator does not answer the second question until it is let go."""

    def get_coordinator(self, conf: Any, context: Any) -> Any:
        coordinator = super().get_coordinator(conf, context)
        is_ready = coordinator.is_ready

        def answer_that_is_waited_for() -> bool:
            if coordinator.asked == 1:
                LET_GO.wait()
            return bool(is_ready())

        coordinator.is_ready = answer_that_is_waited_for
        return coordinator


def watch(monkeypatch: pytest.MonkeyPatch, hangs_secs: float) -> None:
    monkeypatch.setattr(loop_watch, "LOOK_SECS", 0.01)
    monkeypatch.setattr(loop_watch, "HANGS_SECS", hangs_secs)


def test_a_coordinator_that_does_not_answer_is_told_of_and_all_goes_on(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch(monkeypatch, 0.2)
    LET_GO.clear()
    builder = TransactionalTopologyBuilder("held", "spout", Held(Ranges("held", batches=4)))
    builder.set_bolt("store", Store("held")).global_grouping("spout")
    with InProcessCluster() as cluster:
        handle = cluster.submit_topology("held", {}, builder.build_topology())
        eventually(lambda: caplog.text.count(TOLD) >= 2)
        assert "topology 'held' has waited for " in caplog.text
        assert re.search(r"It is asked is_ready of spout 'spout', for transaction \d+, and is at\n", caplog.text)
        assert "in answer_that_is_waited_for" in caplog.text
        assert handle.running
        LET_GO.set()
        assert handle.await_drained(30) == 4
    assert caplog.text.count(TOLD) < 8, "each warning comes after twice as long as the one before it"


def test_a_loop_that_hangs_is_told_of(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    watch(monkeypatch, 0.2)
    LET_GO.clear()

    def hangs(snapshot: Any) -> None:
        LET_GO.wait()

    builder = TransactionalTopologyBuilder("loop", "spout", PlainSpout(Ranges("loop", batches=2)))
    builder.set_bolt("store", Store("loop")).global_grouping("spout")
    with InProcessCluster() as cluster:
        handle = cluster.submit_topology("loop", {}, builder.build_topology(), on_wave=hangs)
        eventually(lambda: IN_ONE_CALL in caplog.text)
        assert "in hangs" in caplog.text
        LET_GO.set()
        assert handle.await_drained(30) == 2


def test_a_topology_that_waits_for_its_source_is_not_told_of(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch(monkeypatch, 1.0)
    builder = TransactionalTopologyBuilder("idle", "spout", PlainSpout(Ranges("idle", batches=2)))
    builder.set_bolt("store", Store("idle")).global_grouping("spout")
    with InProcessCluster() as cluster:
        handle = cluster.submit_topology("idle", {}, builder.build_topology())
        handle.await_drained(30)
        time.sleep(1.5)
        assert handle.running
    assert TOLD not in caplog.text
    assert IN_ONE_CALL not in caplog.text
    eventually(lambda: "stormline-idle-watch" not in {thread.name for thread in threading.enumerate()})
