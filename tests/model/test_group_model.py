"""Groups in histories that Hypothesis thinks out: the real commit queue, batches and fence, and a store of one step.

The oracle is that of `test_coordinator_model`: a list of offsets.

Laws by number, as docs/laws.md has them: law 1 (order), law 2 (sameness), law 3 (attempts), law 4 (failure), law 5
(complete input), law 6 (fencing).
"""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule

from stormline.runtime.coordination import coordinator
from stormline.runtime.coordination.commit_queue import Begin
from stormline.topology.attempt import TransactionAttempt
from stormline.topology.topology import ComponentKind
from tests.model.database import KEYS
from tests.model.driver_model import ModelDriver
from tests.model.durable import span_of
from tests.model.store import GroupStore, Part
from tests.model.test_coordinator_model import SETTINGS, Histories, kinds, pick


def running(driver: ModelDriver) -> bool:
    """Return whether commit phases of a group run, of which the present one is still wanted."""
    return driver.committing is not None and not driver.effects and driver.held < len(driver.group)


def held(driver: ModelDriver) -> bool:
    """Return whether all commit phases of a group have ended, and its one step is to come."""
    return driver.committing is not None and not driver.effects and driver.held == len(driver.group) > 0


class GroupHistories(Histories):
    """As `Histories`; but what commits is a group, in one step of one store. Each driver has its own size of groups.

    `late`: groups whose step nobody waits for, and that may happen all the same.
    """

    @initialize(kind=kinds, pending_max=st.integers(2, 6))
    def begin(self, kind: ComponentKind, pending_max: int) -> None:
        self.store = GroupStore()
        self.sizes = [1]
        self.late_groups: list[list[Part]] = []
        super().begin(kind, pending_max)

    def start_driver(self) -> None:
        self.sizes = [*self.sizes[1:], self.sizes[0] % 4 + 1]  # 2, 3, 4, 1, …
        self.driver = ModelDriver(self.server, self.offsets, self.kind, self.pending_max, self.sizes[-1])
        self.seen = 0

    # ------------------------------------------------------------------------------------ the commit

    def parts(self, driver: ModelDriver) -> list[Part]:
        reads = [(driver.token(attempt), driver.reads[attempt]) for attempt in driver.group[: driver.held]]
        return [Part(token, read.commit_id, tuple(self.offsets[read.first : read.end])) for token, read in reads]

    @precondition(lambda self: self.driver.may_commit())
    @rule()
    def a_commit_begins(self) -> None:
        driver = self.driver
        step = driver.copied().next(connected=True, proof_secs=0.0)
        assert isinstance(step, Begin)
        group = [result.attempt for result in step.results]
        committed = self.durable().committed
        assert driver.committing is None, "law 1: one group at a time"
        assert driver.hanging is None, "law 3: the effects of an attempt end before those of the next one begin"
        assert all(map(driver.is_live, group)), "law 3: a commit is of the attempt that counts"
        assert [a.transaction_id for a in group] == list(range(committed + 1, committed + 1 + len(group))), (
            "law 1: what comes next, without gaps"
        )
        assert len(group) <= driver.group_max, "law 1: no more than may be"
        driver.begin_commit()

    @precondition(lambda self: running(self.driver))
    @rule()
    def a_commit_phase_ends_well(self) -> None:
        driver = self.driver
        driver.held += 1
        first, last = self.parts(driver)[0], self.parts(driver)[-1]
        assert self.store.lets_in(first), "law 2: it is stored otherwise, or what comes before it is not"
        if self.store.holds(first) and not self.store.reaches(last):  # what is stored, and what is not
            driver.held -= 1
            driver.cut(failed=False)

    @precondition(lambda self: running(self.driver))
    @rule()
    def a_commit_phase_fails(self) -> None:
        self.driver.cut(failed=True)

    @precondition(lambda self: running(self.driver) and self.driver.held)
    @rule()
    def a_group_takes_long_and_is_cut(self) -> None:
        self.driver.cut(failed=False)

    @precondition(lambda self: held(self.driver))
    @rule(heard=st.booleans())
    def the_step_is_done(self, heard: bool) -> None:
        driver, parts = self.driver, self.parts(self.driver)
        self.note_step(driver, list(driver.group))
        assert self.store.apply(parts), "the living driver's token is stale"
        if heard:
            driver.effects = set(KEYS)
        else:
            self.the_step_fails()

    @precondition(lambda self: held(self.driver))
    @rule()
    def the_step_fails(self) -> None:
        driver, first = self.driver, self.driver.group[0]
        assert driver.commits.finished(failed=True) is None
        driver.failing = None  # it gets another attempt as one after the first
        driver.step(coordinator.Failed(first))

    def note_step(self, driver: ModelDriver, group: list[TransactionAttempt]) -> None:
        """A step of a group may happen from now on."""
        committed = self.durable().committed
        stale = driver is not self.driver
        for i, attempt in enumerate(group):
            txid, token = attempt.transaction_id, driver.token(attempt)
            record, read = driver.record(txid), driver.reads.get(attempt)
            assert read is not None, "law 5: what is committed has been processed"
            assert stale or txid == committed + 1 + i, "law 1: the transaction before the first is recorded"
            assert record == read.record, "law 2: all that defines it is durable"
            assert self.frozen.setdefault(txid, record) == record, "law 2: the batch is the same for ever"
            self.begun.add(token)

    def note_recorded(self) -> None:
        committed = self.durable().committed
        for txid in range(len(self.committed_spans) + 1, committed + 1):
            assert txid in self.frozen, "law 1: recorded before its effects"
            self.committed_spans.append(span_of(self.frozen[txid]))

    @rule(at=pick, timed_out=st.booleans())
    @precondition(lambda self: self.driver.issued)
    def an_attempt_fails(self, at: int, timed_out: bool) -> None:
        driver, attempt = self.driver, self.any_issued(at).attempt
        if attempt in driver.group and driver.is_live(attempt):
            place = driver.group.index(attempt)
            if driver.effects or place != driver.held or not timed_out:
                return  # it is recorded next, or no commit phase that runs
            driver.step(coordinator.Failed(attempt))  # it is overdue, and hangs; those before it are untouched
            assert all(map(driver.is_live, driver.group[:place])), "law 4: earlier ones are untouched"
            assert not driver.commits.wanted(attempt.transaction_id), "law 3: what was taken back is not wanted"
            driver.cut(failed=True)
        elif attempt != driver.failing:
            driver.step(coordinator.Failed(attempt))

    # ------------------------------------------------------------------------------------ drivers come and go

    @precondition(lambda self: self.driver.issued)
    @rule(zombie=st.booleans())
    def another_driver_takes_over(self, zombie: bool) -> None:
        driver = self.driver
        if zombie and driver.committing is not None and driver.held:
            self.note_step(driver, list(driver.group[: driver.held]))
            self.late_groups.append(self.parts(driver))
        self.server.vanish("model")
        self.start_driver()

    @precondition(lambda self: self.late_groups)
    @rule(at=pick)
    def a_late_step_happens(self, at: int) -> None:
        before = self.store.fence
        parts = self.late_groups[at % len(self.late_groups)]
        let_in = self.store.apply(parts)
        newer = before is not None and before.epoch > parts[-1].token.epoch
        assert not (let_in and newer), "law 6: no effect with a stale token"

    @rule(steps=st.integers(1, 40), take=st.integers(1, 4), eager=st.booleans())
    def all_goes_well_for_a_while(self, steps: int, take: int, eager: bool) -> None:
        for _ in range(steps):
            driver = self.driver
            if eager and coordinator.has_room(driver.state):
                self.data_arrives(take)
                self.a_batch_begins(take)
            elif eager and driver.processing():
                self.a_wave_is_processed(3, take)
            elif running(driver):
                self.a_commit_phase_ends_well()
            elif held(driver):
                self.the_step_is_done(heard=True)
            elif driver.committing is not None:
                self.a_commit_is_recorded()
            elif driver.may_commit():
                self.a_commit_begins()
            elif driver.processing():
                self.a_wave_is_processed(1, take)
            else:
                self.data_arrives(take)
                self.a_batch_begins(take)

    # ------------------------------------------------------------------------------------ what is not of groups

    def an_effect_happens(self, key: str) -> None:
        raise NotImplementedError

    def a_late_commit_acts(self, at: int, key: str) -> None:
        raise NotImplementedError

    def a_commit_that_was_revoked_ends(self, failed: bool) -> None:
        raise NotImplementedError

    # ------------------------------------------------------------------------------------ what always holds

    @invariant()
    def every_offset_is_in_one_transaction(self) -> None:
        ends = [0]
        for first, end in self.committed_spans:
            assert first == ends[-1], "no gap, nothing twice"
            ends.append(end)
        durable = 0 if self.store.fence is None else self.store.fence.txid
        assert durable >= len(self.committed_spans), "law 1: recorded before its effects"
        for txid in range(len(ends), durable + 1):
            first, end = span_of(self.frozen[txid])
            assert first == ends[-1], "no gap, nothing twice"
            ends.append(end)
        assert self.store.applied == self.offsets[: ends[durable]], "exactly once"

    @invariant()
    def one_attempt_commits_at_a_time(self) -> None:
        driver, active = self.driver, self.driver.state.active
        group = [attempt for attempt in driver.group if attempt.transaction_id in active]
        told = sorted([*driver.waiting(), *group], key=lambda attempt: attempt.transaction_id)
        assert all(map(driver.is_live, told)), "law 3: a commit is of the attempt that counts"
        processed = [a.attempt for a in active.values() if a.processed and a.attempt != driver.failing]
        assert told == processed, "what is processed waits, or commits"
        first = driver.commits.committed + 1
        assert [a.transaction_id for a in group] == list(range(first, first + len(group))), "law 1: those that are next"
        head = active.get(active.first)
        if head is not None and head.processed and not group and driver.failing is None:
            assert driver.next_commit() is not None, "its turn has come"

    @invariant()
    def of_what_may_have_had_an_effect_the_driver_knows(self) -> None:
        assert max(self.frozen, default=0) <= self.driver.commits.begun, "law 2: its commit may have begun"
        sizes = [batch["group_max"] for batch in self.durable().batches.values() if batch["fixed"]]
        most = max([1, self.driver.group_max, *sizes])
        assert self.driver.commits.begun <= self.driver.commits.committed + most, "law 1: one group at a time"


TestGroups = GroupHistories.TestCase
TestGroups.settings = settings(SETTINGS, max_examples=100)
