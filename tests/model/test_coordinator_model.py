"""The coordinator, the commit queue and what is durable, in histories that Hypothesis thinks out.

The oracle is a list of offsets.

Laws by number, as docs/laws.md has them: law 1 (order), law 2 (sameness), law 3 (attempts), law 4 (failure), law 5
(complete input), law 6 (fencing).
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from math import inf
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from stormline.runtime.coordination import coordinator
from stormline.runtime.coordination.commit_queue import Begin, Prove
from stormline.runtime.coordination.coordinator import Committed, Process, Processed
from stormline.runtime.errors import Fenced
from stormline.runtime.messages.wave import AttemptResult
from stormline.runtime.state.memory_store import MemoryStateServer
from stormline.topology.attempt import TransactionAttempt
from stormline.topology.topology import ComponentKind
from tests.model.database import KEYS, NOBODY, Database, Token
from tests.model.driver_model import TOPOLOGY, ModelDriver
from tests.model.durable import Durable, span_of

pick = st.integers(min_value=0, max_value=10**6)
takes = st.integers(1, 4)
kinds = st.sampled_from([ComponentKind.TRANSACTIONAL_SPOUT, ComponentKind.OPAQUE_SPOUT])


def if_a_zombie(can: Callable[[ModelDriver], object]) -> Callable[[Any], Any]:
    """Let a rule run while there is a zombie that can."""
    return precondition(lambda self: any(can(zombie) for zombie in self.zombies))


class Histories(RuleBasedStateMachine):
    """One topology through drivers, their deaths and their zombies. `offsets` are all that the source ever gave.

    `begun`: the tokens that began commits. `acted`: by key the newest that had an effect. `frozen`: by txid what was
    stored of the batch when its first commit began. `late`: commits that nobody waits for, and that act all the same.
    """

    @initialize(kind=kinds, pending_max=st.integers(1, 5))
    def begin(self, kind: ComponentKind, pending_max: int) -> None:
        self.kind = kind
        self.pending_max = pending_max
        self.server = MemoryStateServer()
        self.database = Database()
        self.offsets: list[int] = []
        self.zombies: list[ModelDriver] = []
        self.late: list[tuple[ModelDriver, TransactionAttempt]] = []
        self.begun: set[Token] = set()
        self.acted: dict[str, Token] = dict.fromkeys(KEYS, NOBODY)
        self.frozen: dict[int, dict[str, Any]] = {}
        self.committed_spans: list[tuple[int, int]] = []
        self.ids: dict[int, int] = {}
        self.start_driver()

    def start_driver(self) -> None:
        self.driver = ModelDriver(self.server, self.offsets, self.kind, self.pending_max)
        self.seen = 0

    def durable(self) -> Durable:
        return Durable.of(self.server, TOPOLOGY)

    # ------------------------------------------------------------------------------------ what the driver does

    @rule(count=st.integers(1, 6))
    def data_arrives(self, count: int) -> None:
        self.offsets += range(len(self.offsets), len(self.offsets) + count)

    @precondition(lambda self: self.driver.has_room())
    @rule(take=takes)
    def a_batch_begins(self, take: int) -> None:
        self.driver.initialize(take)

    @precondition(lambda self: self.driver.processing())
    @rule(count=st.integers(1, 3), take=takes)
    def a_wave_is_processed(self, count: int, take: int) -> None:
        self.process(self.driver.processing()[:count], take)

    def process(self, attempts: list[TransactionAttempt], take: int) -> None:
        for result in self.driver.processed(attempts, take):
            assert result.failure is None, "law 2: the same batch is read again"

    def any_issued(self, at: int) -> Process:
        return self.driver.issued[at % len(self.driver.issued)]

    @precondition(lambda self: self.driver.issued)
    @rule(at=pick, take=takes)
    def an_attempt_is_processed(self, at: int, take: int) -> None:
        attempt = self.any_issued(at).attempt
        if self.driver.may_be_read(attempt):
            self.process([attempt], take)
        elif attempt not in self.driver.processing():
            before = self.driver.state
            self.driver.step(Processed(AttemptResult(attempt)))
            assert self.driver.state == before, "law 3: it was over, or had been processed"

    @precondition(lambda self: self.driver.issued)
    @rule(at=pick, timed_out=st.booleans())
    def an_attempt_fails(self, at: int, timed_out: bool) -> None:
        attempt = self.any_issued(at).attempt
        before = dict(self.driver.state.active)
        was_live = self.driver.is_live(attempt) and attempt.transaction_id in before
        if timed_out and attempt == self.driver.committing:
            self.late.append((self.driver, attempt))
        self.driver.failed(attempt, timed_out)
        for txid, active in self.driver.state.active.items():
            is_later = was_live and txid >= attempt.transaction_id
            assert (active.attempt != before[txid].attempt) == is_later, "law 4: it takes the later ones with it"
            assert active.metadata == before[txid].metadata, "law 4: with their stored metadata"

    @precondition(lambda self: self.driver.hanging is not None)
    @rule(failed=st.booleans())
    def a_commit_that_was_revoked_ends(self, failed: bool) -> None:
        assert self.driver.commits.finished(failed) is None, "law 3: what was revoked is not recorded"
        assert self.driver.hanging is None, "the next attempt waits for ever"

    @precondition(lambda self: self.driver.issued)
    @rule(at=pick)
    def a_commit_is_reported_of_an_attempt_that_does_not_count(self, at: int) -> None:
        attempt = self.any_issued(at).attempt
        if not self.driver.is_live(attempt) or attempt.transaction_id <= self.durable().committed:
            before = self.driver.state
            self.driver.step(Committed(attempt))
            assert self.driver.state == before, "law 3: no such commit is under way"

    @precondition(lambda self: self.driver.may_commit())
    @rule()
    def a_commit_begins(self) -> None:
        driver, attempt = self.driver, self.driver.next_commit()
        assert attempt is not None
        assert driver.committing is None, "law 1: one commit at a time"
        assert driver.hanging is None, "law 3: the effects of an attempt end before those of the next one begin"
        assert driver.is_live(attempt), "law 3: a commit is of the attempt that counts"
        assert self.durable().committed == attempt.transaction_id - 1, "law 1: the transaction before is recorded"
        assert driver.token(attempt) > max(self.begun, default=NOBODY), "law 3: a token is newer than all before"
        assert isinstance(driver.copied().next(connected=True, proof_secs=inf), Prove), "law 6: without a proof"
        suspended = driver.copied().next(connected=False, proof_secs=0.0)
        assert not isinstance(suspended, Begin), "law 6: it begins while the connection is suspended"
        self.note_begun(driver, attempt)
        driver.begin_commit()

    def note_begun(self, driver: ModelDriver, attempt: TransactionAttempt) -> None:
        txid, token = attempt.transaction_id, driver.token(attempt)
        record, read = driver.record(txid), driver.reads.get(attempt)
        assert read is not None, "law 5: what is committed has been processed"
        assert record == read.record, "law 2: all that defines it is durable"
        assert self.frozen.setdefault(txid, record) == record, "law 2: the batch is the same for ever"
        assert token not in self.begun, "law 3: a token begins one commit"
        self.begun.add(token)

    def apply(self, driver: ModelDriver, attempt: TransactionAttempt, key: str) -> bool:
        token, read = driver.token(attempt), driver.reads[attempt]
        let_in = self.database.apply(key, token, self.offsets[read.first : read.end])
        assert not let_in or token >= self.acted[key], "law 6: no effect with a stale token"
        assert let_in or token < self.acted[key], "only a stale token is turned away"
        self.acted[key] = max(token, self.acted[key])
        return let_in

    @precondition(lambda self: self.driver.committing is not None)
    @rule(key=st.sampled_from(KEYS))
    def an_effect_happens(self, key: str) -> None:
        attempt = self.driver.committing
        assert attempt is not None
        assert self.driver.is_live(attempt), "law 3: who acts is the attempt that counts"
        assert coordinator.is_current(self.driver.state, attempt), "law 3: who acts is the attempt that counts"
        assert self.apply(self.driver, attempt, key), "the living driver's token is stale"
        assert self.acted[key] == max(self.acted.values()), "a newer one has acted elsewhere"
        self.driver.effects.add(key)

    @precondition(lambda self: self.driver.committing is not None and self.driver.effects == set(KEYS))
    @rule()
    def a_commit_is_recorded(self) -> None:
        revoked = self.driver.record_commit()
        assert not revoked, "law 3: an attempt is taken back while its record is on its way"
        self.note_recorded()

    def note_recorded(self) -> None:
        txid = len(self.committed_spans) + 1
        self.committed_spans.append(span_of(self.frozen[txid]))
        assert txid == self.durable().committed, "in order, without gaps"

    @precondition(lambda self: self.driver.committing is not None and self.driver.effects == set(KEYS))
    @rule(arrives=st.booleans())
    def nothing_is_heard_of_a_record(self, arrives: bool) -> None:
        self.driver.record_commit(arrives, heard=False)
        assert self.driver.commits.committed == len(self.committed_spans), "law 1: it may not be recorded"
        assert not self.driver.may_commit(), "law 1: the record before may not be there"
        if arrives:
            self.note_recorded()
        self.server.vanish(TOPOLOGY)
        self.start_driver()

    @rule(steps=st.integers(1, 24), take=takes, eager=st.booleans())
    def all_goes_well_for_a_while(self, steps: int, take: int, eager: bool) -> None:
        """Without this few histories come as far as a second commit. `eager`: begin all the batches that may be."""
        for _ in range(steps):
            driver = self.driver
            if eager and coordinator.has_room(driver.state):
                self.data_arrives(take)
                self.a_batch_begins(take)
            elif driver.committing is not None:
                missing = [key for key in KEYS if key not in driver.effects]
                self.an_effect_happens(missing[0]) if missing else self.a_commit_is_recorded()
            elif driver.hanging is not None:
                self.a_commit_that_was_revoked_ends(failed=False)
            elif driver.may_commit():
                self.a_commit_begins()
            elif driver.processing():
                self.a_wave_is_processed(1, take)
            else:
                self.data_arrives(take)
                self.a_batch_begins(take)

    # ------------------------------------------------------------------------------------ drivers come and go

    @precondition(lambda self: self.driver.issued)
    @rule(zombie=st.booleans())
    def another_driver_takes_over(self, zombie: bool) -> None:
        if zombie:
            self.zombies.append(self.driver)
            if self.driver.committing is not None:
                self.late.append((self.driver, self.driver.committing))
        self.server.vanish(TOPOLOGY)
        self.start_driver()

    @precondition(lambda self: self.late)
    @rule(at=pick, key=st.sampled_from(KEYS))
    def a_late_commit_acts(self, at: int, key: str) -> None:
        self.apply(*self.late[at % len(self.late)], key)

    def zombie(self, can: Callable[[ModelDriver], object], at: int) -> ModelDriver:
        able = [zombie for zombie in self.zombies if can(zombie)]
        return able[at % len(able)]

    def must_be_fenced(self, zombie: ModelDriver, act: Callable[[], object]) -> None:
        before = self.durable(), zombie.state, dict(zombie.batches.known), zombie.commits.committed
        try:
            act()
        except Fenced:
            after = self.durable(), zombie.state, zombie.batches.known, zombie.commits.committed
            assert after == before, "law 6: who is fenced changes nothing"
        else:
            raise AssertionError("law 6: a zombie is fenced")

    @if_a_zombie(ModelDriver.has_room)
    @rule(at=pick, take=takes)
    def a_zombie_begins_a_batch(self, at: int, take: int) -> None:
        zombie = self.zombie(ModelDriver.has_room, at)
        self.must_be_fenced(zombie, lambda: zombie.initialize(take))

    @if_a_zombie(ModelDriver.may_fix)
    @rule(at=pick, take=takes)
    def a_zombie_fixes_a_batch(self, at: int, take: int) -> None:
        zombie = self.zombie(ModelDriver.may_fix, at)
        self.must_be_fenced(zombie, lambda: zombie.processed(zombie.processing()[:2], take))

    @if_a_zombie(ModelDriver.may_commit)
    @rule(at=pick)
    def a_zombie_begins_a_commit(self, at: int) -> None:
        zombie = self.zombie(ModelDriver.may_commit, at)
        self.must_be_fenced(zombie, zombie.begin_commit)

    @if_a_zombie(ModelDriver.may_commit)
    @rule(at=pick)
    def a_zombie_begins_a_commit_unasked(self, at: int) -> None:
        zombie = self.zombie(ModelDriver.may_commit, at)
        attempt = zombie.next_commit()
        assert attempt is not None
        assert self.durable().committed >= attempt.transaction_id - 1, "law 1: the transaction before is recorded"
        self.note_begun(zombie, attempt)
        self.late.append((zombie, attempt))
        zombie.begin_commit(ask=False)

    @if_a_zombie(ModelDriver.may_record)
    @rule(at=pick)
    def a_zombie_records_its_commit(self, at: int) -> None:
        zombie = self.zombie(ModelDriver.may_record, at)
        self.must_be_fenced(zombie, zombie.record_commit)

    # ------------------------------------------------------------------------------------ what always holds

    @invariant()
    def every_offset_is_in_one_transaction(self) -> None:
        ends = [0]
        for first, end in self.committed_spans:
            assert first == ends[-1], "no gap, nothing twice"
            ends.append(end)
        under_way = self.frozen.get(len(self.committed_spans) + 1)
        end = span_of(under_way)[1] if under_way else ends[-1]
        for key in KEYS:
            assert self.database.applied[key] in (self.offsets[: ends[-1]], self.offsets[:end])

    @invariant()
    def attempt_ids_rise_and_never_return(self) -> None:
        for process in self.driver.issued[self.seen :]:
            txid, attempt_id = process.attempt.transaction_id, process.attempt.attempt_id
            assert attempt_id > self.ids.get(txid, 0), "law 3: attempt ids rise"
            self.ids[txid] = attempt_id
        self.seen = len(self.driver.issued)

    @invariant()
    def there_are_no_more_active_than_may_be(self) -> None:
        active = self.driver.state.active
        assert len(active) <= self.pending_max, "active ≤ pending"
        first = self.driver.commits.committed + 1
        assert list(active) == list(range(first, coordinator.next_txid(self.driver.state))), "what is active follows"

    @invariant()
    def each_batch_begins_where_the_one_before_ended(self) -> None:
        spans = [self.driver.span(txid) for txid in self.driver.state.active]
        known = [span for span in spans if span is not None]
        assert spans[: len(known)] == known, "a batch counts before it is known where it begins"
        for before, span in pairwise([*(self.committed_spans[-1:] or [(0, 0)]), *known]):
            assert span[0] == before[1], "the live attempt of the one before ended elsewhere"

    @invariant()
    def what_is_stored_of_a_batch_begins_where_that_of_the_one_before_ended(self) -> None:
        batches = self.durable().batches
        for txid, later in pairwise(sorted(batches)):
            if batches[txid]["fixed"] and batches[later]["fixed"]:
                assert span_of(batches[later])[0] == span_of(batches[txid])[1], "a stale batch is in the way"

    @invariant()
    def a_batch_never_changes_once_its_commit_may_have_begun(self) -> None:
        durable = self.durable()
        for txid, record in self.frozen.items():
            if txid >= durable.committed or txid in durable.batches:
                assert durable.batches.get(txid) == record, "law 2: the batch is the same for ever"

    @invariant()
    def what_is_durable_stays_bounded(self) -> None:
        durable = self.durable()
        assert durable.foreign() == [], "nothing removes these, or they grow"
        assert len(durable.batches) <= 2 * self.pending_max + 1, "twice what may be pending, and one"
        assert durable.committed == self.driver.commits.committed, "law 1: what is committed is recorded"

    @invariant()
    def one_attempt_commits_at_a_time(self) -> None:
        driver, active = self.driver, self.driver.state.active
        running = [attempt for attempt in (driver.committing,) if attempt is not None]
        told = sorted([*driver.waiting(), *running], key=lambda attempt: attempt.transaction_id)
        assert all(map(driver.is_live, told)), "law 3: a commit is of the attempt that counts"
        assert told == [a.attempt for a in active.values() if a.processed], "what is processed waits, or commits"
        assert [attempt.transaction_id for attempt in running] in ([], [active.first]), "law 1: one, the next"
        head = active.get(active.first)
        if head is not None and head.processed and not running and driver.hanging is None:
            assert driver.next_commit() == head.attempt, "its turn has come"

    @invariant()
    def of_what_may_have_had_an_effect_the_driver_knows(self) -> None:
        assert max(self.frozen, default=0) <= self.driver.commits.begun, "law 2: its commit may have begun"
        assert self.driver.commits.begun <= self.driver.commits.committed + 1, "law 1: one commit at a time"


SETTINGS = settings(max_examples=150, stateful_step_count=50, deadline=None, derandomize=True, database=None)

TestHistories = Histories.TestCase
TestHistories.settings = SETTINGS
