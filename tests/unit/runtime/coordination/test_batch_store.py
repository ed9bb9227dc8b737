"""What is durable of each transaction, where it does not fit one write."""

from __future__ import annotations

from typing import Any

import pytest

from stormline.runtime.coordination.batch_store import Batch, Batches, first_metadata, last_committed, record_of
from stormline.runtime.errors import StateCorrupt, StateTooLarge
from stormline.runtime.state.memory_store import MemoryStateServer, MemoryStateStore
from stormline.topology.attempt import TransactionAttempt

LIMIT = "stormline.runtime.state.state_store.WRITE_BYTES_MAX"


def committed(store: MemoryStateStore, txids: int) -> Batches:
    batches = Batches(store)
    batches.begin({txid: txid for txid in range(1, txids + 2)}, 0)
    batches.fix({txid: Batch(txid, fixed=True) for txid in range(1, txids + 2)})
    for txid in range(1, txids + 1):
        store.write([record_of(TransactionAttempt(txid, 1))])
        batches.forget_before(txid)
    return batches


def test_old_and_new_batches_that_do_not_fit_one_write_go_and_come_in_several(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStateStore.open(MemoryStateServer(), "t")
    batches = committed(store, 39)
    monkeypatch.setattr(LIMIT, 1000)
    batches.begin(dict.fromkeys(range(41, 61), "m" * 100), 39)
    assert [int(name) for name in store.children("batches")] == list(range(39, 61))
    assert Batches(store).known == batches.known


def test_one_batch_that_fits_no_write_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStateStore.open(MemoryStateServer(), "t")
    batches = committed(store, 39)
    monkeypatch.setattr(LIMIT, 1000)
    with pytest.raises(StateTooLarge, match=r"one write of 1 values has 1,\d\d\d bytes, at most 1,000 fit"):
        batches.begin({41: "m" * 1000}, 39)


def test_what_is_found_says_what_may_have_begun() -> None:
    store = MemoryStateStore.open(MemoryStateServer(), "t")
    assert (Batches(store).found_committed, Batches(store).found_begun()) == (0, 0)
    batches = Batches(store)
    batches.begin({1: 1, 2: 2}, 0)
    assert Batches(store).found_begun() == 0
    batches.fix({1: Batch(1, fixed=True), 2: Batch(2, fixed=True)})
    assert Batches(store).found_begun() == 1, "not 2: no commit of it begins before 1 is recorded"
    store.write([record_of(TransactionAttempt(1, 1))])
    found = Batches(store)
    assert (found.found_committed, found.found_begun()) == (1, 2)
    assert list(found.after(1)) == [2]


def test_one_who_only_reads_finds_the_committed_batch_and_the_first_that_has_begun() -> None:
    store = MemoryStateStore.open(MemoryStateServer(), "t")
    assert (last_committed(store), first_metadata(store)) == ((0, None), None)
    Batches(store).begin({1: "first"}, 0)
    assert (last_committed(store), first_metadata(store)) == ((0, None), "first")
    store = MemoryStateStore.open(MemoryStateServer(), "u")
    committed(store, 3)
    assert last_committed(store) == (3, Batch(3, fixed=True))


def test_one_who_reads_while_others_commit_looks_again_until_both_are_of_one_moment() -> None:
    store = MemoryStateStore.open(MemoryStateServer(), "t")
    batches = committed(store, 3)

    class CommitsMeanwhile:
        """Three more commit, and what is old goes, between the first question and the second."""

        def __init__(self) -> None:
            self.asked = 0

        def get(self, path: str) -> Any:
            self.asked += 1
            if self.asked == 2:
                batches.begin({5: 5, 6: 6, 7: 7}, 3)
                batches.fix({txid: Batch(txid, fixed=True) for txid in (5, 6, 7)})
                store.write([record_of(TransactionAttempt(6, 1))])
                batches.begin({8: 8}, 6)
            return store.get(path)

    assert last_committed(CommitsMeanwhile()) == (6, Batch(6, fixed=True))


def test_a_committed_transaction_without_its_batch_is_told() -> None:
    store = MemoryStateStore.open(MemoryStateServer(), "t")
    store.write([record_of(TransactionAttempt(5, 1))])
    with pytest.raises(StateCorrupt, match=r"transaction 5 is stored as committed, and its batch is not there.*Some"):
        last_committed(store)
