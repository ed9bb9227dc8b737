"""What is durable of each transaction, where it does not fit one write."""

from __future__ import annotations

import pytest

from stormline.runtime.coordination.batch_store import Batch, Batches, record_of
from stormline.runtime.errors import StateTooLarge
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
