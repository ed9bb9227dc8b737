"""The commit queue: which commit begins next, and whether it is recorded. Law 1 (order) is decided here, only here.

It touches no clock, no socket and no thread. Whoever drives it asks `next` what to do, does that, and says what came of
it: the committer's thread, the model and the tests drive this code.

    add ──> waiting ──next──> RUNS ──finished──> RECORDING ──recorded──> committed
               │    <──cut──    │ revoke, revoke_running, close
            revoke           REVOKED ──finished──> gone, as where the commit phase has failed

What begins may be a group, by law 1's exception: transactions that one step of one store makes durable. Its commit
phases run one after another; `cut` ends them, and says how many have become one step.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from stormline.runtime.messages.wave import AttemptResult
from stormline.topology.attempt import TransactionAttempt

PROOF_SECS = 0.5
"""Age from which the last confirmed write no longer shows that this driver owns the topology."""

PROOF_TRIES = 3
"""How often ZooKeeper is asked for a proof that is not too old when it comes: the driver may have slept meanwhile.
Where it is never younger ZooKeeper is that slow."""


class Stage(Enum):
    """Where the commit stands that has begun and not ended."""

    RUNS = "its effects happen"
    REVOKED = "it is not recorded; effects may still happen, so nothing begins before it has ended"
    RECORDING = "its effects have happened, and its record is on its way: nothing can take it back"


@dataclass(slots=True)
class Running:
    """What has begun and not ended: consecutive transactions, recorded together.

    `begun_before`: the last transaction of which an effect may have happened before these began. `revoked_from`: the
    first of them that was taken back, if any.
    """

    results: tuple[AttemptResult, ...]
    begun_before: int
    stage: Stage = Stage.RUNS
    revoked_from: int | None = None

    @property
    def first(self) -> int:
        """The first transaction."""
        return self.results[0].attempt.transaction_id

    @property
    def last(self) -> TransactionAttempt:
        """The attempt whose record says that all of them are committed."""
        return self.results[-1].attempt


class Idle(Enum):
    """What to do where no commit may begin."""

    WAIT = "ask again when something has been added, or it is closed"
    LOOK_AGAIN = "ask again soon: the connection is suspended"
    END = "ask no more"


@dataclass(frozen=True, slots=True)
class Prove:
    """Ask ZooKeeper whether this driver owns the topology still, for the commit of `result`; then ask again."""

    result: AttemptResult


@dataclass(frozen=True, slots=True)
class Begin:
    """Let the effects of these transactions happen, in their order; then say `finished`."""

    results: tuple[AttemptResult, ...]


@dataclass(frozen=True, slots=True)
class Record:
    """Record that all is committed up to `attempt`; then say `recorded`."""

    attempt: TransactionAttempt


Next = Begin | Prove | Idle


@dataclass(slots=True)
class CommitQueue:
    """The commits of one driver: `waiting` ones by txid, and the one that is `running`.

    Args:
        committed: the last transaction that is recorded. Everybody else asks here.
        begun: the last transaction of which a commit effect may have happened: `committed`, or a later one.
        group_max: how many transactions may become durable in one step; 1: each by itself.

    `alone_until`: up to this transaction each commits by itself, to see which of a group has failed.
    """

    committed: int
    begun: int
    waiting: dict[int, AttemptResult] = field(default_factory=dict)
    running: Running | None = None
    proofs_asked: int = 0
    stopping: bool = False
    closed: bool = False
    group_max: int = 1
    alone_until: int = 0

    def add(self, result: AttemptResult) -> None:
        """Let a processed attempt wait for its turn, whichever others wait; after a stop nothing more does."""
        txid = result.attempt.transaction_id
        assert txid > self.committed, (txid, self.committed)
        assert txid not in self.waiting, (result.attempt, self.waiting[txid].attempt)
        if not self.stopping:
            self.waiting[txid] = result

    def next(self, connected: bool, proof_secs: float) -> Next:
        """Begin the next commit, where one may begin; else tell what is to be done first.

        Args:
            connected: whether the ownership is certain, as far as the connection tells.
            proof_secs: how long ago the newest write was sent that ZooKeeper has confirmed to this owner.
        """
        if self.closed:
            return Idle.END
        head = self.waiting.get(self.committed + 1)
        if head is None or self.running is not None:
            self.proofs_asked = 0
            return Idle.WAIT
        if not connected:
            return Idle.LOOK_AGAIN
        if proof_secs > PROOF_SECS and self.proofs_asked < PROOF_TRIES:
            self.proofs_asked += 1
            return Prove(head)
        return self._begin(self._group(head))

    def _group(self, head: AttemptResult) -> tuple[AttemptResult, ...]:
        """Return what commits together with `head`, by law 1's exception: what waits right behind it.

        What waits is fixed, and so stays the same batch whatever becomes of the group (law 2, sameness). That several
        may have begun when a driver dies is stored with what fixes them: `Batches.found_begun`.
        """
        first = head.attempt.transaction_id
        size_max = self.group_max if first > self.alone_until else 1
        group = [head]
        while len(group) < size_max and (behind := self.waiting.get(first + len(group))) is not None:
            group.append(behind)
        return tuple(group)

    def _begin(self, results: tuple[AttemptResult, ...]) -> Begin:
        self.proofs_asked = 0
        for result in results:
            del self.waiting[result.attempt.transaction_id]
        self.running = Running(results, self.begun)
        self.begun = max(self.begun, self.running.last.transaction_id)
        return Begin(results)

    def wanted(self, txid: int) -> bool:
        """Return whether a transaction of those that run was not taken back."""
        running = self.running
        assert running is not None
        return running.revoked_from is None or txid < running.revoked_from

    def cut(self, held: int, failed: bool) -> int:
        """End the commit phases of a group; return how many of its transactions are to become durable in one step.

        Where that is none, nothing runs any more. Those whose commit phase has not begun wait again, unless they were
        taken back.

        Args:
            held: how many have ended well.
            failed: whether the one after these did not.
        """
        running = self.running
        assert running is not None
        assert running.stage is not Stage.RECORDING, running
        kept = 0 if running.stage is Stage.REVOKED else held
        assert all(self.wanted(result.attempt.transaction_id) for result in running.results[:kept]), running
        for result in running.results[held + failed :]:
            txid = result.attempt.transaction_id
            if self.wanted(txid) and not self.stopping:
                assert txid not in self.waiting, (result.attempt, self.waiting[txid].attempt)
                self.waiting[txid] = result
        self.begun = max(running.begun_before, running.first - 1 + held + failed)
        if kept:
            running.results, running.revoked_from = running.results[:kept], None
        else:
            self.running = None
        return kept

    def finished(self, failed: bool) -> Record | None:
        """End the commit phase, and return the record to write; None: there is none, and another attempt may come."""
        running = self.running
        assert running is not None
        if failed or running.revoked_from is not None:
            if len(running.results) > 1:
                self.alone_until = running.last.transaction_id
            self.running = None
            return None
        running.stage = Stage.RECORDING
        return Record(running.last)

    def recorded(self, written: bool) -> None:
        """End the record; where it may not have been `written` this driver commits nothing more."""
        running = self.running
        assert running is not None
        assert running.stage is Stage.RECORDING, running
        self.running = None
        if written:
            self.committed = running.last.transaction_id
        else:
            self.stop()

    def revoke(self, txid: int) -> None:
        """Take back all attempts from `txid` on: others take their places."""
        for later in [waiting for waiting in self.waiting if waiting >= txid]:
            del self.waiting[later]
        if self.running is not None and self.running.last.transaction_id >= txid:
            revoked = self.revoke_running(txid)
            assert revoked, f"{self.running.last} is being recorded, and fails"

    def revoke_running(self, txid: int = 0) -> bool:
        """Let what runs not be recorded from `txid` on, whenever it ends; return whether that is so.

        A record on its way stays one.
        """
        running = self.running
        if running is None or running.stage is Stage.RECORDING:
            return False
        if self.wanted(txid):
            running.revoked_from = txid
        if not self.wanted(running.first):
            running.stage = Stage.REVOKED
        return True

    def stop(self) -> None:
        """Begin no further commit; the one that runs may end."""
        self.stopping = True
        self.waiting.clear()

    def close(self) -> None:
        """Begin no further commit, and record none but the one whose record is on its way."""
        self.stop()
        self.closed = True
        self.revoke_running()
