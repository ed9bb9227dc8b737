"""The coordinator: a pure state machine that decides what is processed, replayed and committed, and when.

It touches no clock, no socket and no thread: `step(state, event) -> state, actions`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

from stormline.runtime.coordination.txid_map import TxidMap
from stormline.topology.attempt import TransactionAttempt

ATTEMPTS_PER_EPOCH = 10**9


class Status(Enum):
    """Where an active transaction stands."""

    PROCESSING = "processing"
    PROCESSED = "processed"
    COMMITTING = "committing"


@dataclass(frozen=True, slots=True)
class Active:
    """An active transaction: begun, not yet committed. `failures` counts its own failed attempts."""

    attempt: TransactionAttempt
    metadata: Any
    status: Status
    failures: int = 0


@dataclass(frozen=True, slots=True)
class State:
    """All that the coordinator knows.

    `active` holds the txids after `committed` without gaps, ascending; states share what a step does not change, so
    that it costs as much with thousands of them as with ten. Attempt ids begin at `attempt_base` + 1,
    which is greater than any id of an earlier epoch.
    """

    committed: int
    pending_max: int
    attempt_base: int
    failures_max: int | None = None
    active: TxidMap[Active] = field(default_factory=TxidMap)


@dataclass(frozen=True, slots=True)
class Initialized:
    """The spout has defined the next batch."""

    metadata: Any


@dataclass(frozen=True, slots=True)
class Processed:
    """An attempt has finished its processing phase."""

    attempt: TransactionAttempt


@dataclass(frozen=True, slots=True)
class Failed:
    """An attempt has failed, in either phase (law 4, failure). `counts` is false where the batch was not to blame."""

    attempt: TransactionAttempt
    cause: Any = None
    counts: bool = True


@dataclass(frozen=True, slots=True)
class Committed:
    """The commit of an attempt is durably recorded."""

    attempt: TransactionAttempt


Event = Initialized | Processed | Failed | Committed


@dataclass(frozen=True, slots=True)
class Process:
    """Run the processing phase of an attempt."""

    attempt: TransactionAttempt
    metadata: Any


@dataclass(frozen=True, slots=True)
class Commit:
    """Run the commit phase of an attempt."""

    attempt: TransactionAttempt


@dataclass(frozen=True, slots=True)
class GiveUp:
    """Stop: this batch has failed as often as it may."""

    attempt: TransactionAttempt
    failures: int
    cause: Any


Action = Process | Commit | GiveUp


def start(
    committed: int, stored: Mapping[int, Any], epoch: int, pending_max: int, failures_max: int | None = None
) -> tuple[State, list[Action]]:
    """Return the first state of a driver, and the batches to process: those whose metadata is stored.

    Args:
        committed: the last txid that is durably committed, 0 at the very first.
        stored: metadata by txid of the transactions after it, without gaps.
        epoch: this driver's ownership number, from 1.
    """
    assert list(stored) == list(range(committed + 1, committed + 1 + len(stored))), stored
    state = State(committed, pending_max, (epoch - 1) * ATTEMPTS_PER_EPOCH, failures_max)
    actions: list[Action] = []
    for metadata in stored.values():
        state, more = step(state, Initialized(metadata))
        actions += more
    return state, actions


def next_txid(state: State) -> int:
    """Return the txid of the next batch that has not begun."""
    return state.committed + len(state.active) + 1


def has_room(state: State) -> bool:
    """Return whether one more transaction may become active."""
    return len(state.active) < state.pending_max


def is_current(state: State, attempt: TransactionAttempt) -> bool:
    """Return whether `attempt` is the one that counts for its transaction (law 3, attempts)."""
    active = state.active.get(attempt.transaction_id)
    return active is not None and active.attempt == attempt


def step(state: State, event: Event) -> tuple[State, list[Action]]:
    """Return the state after `event`, and what to do. An event of an attempt that is not current changes nothing."""
    if isinstance(event, Initialized):
        return _initialized(state, event.metadata)
    if not is_current(state, event.attempt):
        return state, []
    if isinstance(event, Processed):
        return _processed(state, event.attempt)
    if isinstance(event, Failed):
        return _failed(state, event)
    return _committed(state, event.attempt)


def _with(state: State, changed: Mapping[int, Active]) -> State:
    return replace(state, active=state.active.updated(changed))


def _initialized(state: State, metadata: Any) -> tuple[State, list[Action]]:
    txid = next_txid(state)
    attempt = TransactionAttempt(txid, state.attempt_base + 1)
    state = _with(state, {txid: Active(attempt, metadata, Status.PROCESSING)})
    return state, [Process(attempt, metadata)]


def _processed(state: State, attempt: TransactionAttempt) -> tuple[State, list[Action]]:
    active = state.active[attempt.transaction_id]
    if active.status is not Status.PROCESSING:
        return state, []
    return _commit_head(_with(state, {attempt.transaction_id: replace(active, status=Status.PROCESSED)}))


def _commit_head(state: State) -> tuple[State, list[Action]]:
    head = state.active.get(state.committed + 1)
    if head is None or head.status is not Status.PROCESSED:
        return state, []
    state = _with(state, {state.committed + 1: replace(head, status=Status.COMMITTING)})
    return state, [Commit(head.attempt)]


def _failed(state: State, event: Failed) -> tuple[State, list[Action]]:
    first = event.attempt.transaction_id
    failures = state.active[first].failures + event.counts
    if state.failures_max is not None and failures >= state.failures_max:
        return state, [GiveUp(event.attempt, failures, event.cause)]
    again: dict[int, Active] = {}
    for txid in range(first, next_txid(state)):
        active = state.active[txid]
        attempt = TransactionAttempt(txid, active.attempt.attempt_id + 1)
        assert attempt.attempt_id <= state.attempt_base + ATTEMPTS_PER_EPOCH, attempt
        again[txid] = replace(active, attempt=attempt, status=Status.PROCESSING)
    again[first] = replace(again[first], failures=failures)
    return _with(state, again), [Process(active.attempt, active.metadata) for active in again.values()]


def _committed(state: State, attempt: TransactionAttempt) -> tuple[State, list[Action]]:
    txid = attempt.transaction_id
    if state.active[txid].status is not Status.COMMITTING:
        return state, []
    assert txid == state.committed + 1, (txid, state.committed)
    return _commit_head(replace(state, committed=txid, active=state.active.without_first()))
