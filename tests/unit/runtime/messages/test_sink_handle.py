"""Handles as they are stored."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from stormline.runtime.coordination.batch_store import Batches
from stormline.runtime.errors import StateCorrupt
from stormline.runtime.messages.sink_handle import SinkHandle, from_value, to_value
from stormline.runtime.state.memory_store import MemoryStateServer, MemoryStateStore
from stormline.runtime.state.state_store import Put
from stormline.topology.transaction_label import TransactionLabel, label_scope

TEXT = TransactionLabel(label_scope("t", "sink"), 1, 1, 1, 2, 3).text
HANDLE = SinkHandle("sink", TEXT, {"name": TEXT, "files": [b"x"]})


def test_what_was_stored_is_read_again() -> None:
    assert from_value(to_value([HANDLE])) == (HANDLE,)
    assert from_value([]) == ()
    assert pickle.loads(pickle.dumps(HANDLE)) == HANDLE


def test_a_stored_batch_that_is_not_fixed_has_no_handles() -> None:
    """What is withdrawn is withdrawn as a whole (R6)."""
    store = MemoryStateStore.open(MemoryStateServer(), "t")
    value = {"metadata": 1, "fixed": False, "rows": 0, "partitions": [], "commit_id": 0, "group_max": 1}
    store.write([Put("batches/000000000001", {**value, "handles": to_value([HANDLE])})])
    with pytest.raises(StateCorrupt, match="it is not fixed, and has handles; nothing was changed"):
        Batches(store)
    store.close()


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({}, "handles are a list"),
        ([["sink", TEXT]], "a handle is a component, a label and data"),
        ([["sink", 3, 0]], "a handle is a component, a label and data"),
        ([["sink", "other", 0]], "'other' is no label"),
        ([["sink", TEXT, 0], ["sink", TEXT, 1]], "a label comes twice"),
    ],
)
def test_what_nobody_stored_like_this_is_refused(value: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        from_value(value)
