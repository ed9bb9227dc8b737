"""What sinks promise that need not be exact, and handles that cannot be stored."""

from __future__ import annotations

from typing import Any

import pytest

from stormline import InProcessCluster, Semantic
from stormline.runtime.errors import StateTooLarge, TopologyFailed
from stormline.state import MemoryTwoPhaseSink
from tests.kits.two_phase import ScriptedSink, fresh, run_sunk, sunk

ALL = [(n,) for n in range(20)]
CONFIG = {"topology.max.spout.pending": 3}


@pytest.mark.parametrize("semantic", [Semantic.AT_LEAST_ONCE, Semantic.NONE])
def test_what_need_not_be_exact_is_committed_while_the_batch_is_processed(semantic: Semantic) -> None:
    """No handle travels, and nothing is decided."""
    sink = fresh("at once")
    server = run_sunk(sunk(sink, semantic=semantic))
    assert sorted(sink.rows) == ALL
    assert sink.prepared == []
    stored = server.topologies["t"].nodes
    assert not any(b"handles" in bytes(node) for node in stored.values() if isinstance(node, bytes))


def test_at_least_once_writes_again_what_failed_afterwards() -> None:
    sink = fresh("again")
    sink.script.fail("commit", 2, after=True)
    run_sunk(sunk(sink, tasks=1, semantic=Semantic.AT_LEAST_ONCE))
    assert set(sink.rows) == set(ALL)
    assert len(sink.rows) > len(ALL), "the second batch is there twice"


@pytest.mark.parametrize("call", ["begin", "invoke", "pre_commit", "commit"])
def test_with_none_what_fails_is_logged_and_the_batch_goes_on(call: str, caplog: pytest.LogCaptureFixture) -> None:
    sink = fresh("careless")
    sink.script.fail(call, 2)
    run_sunk(sunk(sink, tasks=1, semantic=Semantic.NONE))
    assert set(sink.rows) < set(ALL)
    assert len(sink.rows) == len(ALL) - 4
    assert "bolt 'sink' writes nothing more of t_" in caplog.text


def test_handles_that_fit_no_znode_stop_the_topology_and_say_what_to_do() -> None:
    class Chatty(MemoryTwoPhaseSink):
        def pre_commit(self, transaction: Any) -> Any:
            return super().pre_commit(transaction) + "x" * 1_100_000

    sink = Chatty("chatty")
    sink.clear()
    with InProcessCluster() as cluster:
        handle = cluster.submit_topology("t", CONFIG, sunk(sink, tasks=1))
        message = (
            r"it holds the 1 handles of the two-phase sinks of \['sink'\], all of which must fit into one znode: let "
            r"pre_commit\(\) return less, such as the name of the transaction, or give the bolts fewer tasks"
        )
        with pytest.raises(StateTooLarge, match=message):
            handle.await_drained(60)


def test_a_handle_that_cannot_be_stored_stops_the_topology_and_is_aborted() -> None:
    class Objects(ScriptedSink):
        def pre_commit(self, transaction: Any) -> Any:
            super().pre_commit(transaction)
            return [object()]

        def abort(self, handle: Any) -> None:
            self.script.trail.append(("abort", 0))

    fresh("objects")
    sink = Objects("objects")
    with InProcessCluster() as cluster:
        handle = cluster.submit_topology("t", CONFIG, sunk(sink, tasks=1))
        message = (
            r"pre_commit\(\) of the sink of bolt 'sink' \(Objects\) returned a list that cannot be stored: .*; return "
            r"plain data, such as the label's text"
        )
        with pytest.raises(TopologyFailed, match=message):
            handle.await_drained(60)
    assert ("abort", 0) in sink.script.trail
