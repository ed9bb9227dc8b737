"""What takes part in a commit phase: begun once, prepared, committed in order, aborted where anything fails."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from stormline import BaseTransactionalBolt, FailedException, ICommitter, TransactionAttempt, Tuple
from stormline.errors import NotCommitting, TopologyFailed
from stormline.testing import InProcessCluster
from stormline.topology.commit_participants import CommitToken
from stormline.topology.config import COMMIT_PLACEMENT
from tests.kits.components import line, numbers
from tests.kits.stores import Process

LOG: list[Any] = []
FAULTS: dict[tuple[str, str], BaseException] = {}


@pytest.fixture(autouse=True)
def nothing_noted() -> Iterator[None]:
    LOG.clear()
    FAULTS.clear()
    yield
    LOG.clear()


class Noting:
    """A resource, and its own participant, that notes what is called and raises what it is told to."""

    def __init__(self, name: str) -> None:
        self.name = name

    def _note(self, call: str, *more: Any) -> None:
        LOG.append((self.name, call, *more))
        fault = FAULTS.pop((self.name, call), None)
        if fault is not None:
            raise fault

    def begin(self, token: CommitToken, registry: Any) -> Noting:
        self.token = token
        self._note("begin", token.txid, token.scope)
        return self

    def prepare(self) -> None:
        self._note("prepare")

    def commit(self) -> None:
        self._note("commit")

    def abort(self) -> None:
        self._note("abort")

    def close(self) -> None:
        self._note("close")


def joined(*names: str) -> Any:
    """Return a commit phase in which these take part."""
    phase = Process().begin(1)
    for name in names:
        phase.take_part(phase.attempt, name, lambda name=name: Noting(name))
    return phase.participants


def calls() -> list[str]:
    return [f"{name} {call}" for name, call, *_ in LOG]


def test_all_prepare_before_the_first_commits() -> None:
    assert joined("a", "b").commit(lambda: True) is None
    assert calls() == ["a begin", "b begin", "a prepare", "b prepare", "a commit", "b commit"]


def test_who_is_asked_for_twice_begins_once() -> None:
    phase = Process().begin(1)
    first = phase.take_part(phase.attempt, "a", lambda: Noting("a"))
    assert phase.take_part(phase.attempt, "a", lambda: Noting("another")) is first
    assert calls() == ["a begin"]


@pytest.mark.parametrize(
    ("where", "seen"),
    [
        (("a", "prepare"), ["a prepare", "a abort", "b abort"]),
        (("b", "prepare"), ["a prepare", "b prepare", "a abort", "b abort"]),
        (("a", "commit"), ["a prepare", "b prepare", "a commit", "a abort", "b abort"]),
        (("b", "commit"), ["a prepare", "b prepare", "a commit", "b commit", "b abort"]),
    ],
)
def test_where_one_fails_all_that_have_not_committed_are_aborted(where: tuple[str, str], seen: list[str]) -> None:
    FAULTS[where] = FailedException("on order")
    failure = joined("a", "b").commit(lambda: True)
    assert calls()[2:] == seen
    assert failure.message == f"FailedException in {where[1]} of {where[0]!r}: on order"
    assert not failure.fatal


def test_an_error_in_a_commit_stops_the_topology() -> None:
    FAULTS["a", "commit"] = ZeroDivisionError("on order")
    assert joined("a").commit(lambda: True).fatal


def test_one_that_fails_to_abort_keeps_no_other_from_it(caplog: pytest.LogCaptureFixture) -> None:
    FAULTS["a", "abort"] = ZeroDivisionError("on order")
    joined("a", "b").abort()
    assert calls()[2:] == ["a abort", "b abort"]
    assert "aborting 1:1 in a" in caplog.text


def test_what_is_not_wanted_any_more_is_aborted() -> None:
    answers = iter([True, True, True, False])
    assert joined("a", "b").commit(lambda: next(answers, False)) is None
    assert calls()[2:] == ["a prepare", "b prepare", "a commit", "b abort"]


class Joins(BaseTransactionalBolt, ICommitter):
    """Takes part under each of `names`."""

    def __init__(self, *names: str) -> None:
        self.names = names

    def prepare(self, conf: Any, context: Any, collector: Any, attempt: TransactionAttempt) -> None:
        self.context, self.attempt = context, attempt

    def execute(self, tup: Tuple) -> None: ...

    def finish_batch(self) -> None:
        for name in self.names:
            self.context.take_part(self.attempt, name, lambda name=name: Noting(name))
        LOG.append((self.context.this_component_id, "finish_batch"))

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(["tx", "value"])


def run(*bolts: Any, config: Any = None) -> None:
    topology = line("joins", numbers(4), 2, *bolts)
    with InProcessCluster() as cluster, cluster.submit(topology, config or {}) as handle:
        handle.await_drained(60)


def test_all_tasks_and_components_share_who_takes_part_until_all_have_finished() -> None:
    run(
        lambda b: b.set_bolt("one", Joins("a"), 2).shuffle_grouping("spout"),
        lambda b: b.set_bolt("two", Joins("b", "a"), 1).global_grouping("one"),
    )
    one = [
        *[("one", "finish_batch")] * 2,
        ("b", "begin", 1, ""),
        ("two", "finish_batch"),
        ("a", "prepare"),
        ("b", "prepare"),
        ("a", "commit"),
        ("b", "commit"),
    ]
    assert [("a", "begin", 1, ""), *one, ("a", "close"), ("b", "close")] == LOG


def test_a_commit_that_fails_is_replayed_and_one_that_committed_takes_part_again() -> None:
    FAULTS["b", "commit"] = FailedException("on order")
    run(lambda b: b.set_bolt("one", Joins("a", "b")).global_grouping("spout"))
    assert [call for call in calls() if not call.endswith("prepare")] == [
        *["a begin", "b begin", "one finish_batch", "a commit", "b commit", "b abort"],
        *["a begin", "b begin", "one finish_batch", "a commit", "b commit"],
        *["a close", "b close"],
    ]


def test_a_bolt_that_fails_lets_all_be_aborted() -> None:
    FAULTS["b", "begin"] = FailedException("on order")
    run(lambda b: b.set_bolt("one", Joins("a", "b")).global_grouping("spout"))
    assert calls()[:3] == ["a begin", "b begin", "a abort"]


def test_on_the_executors_each_task_commits_by_itself() -> None:
    run(
        lambda b: b.set_bolt("one", Joins("a"), 2).shuffle_grouping("spout"),
        config={COMMIT_PLACEMENT: "executors"},
    )
    begun = sorted(entry for entry in LOG if entry[1] == "begin")
    assert begun == [("a", "begin", 1, "one:0/2"), ("a", "begin", 1, "one:1/2")]
    assert calls().count("a commit") == 2


class JoinsTooEarly(Joins):
    gathers = ()

    def execute(self, tup: Tuple) -> None:
        self.finish_batch()


def test_who_asks_in_the_processing_phase_is_told_where_to() -> None:
    with pytest.raises(TopologyFailed, match=r"NotCommitting.*component 'one' asks to take part in the commit of 1:\d"):
        run(lambda b: b.set_bolt("one", JoinsTooEarly("a")).global_grouping("spout"))


def test_a_commit_phase_that_has_ended_takes_nobody() -> None:
    phase = Process().begin(1)
    phase.participants.abort()
    with pytest.raises(NotCommitting, match=r"use a store in finish_batch\(\) of a committer"):
        phase.take_part(phase.attempt, "a", lambda: Noting("a"))
