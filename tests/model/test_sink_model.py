"""Two-phase sinks in histories that Hypothesis thinks out: the real batches, definitions, commit queue and sweeps.

The oracle of the rest is that of `test_coordinator_model`. Rules by number, as docs/two_phase_commit.md has them; laws,
as docs/laws.md has them: law 1 (order).
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule

from stormline.runtime.coordination.sink_sweep import SinkKnowledge
from stormline.topology.topology import ComponentKind
from stormline.topology.transaction_label import TransactionLabel
from tests.model.database import KEYS
from tests.model.sink_driver import ModelSink, SinkModelDriver
from tests.model.test_coordinator_model import SETTINGS, Histories, kinds, pick


def txid_of(text: str) -> int:
    """Return the transaction of a label."""
    label = TransactionLabel.read(text)
    assert label is not None
    return label.txid


class SinkHistories(Histories):
    """As `Histories`, with a sink beside the database. `sweeps`: what drivers knew when they asked for a list."""

    driver: SinkModelDriver

    @initialize(kind=kinds, pending_max=st.integers(1, 5))
    def begin(self, kind: ComponentKind, pending_max: int) -> None:
        self.sink = ModelSink()
        self.sweeps: list[SinkKnowledge] = []
        super().begin(kind, pending_max)

    def start_driver(self) -> None:
        self.driver = SinkModelDriver(self.sink, self.server, self.offsets, self.kind, self.pending_max)
        self.seen = 0

    # ------------------------------------------------------------------------------------ commits

    def commit(self, text: str) -> None:
        durable, txid = self.durable(), txid_of(text)
        assert text not in self.sink.aborted, "R6: what is committed was aborted"
        if text in self.sink.committed:
            return
        batch = durable.batches.get(txid, {})
        assert text in [label for _, label, _ in batch.get("handles", ())], "R2: it is on no record"
        assert txid == durable.committed + 1, "law 1: the transaction before is recorded"
        assert self.sink.prepared.pop(text, None) is not None, "R8: somebody has aborted it"
        self.sink.committed.append(text)

    def commit_all(self, driver: Any) -> None:
        for attempt in driver.group:
            for handle in driver.reads[attempt].handles:
                self.commit(handle.label)

    @precondition(lambda self: self.driver.committing is not None and self.driver.effects == set(KEYS))
    @rule(at=pick)
    def a_handle_is_committed(self, at: int) -> None:
        attempt = self.driver.committing
        assert attempt is not None
        handles = self.driver.reads[attempt].handles
        if handles:
            self.commit(handles[at % len(handles)].label)

    @precondition(lambda self: self.driver.committing is not None and self.driver.effects == set(KEYS))
    @rule()
    def a_commit_is_recorded(self) -> None:
        self.commit_all(self.driver)
        super().a_commit_is_recorded()

    @precondition(lambda self: self.driver.committing is not None and self.driver.effects == set(KEYS))
    @rule(arrives=st.booleans())
    def nothing_is_heard_of_a_record(self, arrives: bool) -> None:
        self.commit_all(self.driver)
        super().nothing_is_heard_of_a_record(arrives)

    # ------------------------------------------------------------------------------------ what is left behind

    def abort(self, text: str, epoch: int) -> None:
        label = TransactionLabel.read(text)
        assert label is not None
        assert label.epoch <= epoch, "R8: an older driver aborts it"
        assert text not in self.sink.committed, "R8: it was committed"
        on_record = [name for batch in self.durable().batches.values() for _, name, _ in batch.get("handles", ())]
        assert text not in on_record, "R6: a record names what is aborted"
        self.sink.prepared.pop(text, None)
        self.sink.aborted.add(text)

    def any_driver(self, at: int) -> Any:
        drivers = [self.driver, *self.zombies]
        return drivers[at % len(drivers)]

    @rule(at=pick)
    def what_a_driver_has_withdrawn_is_aborted(self, at: int) -> None:
        driver = self.any_driver(at)
        for text in driver.left:
            self.abort(text, driver.store.epoch)
        driver.left.clear()

    @rule(at=pick)
    def a_driver_asks_for_a_list(self, at: int) -> None:
        self.sweeps.append(self.any_driver(at).knowledge())

    @precondition(lambda self: self.sweeps)
    @rule(at=pick)
    def a_list_comes_and_what_was_left_behind_is_aborted(self, at: int) -> None:
        knowledge = self.sweeps.pop(at % len(self.sweeps))
        for text, label in list(self.sink.prepared.items()):
            if knowledge.left_behind(label):
                self.abort(text, knowledge.epoch)

    @precondition(lambda self: self.driver.newest)
    @rule(at=pick, which=pick)
    def another_execution_prepares_perhaps_late(self, at: int, which: int) -> None:
        driver = self.any_driver(at)
        if driver.reads:
            self.sink.prepare(list(driver.reads)[which % len(driver.reads)], driver.store.epoch)

    # ------------------------------------------------------------------------------------ what always holds

    @invariant()
    def no_record_names_what_was_aborted(self) -> None:
        for batch in self.durable().batches.values():
            for _, text, _ in batch.get("handles", ()):
                assert text not in self.sink.aborted, "R6: a record names what was aborted"

    @invariant()
    def what_is_visible_is_in_order_and_of_one_execution(self) -> None:
        txids = [txid_of(text) for text in self.sink.committed]
        assert txids == sorted(set(txids)), "law 1: in order, each transaction's rows once"

    @invariant()
    def what_is_recorded_is_visible(self) -> None:
        committed = self.durable().committed
        for txid, record in self.frozen.items():
            if txid <= committed:
                for _, text, _ in record.get("handles", ()):
                    assert text in self.sink.committed, "R4: it is recorded, and not committed"


TestSinkHistories = SinkHistories.TestCase
TestSinkHistories.settings = SETTINGS
