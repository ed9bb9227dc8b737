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
    batches.begin({txid: txid for txid in range(1, txids + 2)})
    batches.fix({txid: Batch(txid, fixed=True) for txid in range(1, txids + 2)})
    for txid in range(1, txids + 1):
        store.write([record_of(TransactionAttempt(txid, 1))])
        batches.recorded(TransactionAttempt(txid, 1))
    return batches


def test_old_and_new_batches_that_do_not_fit_one_write_go_and_come_in_several(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStateStore.open(MemoryStateServer(), "t")
    batches = committed(store, 39)
    monkeypatch.setattr(LIMIT, 1000)
    batches.begin(dict.fromkeys(range(41, 61), "m" * 100))
    assert [int(name) for name in store.children("batches")] == list(range(39, 61))
    assert Batches(store).known == batches.known


def test_one_batch_that_fits_no_write_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStateStore.open(MemoryStateServer(), "t")
    batches = committed(store, 39)
    monkeypatch.setattr(LIMIT, 1000)
    with pytest.raises(StateTooLarge, match=r"one write of 1 values has 1,\d\d\d bytes, at most 1,000 fit"):
        batches.begin({41: "m" * 1000})
