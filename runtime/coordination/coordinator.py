"""The coordinator: a pure state machine that decides which attempts are processed, replayed and given up.

It touches no clock, no socket and no thread: `step(state, event) -> state, actions`. Which commit begins when is
decided by the commit queue; the coordinator tells it what may be committed, and what no longer may.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from stormline.runtime.coordination.txid_map import TxidMap
from stormline.runtime.messages.wave import AttemptResult
from stormline.topology.attempt import TransactionAttempt

ATTEMPTS_PER_EPOCH = 10**9


@dataclass(frozen=True, slots=True)
class Active:
    """An active transaction: begun, not yet committed. `failures` counts its own failed attempts."""

    attempt: TransactionAttempt
    metadata: Any
    processed: bool = False
    failures: int = 0


@dataclass(frozen=True, slots=True)
class State:
    """All that the coordinator knows.

    `active` holds the txids after those of which it has heard that they are committed, without gaps, ascending; states
    share what a step does not change, so that it costs as much with thousands of them as with ten. Attempt ids begin at
    `attempt_base` + 1, which is greater than any id of an earlier epoch.
    """

    active: TxidMap[Active]
    pending_max: int
    attempt_base: int
    failures_max: int | None = None


@dataclass(frozen=True, slots=True)
class Initialized:
    """The spout has defined the next batch."""

    metadata: Any


@dataclass(frozen=True, slots=True)
class Processed:
    """An attempt has finished its processing phase, with this result."""

    result: AttemptResult

    @property
    def attempt(self) -> TransactionAttempt:
        """Whose result it is."""
        return self.result.attempt


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
class AwaitCommit:
    """Add what an attempt has given to the commit queue: it commits when its turn comes."""

    result: AttemptResult


@dataclass(frozen=True, slots=True)
class Revoke:
    """Take back from the commit queue all attempts from `txid` on."""

    txid: int


@dataclass(frozen=True, slots=True)
class GiveUp:
    """Stop: this batch has failed as often as it may."""

    attempt: TransactionAttempt
    failures: int
    cause: Any


Action = Process | AwaitCommit | Revoke | GiveUp


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
    state = State(TxidMap(committed + 1), pending_max, (epoch - 1) * ATTEMPTS_PER_EPOCH, failures_max)
    actions: list[Action] = []
    for metadata in stored.values():
        state, more = step(state, Initialized(metadata))
        actions += more
    return state, actions


def next_txid(state: State) -> int:
    """Return the txid of the next batch that has not begun."""
    return state.active.following


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
        return _processed(state, event)
    if isinstance(event, Failed):
        return _failed(state, event)
    return _committed(state, event.attempt), []


def _with(state: State, changed: Mapping[int, Active]) -> State:
    return replace(state, active=state.active.updated(changed))


def _initialized(state: State, metadata: Any) -> tuple[State, list[Action]]:
    txid = next_txid(state)
    attempt = TransactionAttempt(txid, state.attempt_base + 1)
    return _with(state, {txid: Active(attempt, metadata)}), [Process(attempt, metadata)]


def _processed(state: State, event: Processed) -> tuple[State, list[Action]]:
    txid = event.attempt.transaction_id
    active = state.active[txid]
    if active.processed:
        return state, []
    return _with(state, {txid: replace(active, processed=True)}), [AwaitCommit(event.result)]


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
        again[txid] = replace(active, attempt=attempt, processed=False)
    again[first] = replace(again[first], failures=failures)
    replays = [Process(active.attempt, active.metadata) for active in again.values()]
    return _with(state, again), [Revoke(first), *replays]


def _committed(state: State, attempt: TransactionAttempt) -> State:
    txid = attempt.transaction_id
    assert txid == state.active.first, (txid, state.active.first)
    assert state.active[txid].processed, attempt
    return replace(state, active=state.active.without_first())
