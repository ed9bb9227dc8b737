"""What topologies make of two-phase sinks that fail, forget and list, and of drivers that die: rules R1 to R8.

The rules are those of docs/two_phase_commit.md. Law 1 (order).
"""

from __future__ import annotations

import re
import threading
from dataclasses import replace
from queue import Queue
from typing import Any

import pytest

from stormline import (
    CommitOutcome,
    InProcessCluster,
    TransactionLabel,
    TwoPhaseCommitBolt,
)
from stormline.runtime.cluster.topology_handle import TopologyHandle
from stormline.runtime.coordination.batch_store import Batches
from stormline.runtime.errors import Fenced, TopologyFailed
from stormline.runtime.state.memory_store import MemoryStateServer
from tests.kits.components import LEDGERS, Fault, Store, eventually
from tests.kits.two_phase import ALL, SWEPT, dies, dies_with_undecided, fresh, run_sunk, settled, sunk, txid_of


@pytest.mark.parametrize("opaque", [False, True])
@pytest.mark.parametrize("tasks", [1, 3])
def test_each_row_becomes_visible_once_in_order(opaque: bool, tasks: int) -> None:
    sink = fresh("plain")
    run_sunk(sunk(sink, tasks=tasks, opaque=opaque))
    settled(sink)
    assert sink.aborted == []
    assert sink.script.asked("commit") == sorted(sink.script.asked("commit"))


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("call", ["begin", "invoke", "pre_commit"])
def test_what_fails_before_the_decision_is_written_again_and_what_is_left_is_aborted(call: str, after: bool) -> None:
    """R6: also where nobody heard that it had been pre-committed."""
    sink = fresh("fails")
    sink.script.fail(call, 2, after)
    run_sunk(sunk(sink))
    settled(sink)
    if call == "pre_commit" and after:
        assert 2 in map(txid_of, sink.aborted)


@pytest.mark.parametrize("after", [False, True])
def test_a_commit_that_gets_no_answer_is_asked_again_and_nothing_is_written_again(after: bool) -> None:
    """R3."""
    sink = fresh("unanswered")
    sink.script.fail("commit", 2, after, times=2)
    run_sunk(sunk(sink, tasks=1))
    settled(sink)
    assert sink.script.asked("commit").count(2) == 3
    assert sink.script.asked("pre_commit").count(2) == 1


def test_retry_means_the_same_as_a_failed_commit() -> None:
    sink = fresh("retry")
    sink.script.on("commit", 1, lambda: CommitOutcome.RETRY)
    run_sunk(sunk(sink, tasks=1))
    settled(sink)
    assert sink.script.asked("commit").count(1) == 2


def test_where_a_committer_fails_the_handles_are_used_again_and_the_rows_are_not_written_twice() -> None:
    """R3: a plain committer in the same topology forces a replay after the decision; later batches are written anew."""
    sink = fresh("beside")
    LEDGERS.pop("beside", None)

    def beside(builder: Any) -> None:
        builder.set_bolt("store", Store("beside", Fault("after", 2, attempts=2))).global_grouping("spout")

    run_sunk(sunk(sink, tasks=1, beside=beside))
    settled(sink)
    assert sorted(LEDGERS["beside"].all()) == list(range(20))
    assert [attempt.transaction_id for attempt in LEDGERS["beside"].finished].count(2) == 3, "two of them failed"
    assert sink.script.asked("pre_commit").count(2) == 1, "a decided batch is not written again"
    assert 2 not in map(txid_of, sink.aborted)


def test_the_handles_of_a_failed_batch_and_of_all_later_ones_are_aborted_before_they_are_emitted_again() -> None:
    """R6."""
    sink = fresh("later")

    class FailsOnceTheNextIsThere(Store):
        """The commit of the first fails when the second has been pre-committed."""

        def finish_batch(self) -> None:
            if self.attempt.attempt_id == 1 and self.attempt.transaction_id == 1:
                eventually(lambda: 2 in sink.script.asked("pre_commit"))
            super().finish_batch()

    def beside(builder: Any) -> None:
        store = FailsOnceTheNextIsThere("later", Fault("after", 1, attempts=1))
        builder.set_bolt("store", store).global_grouping("spout")

    LEDGERS.pop("later", None)
    run_sunk(sunk(sink, tasks=1, beside=beside))
    settled(sink)
    again = [i for i, asked in enumerate(sink.script.trail) if asked == ("begin", 2)]
    assert len(again) == 2
    assert ("abort", 2) in sink.script.trail[again[0] : again[1]]


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("opaque", [False, True])
def test_a_driver_that_dies_in_a_commit_leaves_the_rest_to_the_next_one(after: bool, opaque: bool) -> None:
    """R4 and R5: what was decided is committed first, what is older and undecided is aborted."""
    sink, server = fresh("dies"), MemoryStateServer()
    sink.script.on("commit", 2, lambda: server.vanish("t"), after)
    topology = sunk(sink, opaque=opaque)
    dies(server, topology)
    assert sorted(set(map(txid_of, sink.committed)))[0] == 1
    run_sunk(topology, server)
    settled(sink)
    assert 2 not in map(txid_of, sink.aborted), "it was decided"
    assert sink.script.asked("recover")[0] == 2


def test_what_a_driver_left_undecided_is_swept_before_anything_is_written() -> None:
    """R5: also of transactions on no record at all."""
    sink, server = fresh("sweeps"), MemoryStateServer()
    topology = sunk(sink, tasks=1)
    sink.script.on("pre_commit", 1, lambda: server.vanish("t"), after=True)
    dies(server, topology)
    assert sink.prepared
    begun = len(sink.script.trail)
    run_sunk(topology, server)
    settled(sink)
    trail = sink.script.trail[begun:]
    assert trail.index(("abort", 1)) < trail.index(("begin", 1))


def test_what_a_driver_cannot_withdraw_it_does_not_abort(monkeypatch: pytest.MonkeyPatch) -> None:
    """R6: a record names it as long as that write has not come through."""
    sink, server = fresh("names"), MemoryStateServer()
    topology = sunk(sink, tasks=1)

    def fails(*_: Any) -> None:
        raise Fenced("on order")

    undecided = set(dies_with_undecided(server, topology, sink, sink))
    with monkeypatch.context() as patched:
        patched.setattr(Batches, "fix", fails)
        dies(server, topology)
    assert undecided
    assert undecided.isdisjoint(sink.aborted)
    run_sunk(topology, server)
    settled(sink)
    assert undecided <= set(sink.aborted)


def test_what_a_zombie_pre_commits_late_is_swept() -> None:
    """R5: the sweep repeats."""
    sink, server = fresh("zombie"), MemoryStateServer()
    topology = sunk(sink, tasks=1)
    sink.script.on("pre_commit", 1, lambda: server.vanish("t"), after=True)
    dies(server, topology)
    (late,) = [label for label in sink.prepared if txid_of(label) == 1]
    rows: dict[int, Any] = {0: [[n] for n in range(0, 20, 2)], 1: [[n] for n in range(1, 20, 2)]}
    with InProcessCluster(server) as cluster:
        handle = cluster.submit_topology("t", SWEPT, sunk(sink, tasks=1, partitions=rows))
        handle.await_drained(60)
        assert sink.prepared == []
        sink._memory.prepared[late] = [("a zombie's",)]
        eventually(lambda: sink.prepared == [])
    settled(sink)


def test_what_another_execution_has_pre_committed_does_not_outlive_the_topology() -> None:
    """R5: Spark has run a task again, whose worker had died, and told nobody; the next sweep would be long after."""
    sink, server = fresh("outlives"), MemoryStateServer()
    with InProcessCluster(server) as cluster:
        config = {**SWEPT, "topology.sink.sweep.secs": 600}
        cluster.submit_topology("t", config, sunk(sink, tasks=1)).await_drained(60)
        counted = TransactionLabel.read(sink.committed[-1])
        assert counted is not None
        died = replace(counted, execution=counted.execution ^ 1).text
        sink._memory.prepared[died] = [("a dead worker's",)]
    settled(sink)
    assert sink.aborted == [died]


@pytest.mark.parametrize("stops", ["killed", "failed"])
def test_what_is_at_work_when_a_topology_ends_is_aborted(stops: str, caplog: pytest.LogCaptureFixture) -> None:
    """R5: no record names it, and nobody may start the topology for long."""
    caplog.set_level("INFO", "stormline")
    sink, server, handles = fresh("at work"), MemoryStateServer(), Queue[TopologyHandle]()

    def ends() -> None:
        if stops == "failed":
            raise ZeroDivisionError("on order")
        handles.get(timeout=60).kill()  # asks for it only, in this thread
        eventually(lambda: "ends at committed transaction 0" in caplog.text)

    sink.script.on("pre_commit", 1, ends, after=True)
    topology = sunk(sink, tasks=1)
    with InProcessCluster(server) as cluster:
        handle = cluster.submit_topology("t", {**SWEPT, "topology.sink.sweep.secs": 600}, topology)
        handles.put(handle)
        eventually(lambda: not handle.running)
    assert 1 in sink.script.asked("pre_commit")
    assert (sink.prepared, sink.committed) == ([], [])
    run_sunk(topology, server)
    settled(sink)


def test_a_sink_that_cannot_list_is_left_what_nobody_reported() -> None:
    """It says so: the resource drops it by itself. What was reported is aborted all the same."""
    sink, server = fresh("mute"), MemoryStateServer()
    sink.script.lists = False
    topology = sunk(sink, tasks=1)
    sink.script.on("pre_commit", 1, lambda: server.vanish("t"), after=True)
    dies(server, topology)
    left = sink.prepared
    run_sunk(topology, server)
    assert sorted(sink.rows) == ALL
    assert set(sink.prepared) <= set(left)


def test_an_aborter_touches_nothing_of_a_newer_driver() -> None:
    """R8: its state was set back, or it is a zombie."""
    sink = fresh("newer")
    run_sunk(sunk(sink, tasks=1))
    newer = sink.committed[0].replace("-1-1-", "-1-9-", 1)
    assert newer != sink.committed[0]
    sink._memory.prepared[newer] = [("newer",)]
    foreign = "someone's own"
    sink._memory.prepared[foreign] = []
    sink.script.trail.clear()
    more: dict[int, Any] = {0: [[n] for n in range(0, 24, 2)], 1: [[n] for n in range(1, 24, 2)]}
    server = MemoryStateServer()
    run_sunk(sunk(sink, tasks=1, partitions=more), server)
    assert set(sink.prepared) == {newer, foreign}


def test_lost_halts_and_says_what_is_known_and_so_does_the_next_driver() -> None:
    """R7: nothing later is committed, and nothing is written again."""
    sink, server = fresh("lost"), MemoryStateServer()
    topology = sunk(sink, tasks=2)
    sink.script.on("commit", 3, lambda: CommitOutcome.LOST, times=99)
    for _ in range(2):
        with InProcessCluster(server) as cluster:
            handle = cluster.submit_topology("t", SWEPT, topology)
            with pytest.raises(TopologyFailed) as stopped:
                handle.await_drained(60)
        message = str(stopped.value)
        assert "the sink of bolt 'sink' has lost transaction t_" in message
        assert "had been pre-committed and decided: its rows are missing" in message
        assert "Of the same batch are committed: none; not tried since: ['t_" in message
        assert (
            "write its rows by hand, and let the topology go on without it, by topology.sink.settled = ['t_" in message
        )
        assert max(map(txid_of, sink.committed)) == 2
        assert sink.script.asked("pre_commit").count(3) <= 2, "once in each of two tasks"


def test_what_a_person_has_settled_is_gone_on_without(caplog: pytest.LogCaptureFixture) -> None:
    sink, server = fresh("settled"), MemoryStateServer()
    topology = sunk(sink, tasks=1)
    sink.script.on("commit", 3, lambda: CommitOutcome.LOST, times=99)
    with InProcessCluster(server) as cluster:
        handle = cluster.submit_topology("t", SWEPT, topology)
        with pytest.raises(TopologyFailed, match="has lost transaction"):
            handle.await_drained(60)
    (label,) = [label for label in sink.prepared if txid_of(label) == 3]
    run_sunk(topology, server, {"topology.sink.settled": [label]})
    assert len(sink.rows) == len(ALL) - 4
    assert f"{label} of bolt 'sink' is lost, and settled by hand: it is gone on without" in caplog.text


def test_any_other_exception_of_a_commit_stops_the_topology_and_all_is_resumable() -> None:
    """Law 10 (stop or replay)."""
    sink, server = fresh("bug"), MemoryStateServer()
    topology = sunk(sink, tasks=1)
    sink.script.on("commit", 2, lambda: 1 // 0)
    with InProcessCluster(server) as cluster:
        handle = cluster.submit_topology("t", SWEPT, topology)
        with pytest.raises(TopologyFailed, match="ZeroDivisionError in commit of 'sink'"):
            handle.await_drained(60)
    run_sunk(topology, server)
    settled(sink)
    assert sink.script.asked("pre_commit").count(2) == 1


def test_a_wave_that_waits_for_a_sink_in_the_driver_says_so(caplog: pytest.LogCaptureFixture) -> None:
    """Not that an executor takes long, where nobody would find anything."""
    sink, goes_on = fresh("hangs"), threading.Event()

    def hangs() -> None:
        assert goes_on.wait(60)

    sink.script.on("list", None, hangs)
    with InProcessCluster() as cluster:
        handle = cluster.submit_topology("t", {**SWEPT, "topology.message.timeout.secs": 1}, sunk(sink))
        eventually(lambda: "was not processed within" in caplog.text)
        goes_on.set()
        handle.await_drained(60)
    told = r"it is in a call of the sink of bolt 'sink' in the driver, for [0-9.]+ s, at .*two_phase.py:[0-9]+ in list"
    assert re.search(told, caplog.text), caplog.text
    settled(sink)


def test_an_empty_batch_prepares_nothing() -> None:
    """Of two tasks only one gets a row; a global grouping leaves the other none in any batch."""
    sink = fresh("empty")
    run_sunk(sunk(sink, rows=4, tasks=8))
    assert sorted(sink.rows) == ALL[:4]
    assert len(sink.committed) == 4, "four rows, four tasks of eight"
    assert sink.script.asked("begin") == [1] * 4


def test_a_stop_does_not_wait_for_a_sink_that_cannot_commit_and_the_next_run_commits() -> None:
    sink, server = fresh("stops"), MemoryStateServer()
    topology = sunk(sink, tasks=1)
    sink.script.fail("commit", 2, times=1000)
    with InProcessCluster(server) as cluster:
        handle = cluster.submit_topology("t", SWEPT, topology)
        eventually(lambda: sink.script.asked("commit").count(2) > 1)
        assert handle.txid_committed == 1
    assert handle.error is None
    sink.script.orders.clear()
    run_sunk(topology, server)
    settled(sink)
    assert sink.script.asked("pre_commit").count(2) == 1


def test_a_commit_that_waits_for_its_sink_outlives_the_time_out() -> None:
    """To replay it would help nobody: only its commit is possible."""
    sink = fresh("patient")
    sink.script.fail("commit", 2, times=4)
    run_sunk(sunk(sink, tasks=1), config={"topology.message.timeout.secs": 0.5})
    settled(sink)
    assert sink.script.asked("pre_commit").count(2) == 1


def test_several_sinks_and_a_committer_commit_each_transaction_together() -> None:
    first, second = fresh("first"), fresh("second")
    LEDGERS.pop("together", None)

    def beside(builder: Any) -> None:
        builder.set_bolt("second", TwoPhaseCommitBolt(second), 2).shuffle_grouping("spout")
        builder.set_bolt("store", Store("together")).global_grouping("spout")

    first.script.fail("commit", 2, after=True)
    second.script.fail("pre_commit", 3, after=True)
    run_sunk(sunk(first, beside=beside))
    settled(first)
    settled(second)
    assert sorted(LEDGERS["together"].all()) == list(range(20))
