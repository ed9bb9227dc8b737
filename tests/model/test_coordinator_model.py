"""The coordinator and what is durable, in histories that Hypothesis thinks out; the oracle is a list of offsets."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from stormline.runtime import coordinator
from stormline.runtime.coordinator import Committed, Process, Status
from stormline.runtime.memory_state_store import MemoryStateServer
from stormline.topology.attempt import TransactionAttempt
from tests.model.driver_model import KEYS, TOPOLOGY, Database, ModelDriver, Token

pick = st.integers(min_value=0, max_value=10**6)


class Histories(RuleBasedStateMachine):
    """One topology through drivers, their deaths and their zombies. `offsets` are all that the source ever gave."""

    @initialize(pending_max=st.integers(1, 5))
    def begin(self, pending_max: int) -> None:
        self.pending_max = pending_max
        self.server = MemoryStateServer()
        self.database = Database()
        self.offsets: list[int] = []
        self.zombies: list[ModelDriver] = []
        self.begun_tokens: dict[int, tuple[int, int]] = {}
        self.frozen: dict[int, tuple[int, int]] = {}
        self.committed_ranges: list[tuple[int, int]] = []
        self.ids: dict[int, int] = {}
        self.seen = 0
        self.driver = ModelDriver(self.server, pending_max)

    # ------------------------------------------------------------------------------------ what the driver does

    @rule(count=st.integers(1, 6))
    def data_arrives(self, count: int) -> None:
        self.offsets += range(len(self.offsets), len(self.offsets) + count)

    def room(self) -> bool:
        return coordinator.has_room(self.driver.state) and self.driver.newest_end() < len(self.offsets)

    @precondition(room)
    @rule(take=st.integers(1, 4))
    def a_batch_begins(self, take: int) -> None:
        self.driver.initialize(min(self.driver.newest_end() + take, len(self.offsets)))

    def any_issued(self, at: int) -> Process:
        return self.driver.issued[at % len(self.driver.issued)]

    @precondition(lambda self: self.driver.issued)
    @rule(at=pick)
    def an_attempt_is_processed(self, at: int) -> None:
        self.driver.processed(self.any_issued(at).attempt)

    @precondition(lambda self: self.driver.state.active)
    @rule()
    def the_head_is_processed(self) -> None:
        self.driver.processed(self.driver.state.active[self.driver.state.committed + 1].attempt)

    @precondition(lambda self: self.driver.issued)
    @rule(at=pick)
    def an_attempt_fails(self, at: int) -> None:
        attempt = self.any_issued(at).attempt
        before = dict(self.driver.state.active)
        current = coordinator.is_current(self.driver.state, attempt)
        self.driver.failed(attempt)
        for txid, active in self.driver.state.active.items():
            is_later = current and txid >= attempt.transaction_id
            assert (active.attempt != before[txid].attempt) == is_later, "an attempt takes the later ones with it"
            assert active.metadata == before[txid].metadata

    @precondition(lambda self: self.driver.issued)
    @rule(at=pick)
    def a_commit_is_reported_that_is_not_under_way(self, at: int) -> None:
        attempt = self.any_issued(at).attempt
        active = self.driver.state.active.get(attempt.transaction_id)
        if active is None or active.attempt != attempt or active.status is not Status.COMMITTING:
            before = self.driver.state
            self.driver.step(Committed(attempt))
            assert self.driver.state == before

    @precondition(lambda self: self.driver.to_commit is not None)
    @rule()
    def a_commit_begins(self) -> None:
        assert self.driver.to_commit is not None
        self.note_begun(self.driver, self.driver.to_commit)
        self.driver.begin_commit()

    def note_begun(self, driver: ModelDriver, attempt: TransactionAttempt) -> None:
        txid, stored = attempt.transaction_id, self.durable()
        assert stored["committed"] == txid - 1, "law 1: the transaction before is recorded"
        content = tuple(driver.batches.known[txid].metadata)
        assert self.frozen.setdefault(txid, content) == content, "law 2: the batch is the same for ever"
        assert stored["batches"][txid]["fixed"], "law 2: all that defines it is durable"
        token = (driver.store.epoch, attempt.attempt_id)
        assert token > self.begun_tokens.get(txid, (0, 0)), "law 3: a token begins one commit"
        self.begun_tokens[txid] = token

    def apply(self, driver: ModelDriver, key: str) -> bool:
        attempt = driver.committing
        assert attempt is not None
        token = Token(driver.store.epoch, attempt.transaction_id, attempt.attempt_id)
        first, end = self.frozen[attempt.transaction_id]
        let_in = self.database.apply(key, token, self.offsets[first:end])
        newest = max(Token(epoch, txid, attempt) for txid, (epoch, attempt) in self.begun_tokens.items())
        assert let_in or token < newest, "who is current is never turned away"
        return let_in

    @precondition(lambda self: self.driver.committing is not None)
    @rule(key=st.sampled_from(KEYS))
    def an_effect_happens(self, key: str) -> None:
        assert self.apply(self.driver, key)
        self.driver.effects.add(key)

    @precondition(lambda self: self.driver.committing is not None and self.driver.effects == set(KEYS))
    @rule()
    def a_commit_is_recorded(self) -> None:
        txid = self.driver.state.committed + 1
        assert self.driver.record_commit()
        self.committed_ranges.append(self.frozen[txid])
        assert len(self.committed_ranges) == txid == self.durable()["committed"], "in order, without gaps"

    # ------------------------------------------------------------------------------------ drivers come and go

    @rule(zombie=st.booleans())
    def another_driver_takes_over(self, zombie: bool) -> None:
        if zombie:
            self.zombies.append(self.driver)
        self.server.vanish(TOPOLOGY)
        self.driver = ModelDriver(self.server, self.pending_max)
        self.seen = 0

    @precondition(lambda self: any(zombie.committing for zombie in self.zombies))
    @rule(at=pick, key=st.sampled_from(KEYS))
    def a_zombie_acts_late(self, at: int, key: str) -> None:
        acting = [zombie for zombie in self.zombies if zombie.committing]
        self.apply(acting[at % len(acting)], key)

    @precondition(lambda self: any(zombie.committing for zombie in self.zombies))
    @rule(at=pick)
    def a_zombie_records_its_commit(self, at: int) -> None:
        acting = [zombie for zombie in self.zombies if zombie.committing]
        before = self.durable()
        assert not acting[at % len(acting)].record_commit(), "law 6: fenced"
        assert self.durable() == before

    # ------------------------------------------------------------------------------------ what always holds

    def durable(self) -> dict[str, Any]:
        """Return what ZooKeeper holds."""
        store = self.driver.store
        names = store.children("batches")
        committed = store.get("committed")["txid"] if "committed" in store.children("") else 0
        return {"committed": committed, "batches": {int(name): store.get(f"batches/{name}") for name in names}}

    @invariant()
    def every_offset_is_in_one_transaction(self) -> None:
        ends = [0]
        for first, end in self.committed_ranges:
            assert first == ends[-1], "no gap, nothing twice"
            ends.append(end)
        committed = self.offsets[: ends[-1]]
        for key in KEYS:
            under_way = self.frozen.get(len(self.committed_ranges) + 1, (ends[-1], ends[-1]))
            assert self.database.applied[key] in (committed, self.offsets[: under_way[1]])

    @invariant()
    def attempt_ids_rise_and_never_return(self) -> None:
        for process in self.driver.issued[self.seen :]:
            txid, attempt_id = process.attempt.transaction_id, process.attempt.attempt_id
            assert attempt_id > self.ids.get(txid, 0)
            self.ids[txid] = attempt_id
        self.seen = len(self.driver.issued)

    @invariant()
    def there_are_no_more_active_than_may_be(self) -> None:
        active = self.driver.state.active
        assert len(active) <= self.pending_max
        assert list(active) == list(range(self.driver.state.committed + 1, coordinator.next_txid(self.driver.state)))

    @invariant()
    def each_batch_begins_where_the_one_before_ended(self) -> None:
        end = self.committed_ranges[-1][1] if self.committed_ranges else 0
        for active in self.driver.state.active.values():
            assert active.metadata[0] == end
            end = active.metadata[1]

    @invariant()
    def what_is_durable_stays_bounded(self) -> None:
        stored = self.durable()
        assert len(stored["batches"]) <= 2 * self.pending_max + 1
        assert stored["committed"] == self.driver.state.committed

    @invariant()
    def one_attempt_commits_at_a_time(self) -> None:
        committing = [a for a in self.driver.state.active.values() if a.status is Status.COMMITTING]
        assert len(committing) <= 1
        assert all(a.attempt.transaction_id == self.driver.state.committed + 1 for a in committing)


SETTINGS = settings(max_examples=150, stateful_step_count=50, deadline=None, derandomize=True, database=None)

TestHistories = Histories.TestCase
TestHistories.settings = SETTINGS


@pytest.mark.parametrize(
    ("where", "broken"),
    [
        ("ATTEMPTS_PER_EPOCH", 0),
        ("is_current", lambda state, attempt: attempt.transaction_id in state.active),
        ("has_room", lambda state: len(state.active) <= state.pending_max),
    ],
)
def test_the_model_finds_a_coordinator_that_breaks_a_law(
    where: str, broken: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(coordinator, where, broken)
    with pytest.raises(AssertionError):
        run_state_machine_as_test(
            Histories, settings=settings(SETTINGS, phases=[Phase.generate], report_multiple_bugs=False)
        )
