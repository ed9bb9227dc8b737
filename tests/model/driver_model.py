"""A driver by hand: the real coordinator, commit queue, batches and definitions; nothing between them waits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import inf
from typing import Any, NamedTuple

from stormline.runtime.coordination import coordinator
from stormline.runtime.coordination.batch_definitions import BatchDefinitions
from stormline.runtime.coordination.batch_store import Batches, record_of
from stormline.runtime.coordination.commit_queue import Begin, CommitQueue, Prove, Stage
from stormline.runtime.coordination.coordinator import (
    Action,
    AwaitCommit,
    Committed,
    Event,
    Failed,
    Initialized,
    Process,
    Processed,
    Revoke,
)
from stormline.runtime.errors import Fenced
from stormline.runtime.messages.sink_handle import Handles, to_value
from stormline.runtime.messages.wave import AttemptResult, PartitionBatch, WaveAttempt
from stormline.runtime.state.memory_store import MemoryStateServer, MemoryStateStore
from stormline.runtime.world.world import REAL
from stormline.topology.attempt import TransactionAttempt
from stormline.topology.topology import ComponentKind
from tests.model.database import Token
from tests.model.durable import path_of

TOPOLOGY = "model"


class Read(NamedTuple):
    """What one attempt has read: the offsets from `first` up to `end`, to be committed under `commit_id`."""

    metadata: Any
    first: int
    end: int
    commit_id: int
    group_max: int = 1
    handles: Handles = ()

    @property
    def record(self) -> dict[str, Any]:
        """What has to be stored of it before its commit begins."""
        rows = self.end - self.first
        partitions = [[0, self.end, rows, 0, True]]
        record = {
            "metadata": self.metadata,
            "fixed": True,
            "rows": rows,
            "partitions": partitions,
            "commit_id": self.commit_id,
            "group_max": self.group_max,
        }
        return {**record, "handles": to_value(self.handles)} if self.handles else record


class ModelDriver:
    """One driver: does what coordinator and commit queue say, when it is told to.

    Batches of an opaque spout end where the attempt's reading ends; those of any other where they were begun to end.
    `live`: by txid the attempt that was last told to be processed, and so the only one that counts. Of a group that
    runs, `held` commit phases have ended well; `failing` is the one that did not, and is told of after the others.
    """

    def __init__(
        self,
        server: MemoryStateServer,
        source: list[int],
        kind: ComponentKind,
        pending_max: int,
        group_max: int = 1,
    ) -> None:
        self.group_max = group_max
        self.held = 0
        self.failing: TransactionAttempt | None = None
        self.store = MemoryStateStore.open(server, TOPOLOGY)
        self.batches = Batches(self.store)
        self.definitions = BatchDefinitions(REAL, self.batches, kind, group_max)
        self.source = source
        self.is_opaque = kind is ComponentKind.OPAQUE_SPOUT
        self.issued: list[Process] = []
        self.live: dict[int, TransactionAttempt] = {}
        self.reads: dict[TransactionAttempt, Read] = {}
        self.effects: set[str] = set()
        committed = self.batches.found_committed
        self.commits = CommitQueue(committed, self.batches.found_begun(), group_max=group_max)
        stored = {txid: batch.metadata for txid, batch in self.batches.after(committed).items()}
        self.state, actions = coordinator.start(committed, stored, self.store.epoch, pending_max)
        self.take(actions)

    def take(self, actions: list[Action]) -> None:
        """Record what is to be done; forgets nothing of what was to be done before."""
        for action in actions:
            if isinstance(action, Process):
                self.issued.append(action)
                self.live[action.attempt.transaction_id] = action.attempt
            elif isinstance(action, AwaitCommit):
                self.commits.add(action.result)
            elif isinstance(action, Revoke):
                self.commits.revoke(action.txid)

    def step(self, event: Event) -> None:
        """Hand the coordinator an event."""
        self.state, actions = coordinator.step(self.state, event)
        self.take(actions)

    def is_live(self, attempt: TransactionAttempt) -> bool:
        """Return whether it was the last to be issued for its transaction; not by the coordinator's own word."""
        return self.live.get(attempt.transaction_id) == attempt

    def token(self, attempt: TransactionAttempt) -> Token:
        """Return what user code is given in this attempt's commit."""
        return Token(self.store.epoch, attempt.transaction_id, attempt.attempt_id)

    # ------------------------------------------------------------------------------------ the processing phase

    def newest_end(self) -> int:
        """Return the offset at which the next batch begins, where that is known before it is read."""
        known = self.batches.known
        return int(known[max(known)].metadata[1]) if known else 0

    def has_room(self) -> bool:
        """Return whether the next batch may begin."""
        return coordinator.has_room(self.state) and (self.is_opaque or self.newest_end() < len(self.source))

    def initialize(self, take: int) -> None:
        """Begin the next batch."""
        metadata = [take]
        if not self.is_opaque:
            first = self.newest_end()
            metadata = [first, min(first + take, len(self.source))]
        self.batches.begin({coordinator.next_txid(self.state): metadata}, self.commits.committed)
        self.step(Initialized(metadata))

    def processing(self) -> list[TransactionAttempt]:
        """Return the attempts that have not been processed, ascending."""
        return [active.attempt for active in self.state.active.values() if not active.processed]

    def span(self, txid: int) -> tuple[int, int] | None:
        """Return the offsets of an active batch, as its live attempt has them; None: that is not known yet."""
        active = self.state.active[txid]
        if not self.is_opaque:
            first, end = active.metadata
            return first, end
        if not active.processed:
            return None
        read = self.reads.get(active.attempt)
        return None if read is None else (read.first, read.end)

    def may_be_read(self, attempt: TransactionAttempt) -> bool:
        """Return whether it is known where the batch begins: an opaque one does where the one before it ended."""
        return attempt in (self.processing()[:1] if self.is_opaque else self.processing())

    def read(self, told: WaveAttempt, first: int, take: int) -> AttemptResult:
        """Read a batch as one attempt is told to; `first` and `take` say where an opaque one begins and ends."""
        end = min(first + take, len(self.source))
        if not self.is_opaque:
            first, end = told.metadata
        if 0 in told.stored:
            end = told.stored[0].metadata
        known = self.batches.known[told.attempt.transaction_id]
        group_max = known.group_max if told.frozen else self.group_max
        self.reads[told.attempt] = Read(told.metadata, first, end, told.commit_id, group_max)
        result = AttemptResult(told.attempt, partitions={0: PartitionBatch(end, end - first)}, rows=end - first)
        self.definitions.take(told, result)
        return result

    def processed(self, attempts: Sequence[TransactionAttempt], take: int) -> list[AttemptResult]:
        """Read these batches and fix them, as the runner does before any may be committed; report and return them."""
        told: dict[TransactionAttempt, WaveAttempt] = {}
        results: list[AttemptResult] = []
        at: Any = self.definitions.positions_before(attempts[0].transaction_id).get(0, 0)
        for attempt in attempts:
            process = Process(attempt, self.state.active[attempt.transaction_id].metadata)
            told[attempt] = self.definitions.wave_attempt(process, self.commits.begun)
            results.append(self.read(told[attempt], at, take))
            at = self.reads[attempt].end
        fixed = self.definitions.fixed(told, results)
        if fixed:
            stale = self.definitions.stale_after(min(fixed), self.commits.begun)
            if stale:
                self.batches.fix(stale)
            self.batches.fix(fixed)
        for result in results:
            self.step(Processed(result))
        return results

    def may_fix(self) -> bool:
        """Return whether one of the next two batches is not frozen, so that it is stored when it is processed."""
        return any(attempt.transaction_id > self.commits.begun for attempt in self.processing()[:2])

    def failed(self, attempt: TransactionAttempt, timed_out: bool) -> None:
        """Report a failure; of the attempt that commits, its commit phase's, which ends later where it `timed_out`."""
        if attempt == self.committing and not timed_out:
            assert self.commits.finished(failed=True) is None
        self.step(Failed(attempt))

    # ------------------------------------------------------------------------------------ the commit phase

    @property
    def committing(self) -> TransactionAttempt | None:
        """The attempt whose commit runs, and may be recorded."""
        running = self.commits.running
        return running.last if running is not None and running.stage is Stage.RUNS else None

    @property
    def hanging(self) -> TransactionAttempt | None:
        """The attempt whose commit runs after it was revoked."""
        running = self.commits.running
        return running.last if running is not None and running.stage is Stage.REVOKED else None

    def waiting(self) -> list[TransactionAttempt]:
        """Return the attempts that wait for their commits."""
        return [result.attempt for result in self.commits.waiting.values()]

    def record(self, txid: int) -> dict[str, Any] | None:
        """Return what this driver believes to be stored of a batch."""
        path = path_of(txid)
        return dict(self.store.get(path)) if path.rpartition("/")[2] in self.store.children("batches") else None

    def next_commit(self) -> TransactionAttempt | None:
        """Return the attempt whose commit would begin now."""
        step = self.copied().next(connected=True, proof_secs=0.0)
        return step.results[-1].attempt if isinstance(step, Begin) else None

    def copied(self) -> CommitQueue:
        """Return the commit queue as it is now."""
        running = self.commits.running and replace(self.commits.running)
        return replace(self.commits, waiting=dict(self.commits.waiting), running=running)

    def may_commit(self) -> bool:
        """Return whether a commit may begin."""
        return self.next_commit() is not None

    def may_record(self) -> bool:
        """Return whether a commit has begun."""
        return self.committing is not None

    @property
    def group(self) -> tuple[TransactionAttempt, ...]:
        """The attempts that commit together."""
        running = self.commits.running
        return () if running is None else tuple(result.attempt for result in running.results)

    def cut(self, failed: bool) -> None:
        """End the commit phases of the group; the one that runs has `failed`."""
        self.failing = self.group[self.held] if failed else None
        if not self.commits.cut(self.held, failed):
            self.report_failing()

    def report_failing(self) -> None:
        """Report the commit phase that has failed behind those that were recorded."""
        failing, self.failing = self.failing, None
        if failing is not None:
            self.step(Failed(failing))

    def begin_commit(self, ask: bool = True) -> None:
        """Let the effects of the commit begin; `ask` ZooKeeper first, unless it has answered just before."""
        step = self.commits.next(connected=True, proof_secs=inf if ask else 0.0)
        if ask:
            assert isinstance(step, Prove)
            try:
                self.store.write([])
            except Fenced:
                self.commits.stop()
                raise
            step = self.commits.next(connected=True, proof_secs=0.0)
        assert isinstance(step, Begin)
        self.effects = set()
        self.held = 0

    def record_commit(self, arrives: bool = True, heard: bool = True) -> bool:
        """Write the record, unless it never `arrives`; where nothing is `heard` of it the driver does not know.

        Return whether the commit could have been revoked meanwhile.
        """
        group = self.group
        record = self.commits.finished(failed=False)
        assert record is not None
        revoked = self.commits.revoke_running()
        try:
            if arrives:
                self.store.write([record_of(record.attempt)])
        except Fenced:
            heard = False
            raise
        finally:
            self.commits.recorded(written=heard)
        if heard:
            for attempt in group:
                self.batches.forget_before(attempt.transaction_id)
                self.step(Committed(attempt))
            self.report_failing()
        return revoked
