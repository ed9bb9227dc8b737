"""A model that never fails shows nothing: each of its checks finds the fault that it is there for.

Laws by number, as docs/laws.md has them: law 1 (order), law 2 (sameness), law 3 (attempts), law 6 (fencing).
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
from stormline.runtime.coordination.commit_queue import Begin, CommitQueue, Idle, Next, Prove, Record, Stage
from stormline.runtime.coordination.coordinator import Action, Process, State
from stormline.runtime.errors import Fenced
from stormline.runtime.messages.wave import AttemptResult, WaveAttempt
from stormline.runtime.state.memory_store import MemoryStateStore
from stormline.runtime.state.state_store import Op, Put
from tests.model.database import Database, Token
from tests.model.test_coordinator_model import SETTINGS, Histories

start = coordinator.start
finished, next_step, begin_commit = CommitQueue.finished, CommitQueue.next, CommitQueue._begin
fix, begin = Batches.fix, Batches.begin
wave_attempt = BatchDefinitions.wave_attempt
write = MemoryStateStore.write


def starts_as_the_first_driver(
    committed: int, stored: Mapping[int, Any], epoch: int, pending_max: int
) -> tuple[State, list[Action]]:
    """Begin the attempt ids at 1 again."""
    return start(committed, stored, 1, pending_max)


def takes_back_nothing(queue: CommitQueue, txid: int) -> None:
    """Let all that waits keep its place, when it is another attempt's."""
    queue.revoke_running()


def takes_back_only_what_waits(queue: CommitQueue, txid: int) -> None:
    """Let an attempt that has failed be recorded."""
    for later in [waiting for waiting in queue.waiting if waiting >= txid]:
        del queue.waiting[later]


def records_whatever_ends(queue: CommitQueue, failed: bool) -> Record | None:
    """Forget that it was revoked."""
    if queue.running is not None and not failed:
        queue.running.stage, queue.running.revoked_from = Stage.RUNS, None
    return finished(queue, failed)


def revokes_always(queue: CommitQueue) -> bool:
    """Take an attempt back whose record is on its way."""
    return queue.running is not None


def counts_what_may_not_be_recorded(queue: CommitQueue, written: bool) -> None:
    """Go on where nothing is heard of a record."""
    assert queue.running is not None
    queue.committed, queue.running = queue.running.last.transaction_id, None


def begins_whatever_waits_first(queue: CommitQueue, connected: bool, proof_secs: float) -> Next:
    """Begin what waits, whatever is recorded."""
    if queue.running is not None or not queue.waiting:
        return Idle.WAIT
    if proof_secs > 0:
        return Prove(queue.waiting[min(queue.waiting)])
    return queue._begin((queue.waiting[min(queue.waiting)],)) if connected else Idle.LOOK_AGAIN


def begins_beside_another(queue: CommitQueue, connected: bool, proof_secs: float) -> Next:
    """Begin what is next, although an attempt of it still runs."""
    if queue.running is not None and queue.running.stage is Stage.REVOKED:
        queue.running = None
    return next_step(queue, connected, proof_secs)


def begins_unnoticed(queue: CommitQueue, results: tuple[AttemptResult, ...]) -> Begin:
    """Forget that effects may have happened."""
    begun = queue.begun
    step = begin_commit(queue, results)
    queue.begun = begun
    return step


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


def begins_with_litter(batches: Batches, metadata: Mapping[int, Any], committed: int) -> None:
    """Leave a znode for each batch."""
    begin(batches, metadata, committed)
    batches._store.write([Put(f"litter/{txid}", 1) for txid in metadata])


def begins_without_cleanup(batches: Batches, metadata: Mapping[int, Any], committed: int) -> None:
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


BY_LAW_OR_ASSERTION = r"law [34]|\A\d+:\d+\n"
"""By whichever comes first: a law of the model, or the coordinator's own assertion."""

FAULTS = [
    (coordinator, "start", starts_as_the_first_driver, "law 3: attempt ids rise"),
    (coordinator, "is_current", lambda state, attempt: attempt.transaction_id in state.active, BY_LAW_OR_ASSERTION),
    (coordinator, "has_room", lambda state: len(state.active) <= state.pending_max, "active ≤ pending"),
    (CommitQueue, "revoke", takes_back_nothing, "law 3: a commit is of the attempt that counts"),
    (CommitQueue, "revoke", takes_back_only_what_waits, "law 3: a commit is of the attempt that counts"),
    (CommitQueue, "finished", records_whatever_ends, "law 3: what was revoked is not recorded"),
    (CommitQueue, "recorded", counts_what_may_not_be_recorded, "law [16]"),
    (CommitQueue, "next", begins_whatever_waits_first, "law 1"),
    (CommitQueue, "next", begins_beside_another, "law 3: the effects of an attempt end before"),
    (CommitQueue, "next", lambda *_, **__: Idle.WAIT, "its turn has come"),
    (CommitQueue, "_begin", begins_unnoticed, "law 2: its commit may have begun"),
    (CommitQueue, "revoke_running", revokes_always, "law 3: an attempt is taken back while its record"),
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


@pytest.mark.proof
@pytest.mark.parametrize(("where", "name", "broken", "message"), FAULTS)
def test_the_model_finds_a_coordinator_that_breaks_a_law(
    where: object, name: str, broken: object, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(where, name, broken)
    limits = settings(SETTINGS, max_examples=2000, phases=[Phase.generate], report_multiple_bugs=False)
    with pytest.raises(AssertionError, match=message):
        run_state_machine_as_test(Histories, settings=limits)
