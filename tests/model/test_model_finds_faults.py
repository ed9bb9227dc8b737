"""A model that never fails shows nothing: each of its checks finds the fault that it is there for.

Laws by number, as docs/laws.md has them: law 2 (sameness), law 3 (attempts), law 6 (fencing).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from stormline.runtime.coordination import coordinator
from stormline.runtime.coordination.batch_definitions import BatchDefinitions
from stormline.runtime.coordination.batch_store import Batch, Batches
from stormline.runtime.coordination.coordinator import Action, Commit, Process, State
from stormline.runtime.errors import Fenced
from stormline.runtime.messages.wave import WaveAttempt
from stormline.runtime.state.memory_store import MemoryStateStore
from stormline.runtime.state.state_store import Op, Put
from stormline.topology.attempt import TransactionAttempt
from tests.model.database import Database, Token
from tests.model.test_coordinator_model import SETTINGS, Histories

start, commit_head = coordinator.start, coordinator._commit_head
fix, begin = Batches.fix, Batches.begin
wave_attempt = BatchDefinitions.wave_attempt
write = MemoryStateStore.write


def starts_as_the_first_driver(
    committed: int, stored: Mapping[int, Any], epoch: int, pending_max: int
) -> tuple[State, list[Action]]:
    """Begin the attempt ids at 1 again."""
    return start(committed, stored, 1, pending_max)


def commits_the_first_attempt(state: State) -> tuple[State, list[Action]]:
    """Hand out the first token of this driver, whatever has failed since."""
    state, actions = commit_head(state)
    return state, [Commit(TransactionAttempt(a.attempt.transaction_id, state.attempt_base + 1)) for a in actions]


def lets_everybody_in(database: Database, key: str, token: Token, offsets: list[int]) -> bool:
    """Look at the txid only."""
    if token.txid > database.txid[key]:
        database.txid[key] = token.txid
        database.applied[key] += offsets
    return True


def fixes_other_rows(batches: Batches, given: Mapping[int, Batch]) -> None:
    """Store one row more than there are."""
    fix(batches, {txid: replace(batch, rows=batch.rows + 1) for txid, batch in given.items()})


def fixes_all_again(batches: Batches, given: Mapping[int, Batch]) -> None:
    """Store what is given as it is, and every other fixed batch under another commit id."""
    others = {t: replace(b, commit_id=b.commit_id + 1) for t, b in batches.known.items() if b.fixed and t not in given}
    fix(batches, {**others, **given})


def never_frozen(definitions: BatchDefinitions, action: Process, txid_begun: int) -> WaveAttempt:
    """Read a batch anew although an effect of it may have happened."""
    return wave_attempt(definitions, action, 0)


def begins_with_litter(batches: Batches, metadata: Mapping[int, Any]) -> None:
    """Leave a znode for each batch."""
    begin(batches, metadata)
    batches._store.write([Put(f"litter/{txid}", 1) for txid in metadata])


def begins_without_cleanup(batches: Batches, metadata: Mapping[int, Any]) -> None:
    """Keep all batches."""
    batches._put({txid: Batch(value) for txid, value in metadata.items()})


def proves_nothing(store: MemoryStateStore, ops: Sequence[Op]) -> None:
    """Fence only who has something to write."""
    if ops:
        write(store, ops)


def writes_and_is_fenced(store: MemoryStateStore, ops: Sequence[Op]) -> None:
    """Tell a zombie that it is fenced, and write what it wanted."""
    try:
        write(store, ops)
    except Fenced:
        nodes = store._server.topologies[store._topology_id].nodes
        nodes.update({change.path: change.data for change in store._tree.plan(ops) if change.data is not None})
        raise


FAULTS = [
    (coordinator, "start", starts_as_the_first_driver, "law 3: attempt ids rise"),
    (coordinator, "is_current", lambda state, attempt: attempt.transaction_id in state.active, "law [34]"),
    (coordinator, "has_room", lambda state: len(state.active) <= state.pending_max, "active ≤ pending"),
    (coordinator, "_commit_head", commits_the_first_attempt, "law 3: a commit is of the attempt that counts"),
    (coordinator, "_commit_head", lambda state: (state, []), "its turn has come"),
    (Database, "apply", lets_everybody_in, "law 6: no effect with a stale token"),
    (Batches, "fix", fixes_other_rows, "law 2"),
    (Batches, "fix", fixes_all_again, "law 2"),
    (BatchDefinitions, "wave_attempt", never_frozen, "law 2"),
    (BatchDefinitions, "stale_after", lambda *_: {}, "a stale batch is in the way"),
    (Batches, "begin", begins_with_litter, "nothing removes these"),
    (Batches, "begin", begins_without_cleanup, "twice what may be pending, and one"),
    (MemoryStateStore, "write", proves_nothing, "law 6: a zombie is fenced"),
    (MemoryStateStore, "write", writes_and_is_fenced, "law 6: who is fenced changes nothing"),
]


@pytest.mark.parametrize(("where", "name", "broken", "message"), FAULTS)
def test_the_model_finds_a_coordinator_that_breaks_a_law(
    where: object, name: str, broken: object, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(where, name, broken)
    limits = settings(SETTINGS, max_examples=2000, phases=[Phase.generate], report_multiple_bugs=False)
    with pytest.raises(AssertionError, match=message):
        run_state_machine_as_test(Histories, settings=limits)
