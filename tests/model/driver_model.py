"""A driver by hand: the real coordinator and the real Batches, and nothing between them that waits or has threads."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from stormline.runtime import coordinator
from stormline.runtime.batches import Batch, Batches, record_of
from stormline.runtime.coordinator import Action, Commit, Committed, Event, Failed, Initialized, Process, Processed
from stormline.runtime.errors import Fenced
from stormline.runtime.memory_state_store import MemoryStateServer, MemoryStateStore
from stormline.topology.attempt import TransactionAttempt

TOPOLOGY = "model"
KEYS = ("left", "right")


class Token(NamedTuple):
    """Who acts: what user code is given to be fenced by."""

    epoch: int
    txid: int
    attempt: int


@dataclass
class Database:
    """Two keys of value and txid, each fenced by the token, each written in a transaction of its own."""

    applied: dict[str, list[int]] = field(default_factory=lambda: {key: [] for key in KEYS})
    txid: dict[str, int] = field(default_factory=lambda: dict.fromkeys(KEYS, 0))
    token: dict[str, Token] = field(default_factory=lambda: dict.fromkeys(KEYS, Token(0, 0, 0)))

    def apply(self, key: str, token: Token, offsets: list[int]) -> bool:
        """Apply a batch once; tell whether the token let it in."""
        if token < self.token[key]:
            return False
        self.token[key] = token
        if token.txid > self.txid[key]:
            self.txid[key] = token.txid
            self.applied[key] += offsets
        return True


class ModelDriver:
    """One driver: does what the coordinator says, when it is told to."""

    def __init__(self, server: MemoryStateServer, pending_max: int) -> None:
        self.store = MemoryStateStore.open(server, TOPOLOGY)
        self.batches = Batches(self.store)
        stored = {txid: batch.metadata for txid, batch in self.batches.active().items()}
        self.issued: list[Process] = []
        self.to_commit: TransactionAttempt | None = None
        self.committing: TransactionAttempt | None = None
        self.effects: set[str] = set()
        self.state, actions = coordinator.start(self.batches.committed, stored, self.store.epoch, pending_max)
        self.take(actions)

    def take(self, actions: list[Action]) -> None:
        """Take note of what is to be done."""
        for action in actions:
            if isinstance(action, Process):
                self.issued.append(action)
            elif isinstance(action, Commit):
                self.to_commit = action.attempt
        current = [a for a in (self.to_commit, self.committing) if a is not None]
        for attempt in current:
            if not coordinator.is_current(self.state, attempt):
                self.to_commit = None if self.to_commit == attempt else self.to_commit
                self.committing = None if self.committing == attempt else self.committing

    def step(self, event: Event) -> None:
        """Hand the coordinator an event."""
        self.state, actions = coordinator.step(self.state, event)
        self.take(actions)

    def newest_end(self) -> int:
        """Return the offset at which the next batch begins."""
        known = self.batches.known
        return int(known[max(known)].metadata[1]) if known else 0

    def initialize(self, end: int) -> None:
        """Begin the next batch."""
        metadata = [self.newest_end(), end]
        self.batches.begin({coordinator.next_txid(self.state): metadata})
        self.step(Initialized(metadata))

    def processed(self, attempt: TransactionAttempt) -> None:
        """Fix the batch, as the runner does before it may be committed, and report it."""
        if coordinator.is_current(self.state, attempt):
            metadata = self.batches.known[attempt.transaction_id].metadata
            self.batches.fix({attempt.transaction_id: Batch(metadata, True, metadata[1] - metadata[0])})
        self.step(Processed(attempt))

    def failed(self, attempt: TransactionAttempt) -> None:
        """Report a failure."""
        self.step(Failed(attempt))

    def begin_commit(self) -> None:
        """Let the effects of the commit begin."""
        assert self.to_commit is not None
        self.committing, self.to_commit, self.effects = self.to_commit, None, set()

    def record_commit(self) -> bool:
        """Record the commit; tell whether this driver still may."""
        attempt = self.committing
        assert attempt is not None
        try:
            self.store.write([record_of(attempt)])
        except Fenced:
            return False
        self.batches.recorded(attempt)
        self.committing = None
        self.step(Committed(attempt))
        return True
