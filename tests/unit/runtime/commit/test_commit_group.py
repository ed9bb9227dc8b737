"""Groups by the real committer into a real store: what becomes durable together, and what of it fails alone."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from stormline.errors import FailedException
from stormline.runtime.commit import commit_group
from stormline.runtime.state.transactional_state import TransactionalState
from stormline.state import MemoryStore
from stormline.state.database_transaction import DatabaseTransaction
from tests.kits.components import eventually
from tests.kits.groups import RAN, SCRIPTS, SEEN, STORE, GroupRig, Seen


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(commit_group, "GROUP_SECS", 1e6)  # whatever the machine does meanwhile
    SCRIPTS.clear()
    RAN.clear()
    yield
    STORE.clear()


@pytest.fixture
def rig() -> Iterator[GroupRig]:
    made = GroupRig()
    yield made
    made.close()


def fails(bolt: Seen) -> None:
    raise FailedException("on order")


def test_what_waits_becomes_durable_together_and_is_recorded_once(rig: GroupRig) -> None:
    rig.add(1, 2, 3)
    assert rig.let_begin(3) == ["1:1", "2:1", "3:1"]
    assert RAN == ["1:1", "2:1", "3:1"]
    assert rig.trail == [("record", "3:1")]
    assert SEEN.items() == {1: 1, 2: 2, 3: 3}
    assert (rig.queue.committed, rig.queue.begun) == (3, 3)


def test_nothing_is_visible_before_the_last_of_them_has_ended(rig: GroupRig) -> None:
    seen: list[Any] = []
    SCRIPTS[3] = lambda bolt: seen.append(list(rig.trail))
    rig.add(1, 2, 3)
    rig.let_begin(3)
    assert seen == [[]], "nothing is recorded while a commit phase of the group runs"


def test_one_that_fails_in_the_middle_is_replayed_and_those_before_it_are_durable(rig: GroupRig) -> None:
    SCRIPTS[3] = fails
    rig.add(1, 2, 3, 4)
    first, second, third = rig.let_begin(3)
    assert (first, second) == ("1:1", "2:1")
    assert third.startswith("3:1 FailedException in finish_batch of 'seen'")
    assert RAN == ["1:1", "2:1", "3:1"], "the one behind it has not begun"
    assert rig.trail == [("record", "2:1")]
    assert SEEN.items() == {1: 1, 2: 2}
    assert (rig.queue.committed, rig.queue.begun, list(rig.queue.waiting)) == (2, 3, [4])
    SCRIPTS.clear()
    rig.committer.revoke(3)
    rig.add(3, 4, attempt=2)
    assert rig.let_begin(2) == ["3:2", "4:2"]
    assert SEEN.items() == {n: n for n in range(1, 5)}


def test_a_group_that_takes_long_is_cut_and_what_has_not_begun_waits_again(
    rig: GroupRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commit_group, "GROUP_SECS", -1.0)
    rig.add(1, 2, 3)
    assert rig.let_begin(3) == ["1:1", "2:1", "3:1"]
    assert [what for _, what in rig.trail] == ["1:1", "2:1", "3:1"]


def test_the_first_that_fails_takes_nothing_with_it(rig: GroupRig) -> None:
    SCRIPTS[1] = fails
    rig.add(1, 2)
    (only,) = rig.let_begin(1)
    assert only.startswith("1:1 FailedException")
    assert (SEEN.items(), rig.trail, rig.queue.begun) == ({}, [], 1)


def test_where_the_one_step_fails_all_are_replayed_one_by_one(rig: GroupRig, monkeypatch: pytest.MonkeyPatch) -> None:
    commit, fail = DatabaseTransaction.commit, [True]

    def refused(self: DatabaseTransaction) -> None:
        if fail:
            raise FailedException("no answer")
        commit(self)

    monkeypatch.setattr(DatabaseTransaction, "commit", refused)
    rig.add(1, 2, 3)
    (only,) = rig.let_begin(1)
    assert only == (
        "1:1 FailedException in commit of 'memory:groups': no answer; 3 transactions were to become durable together, "
        "and are replayed one by one"
    )
    assert (SEEN.items(), rig.trail, rig.queue.begun) == ({}, [], 3)
    fail.clear()
    rig.committer.revoke(1)
    rig.add(1, 2, 3, 4, 5, attempt=2)
    assert rig.let_begin(5) == ["1:2", "2:2", "3:2", "4:2", "5:2"]
    assert [what for kind, what in rig.trail] == ["1:2", "2:2", "3:2", "5:2"]


def test_what_the_store_holds_already_is_not_run_again(rig: GroupRig) -> None:
    rig.add(1, 2, 3)
    rig.let_begin(3)
    RAN.clear()
    successor = GroupRig(epoch=2)
    successor.add(1, 2, 3, 4, attempt=1_000_000_001)
    assert len(successor.let_begin(4)) == 4
    successor.close()
    assert RAN == ["4:1000000001"]
    assert [what for _, what in successor.trail] == ["3:1000000001", "4:1000000001"], "what is stored, then what is not"
    assert SEEN.items() == {n: n for n in range(1, 5)}


def test_one_that_hangs_in_the_middle_is_replayed_when_it_has_ended_and_those_before_it_are_durable() -> None:
    rig = GroupRig(timeout_secs=0.05)
    hangs, goes_on = threading.Event(), threading.Event()

    def hang(bolt: Seen) -> None:
        hangs.set()
        goes_on.wait(60)

    SCRIPTS[2] = hang
    rig.add(1, 2, 3)
    rig.store.up = True
    assert hangs.wait(60)
    overdue: list[Any] = []

    def is_overdue() -> bool:
        overdue.append(rig.committer.overdue())
        return overdue[-1] is not None

    eventually(is_overdue)
    assert str(overdue[-1]) == "2:1"
    rig.committer.revoke(2)
    assert rig.committer.hangs
    goes_on.set()
    assert [end[:3] for end in rig.let_begin(2)] == ["1:1", "2:1"]
    assert (SEEN.items(), rig.trail) == ({1: 1}, [("record", "1:1")])
    SCRIPTS.clear()
    rig.add(2, 3, attempt=2)
    assert rig.let_begin(2) == ["2:2", "3:2"]
    rig.close()


def test_a_group_that_runs_when_the_topology_ends_is_not_durable(rig: GroupRig) -> None:
    runs, goes_on = threading.Event(), threading.Event()

    def wait(bolt: Seen) -> None:
        runs.set()
        goes_on.wait(60)

    SCRIPTS[2] = wait
    rig.add(1, 2, 3)
    rig.store.up = True
    assert runs.wait(60)
    rig.committer.close()
    goes_on.set()
    rig.committer.thread.join()
    assert (SEEN.items(), rig.trail, RAN) == ({}, [], ["1:1", "2:1"])


def test_a_bolt_that_stores_elsewhere_than_it_declares_stops_the_topology(rig: GroupRig) -> None:
    other = MemoryStore("other")
    SCRIPTS[1] = lambda bolt: other.is_stored(bolt.context, bolt.attempt)
    rig.add(1)
    (end,) = rig.let_begin(1)
    assert "OtherEffects in finish_batch of 'seen'" in end
    assert "bolt 'seen' declares effects_in = memory:groups, and stores in memory:other as well" in end


def test_a_bolt_that_writes_the_topologys_own_state_has_effects_elsewhere(rig: GroupRig) -> None:
    SCRIPTS[1] = lambda bolt: TransactionalState(None, "user").set_data("a", 1)
    rig.add(1)
    (end,) = rig.let_begin(1)
    assert "declares effects_in = memory:groups, and stores in TransactionalState as well" in end


def test_a_copy_method_that_raises_ends_all_after_those_before_it(
    rig: GroupRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    fresh = rig.env.fresh_bolt
    asked: list[str] = []

    def breaks(component: str) -> Any:
        asked.append(component)
        if len(asked) == 3:
            raise ZeroDivisionError("in a copy method")
        return fresh(component)

    monkeypatch.setattr(rig.env, "fresh_bolt", breaks)
    rig.add(1, 2, 3)
    assert rig.let_begin(3) == ["1:1", "2:1", "3:1"]
    assert (SEEN.items(), rig.trail) == ({1: 1, 2: 2}, [("record", "2:1")])
    assert rig.queue.stopping


def test_while_the_connection_is_suspended_no_further_one_begins(rig: GroupRig) -> None:
    SCRIPTS[2] = lambda bolt: setattr(rig.store, "up", False)
    rig.add(1, 2, 3)
    assert rig.let_begin(2) == ["1:1", "2:1"], "the one that runs may end, with those before it"
    assert RAN == ["1:1", "2:1"]
    assert (rig.queue.committed, list(rig.queue.waiting)) == (2, [3])
    assert rig.let_begin(1) == ["3:1"]
