"""Sinks as people write them: what they list, and what they say of a commit."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from stormline import FailedException, InProcessCluster, PreparedTransaction, Semantic, TransactionLabel
from stormline.runtime.errors import TopologyFailed, WrongAnswer
from stormline.runtime.tasks.driver_sinks import DriverSinks
from stormline.runtime.tasks.sink_answers import checked_listing
from stormline.runtime.tasks.task_environment import TaskEnvironment
from stormline.state import MemoryTwoPhaseSink
from stormline.topology.compiler import compile_topology
from stormline.topology.transaction_label import label_scope
from tests.kits.components import eventually
from tests.kits.two_phase import fresh, run_sunk, sunk

LABEL = TransactionLabel(label_scope("t", "sink"), 1, 1, 1, 1, 1).text


class ListsAnything(MemoryTwoPhaseSink):
    """Lists what it is told to, whatever it is asked for."""

    listed: Any = ()

    def list_prepared(self, prefix: str) -> Iterable[PreparedTransaction]:
        yield from self.listed


def sinks_of(listed: Any) -> DriverSinks:
    """Return the driver's sinks of topology "t", of which one lists this."""
    sink = ListsAnything("anything")
    sink.listed = listed
    return TaskEnvironment(compile_topology(sunk(sink)), 1).sinks


@pytest.mark.parametrize(
    "listed",
    [LABEL, {"label": LABEL}, PreparedTransaction(None, LABEL), PreparedTransaction(LABEL, LABEL, "old")],  # type: ignore[arg-type]
)
def test_what_is_listed_and_is_no_transaction_is_told(listed: object) -> None:
    message = (
        r"list_prepared\(\) of the sink of bolt 'sink' gave .*, expected a PreparedTransaction\(label, handle, "
        r"age_secs\): the text of the label under which it was begun"
    )
    with pytest.raises(WrongAnswer, match=message):
        checked_listing(listed, "sink")
    sinks = sinks_of([listed])
    with pytest.raises(WrongAnswer, match=message):
        sinks.listed("sink")


def test_a_sweep_tells_of_a_wrong_listing_and_the_rows_are_written_all_the_same(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Whoever sweeps goes on, too."""
    sink = fresh("listing")
    sink.script.on("list", None, lambda: [LABEL], times=2)
    with InProcessCluster() as cluster:
        handle = cluster.submit_topology("t", {"topology.sink.sweep.secs": 0.05}, sunk(sink))
        handle.await_drained(60)
        eventually(lambda: sink.script.asked("list").count(0) > 2)
    assert sorted(sink.rows) == [(n,) for n in range(20)]
    assert "list_prepared() of the sink of bolt 'sink' gave 't_" in caplog.text


def test_only_what_belongs_to_the_bolt_is_its_business_whatever_its_sink_lists() -> None:
    """Else an operator could abort what another topology has pre-committed in the same resource."""
    others = [TransactionLabel(label_scope(*of), 1, 1, 1, 1, 1).text for of in (("t2", "sink"), ("t", "sink2"))]
    own = PreparedTransaction(LABEL, LABEL, 1.5)
    listed = [PreparedTransaction(label, label) for label in (*others, "somebody's", f"{LABEL}-1")]
    assert sinks_of([*listed, own]).listed("sink") == [own]


@pytest.mark.parametrize("semantic", [Semantic.EXACTLY_ONCE, Semantic.AT_LEAST_ONCE])
def test_an_outcome_that_is_none_stops_the_topology(semantic: Semantic) -> None:
    """A replay would say the same."""
    sink = fresh("none")
    sink.script.on("commit", 1, lambda: "yes", times=1000)
    message = r"commit\(\) of the sink of bolt 'sink' returned 'yes', expected a CommitOutcome"
    with pytest.raises(TopologyFailed, match=message):
        run_sunk(sunk(sink, tasks=1, semantic=semantic))


def test_a_listing_that_fails_is_asked_again() -> None:
    sink = fresh("fails to list")

    def fail() -> Any:
        raise FailedException("on order")

    sink.script.on("list", None, fail, times=2)
    run_sunk(sunk(sink))
    assert sorted(sink.rows) == [(n,) for n in range(20)]
