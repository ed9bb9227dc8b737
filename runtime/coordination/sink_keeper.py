"""SinkKeeper: sees to it that what two-phase sinks have pre-committed is committed or aborted, whoever has left it.

When a driver starts, and before each wave: what was decided is committed, what an attempt that failed has left is
aborted, and what the sinks list is looked through. That is repeated for ever: a zombie may pre-commit late.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from stormline.runtime.commit.sink_commits import SinkCommits
from stormline.runtime.coordination.batch_definitions import BatchDefinitions
from stormline.runtime.coordination.batch_store import Batches
from stormline.runtime.coordination.commit_queue import CommitQueue
from stormline.runtime.coordination.sink_ages import SinkAges
from stormline.runtime.coordination.sink_sweep import Kept, SinkKnowledge
from stormline.runtime.errors import SinkMissing
from stormline.runtime.messages.sink_handle import SinkHandle
from stormline.runtime.messages.wave import AttemptResult, Wave, WaveResult
from stormline.runtime.tasks.task_environment import TaskEnvironment
from stormline.runtime.world.running_calls import CallReport
from stormline.topology.attempt import TransactionAttempt
from stormline.topology.config import SINK_SWEEP_SECS, setting
from stormline.topology.transaction_label import TransactionLabel

log = logging.getLogger("stormline")

Process = Callable[[Wave], WaveResult]

RECOVERY = 0
"""The id of the attempt in whose name a driver commits, at its start, what was decided before it."""


class SinkKeeper:
    """Keeps what is pre-committed of one topology. Where no bolt writes into a sink all of it does nothing.

    The loop tells it what is fixed and what fails; it works in the thread of the waves, before each of them, and in one
    of its own.

    Args:
        commits: knows what is committed, and what has begun and so is decided.
    """

    def __init__(
        self, env: TaskEnvironment, batches: Batches, definitions: BatchDefinitions, commits: CommitQueue
    ) -> None:
        self._env = env
        self._world = env.world
        self._batches = batches
        self._definitions = definitions
        self._commits = commits
        self._sweep_secs = float(setting(env.plan.config, SINK_SWEEP_SECS))
        self._components = env.sinks.components
        self._lock = env.world.condition()  # of what follows; nobody's code runs under it
        self._newest: dict[int, int] = {}
        self._kept: dict[int, Kept] = {}
        self._left: dict[str, SinkHandle] = {}
        self._decided: list[SinkHandle] = []
        self._sweep_due = True
        self._closed = False
        self._settles = env.world.lock()
        self._wave_waits = False
        self._ages = SinkAges(env.world, env.plan)

    # ------------------------------------------------------------------------------------ from the topology's loop

    def start(self) -> None:
        """Begin: transactions that have begun are decided, the handles of later ones are withdrawn."""
        stored = self._batches.known.values()
        if not self._components and not any(batch.handles for batch in stored):
            return
        for txid, batch in self._batches.known.items():
            if batch.fixed and txid > self._commits.committed:
                # Of later ones, too: until they are withdrawn a record names them, and that write may fail.
                self._kept[txid] = Kept(0, frozenset(handle.label for handle in batch.handles))
                self._decided += batch.handles if txid <= self._commits.begun else ()
        self.failed(self._commits.begun + 1)
        self._world.start_thread(f"stormline-{self._env.plan.topology_id}-sinks", self._work)

    def fixed(self, results: Iterable[AttemptResult]) -> None:
        """Record that the handles of these are durable."""
        if not self._components:
            return
        with self._lock:
            for result in results:
                labels = frozenset(handle.label for handle in result.handles)
                self._kept[result.attempt.transaction_id] = Kept(result.attempt.attempt_id, labels)
                self._ages.fixed(result.handles)

    def failed(self, txid: int) -> None:
        """Withdraw the handles of all from `txid` on that are not decided; they are aborted before the next wave (R6).

        First the record, which only the owner can write: so nobody ever decides what is being aborted (R8).
        """
        known, begun = self._batches.known, self._commits.begun
        undecided = self._definitions.undecided(txid, begun)
        handles = [handle for later in undecided for handle in known[later].handles]
        if undecided:
            self._batches.fix(undecided)
        with self._lock:
            for later in [later for later in self._kept if later >= txid and later > begun]:
                del self._kept[later]
            self._left.update({handle.label: handle for handle in handles})

    def leave(self, results: Iterable[AttemptResult], good: Iterable[AttemptResult]) -> None:
        """Let what all but the `good` ones have pre-committed be aborted: no record names it."""
        if not self._components:
            return
        counting = {id(result) for result in good}
        for result in results:
            if result.handles and id(result) not in counting:
                with self._lock:
                    self._left.update({handle.label: handle for handle in result.handles})

    def around(self, process: Process) -> Process:
        """Return what processes waves, and settles what was left behind before each of them."""
        if not self._components:
            return process

        def settled(wave: Wave) -> WaveResult:
            self._before(wave)
            try:
                result = process(wave)
            except BaseException:
                self._sweep_due = True  # nobody knows what it has left
                raise
            self._sweep_due |= any(each.failure is not None for each in result.attempts)
            return result

        return settled

    def holds_up(self, attempt: TransactionAttempt) -> list[CallReport]:
        """Return the calls of sinks for which the wave of an attempt waits before it begins."""
        return self._env.sinks.calls(attempt) if self._wave_waits else []

    def close(self, in_order: bool) -> None:
        """Abort what is left, and what was left behind: nobody may start this topology for long. Then end.

        Args:
            in_order: all that this driver has written is known to be there. Then what no record names is never
                decided, and that of attempts which were at work until now is aborted, too.
        """
        with self._lock:
            self._closed = True
            if in_order:
                self._newest = {txid: attempt + 1 for txid, attempt in self._newest.items()}
            self._lock.notify_all()
        with self._settles:
            self._abort_left()
            for component in self._components:
                self._sweep(component)

    # ------------------------------------------------------------------------------------ in other threads

    def _before(self, wave: Wave) -> None:
        """Settle what was left behind: the attempts of this wave are written next."""
        with self._lock:
            for txid in [txid for txid in self._newest if txid <= wave.committed]:
                del self._newest[txid]
            self._newest.update({each.transaction_id: each.attempt_id for each in wave.commit_ids})
        self._wave_waits = True
        try:
            self._settle()
        finally:
            self._wave_waits = False

    def _work(self) -> None:
        while not self._closed:
            self._settle()
            with self._lock:
                if not self._closed:
                    self._lock.wait(self._sweep_secs)
            self._sweep_due = True

    def _settle(self) -> None:
        with self._settles:
            while self._decided and not self._closed:
                self._commit_decided(self._decided.pop(0))
            self._abort_left()
            if self._sweep_due and not self._closed:
                self._sweep_due = False
                for component in self._components:
                    self._sweep(component)

    def _commit_decided(self, handle: SinkHandle) -> None:
        """Commit what was decided before this driver: at once, since it may hold locks, and the resource's limit runs.

        Where that does not come through the batch's own commit phase sees to it, and halts the topology if it must.
        """
        label = TransactionLabel.read(handle.label)
        assert label is not None
        attempt = TransactionAttempt(label.txid, RECOVERY)
        answer = SinkCommits(self._env, attempt, (handle,), lambda: False).ask(handle)
        log.info("%s of bolt %r was decided before; its sink says: %s", handle.label, handle.component, answer)

    def _abort_left(self) -> None:
        with self._lock:
            left, self._left = self._left, {}
        for handle in left.values():
            self._abort(handle)

    def _abort(self, handle: SinkHandle) -> None:
        try:
            self._env.sinks.abort(handle)
        except SinkMissing:  # it was removed, and who has allowed that was told
            log.error(
                "%s stays prepared, with its locks: the topology has no bolt %r any more that could abort it. Abort it "
                "with the module as it was, by `stormline transactions abort MODULE %s --stopped`",
                handle.label,
                handle.component,
                handle.label,
            )
        except BaseException:  # whatever it is, the others are aborted too, and this one is tried again
            log.warning("aborting %s of bolt %r; it is tried again", handle.label, handle.component, exc_info=True)
            with self._lock:
                self._left[handle.label] = handle

    def _sweep(self, component: str) -> None:
        with self._lock:  # first this, then the list: what is pre-committed after it is newer than all it knows
            knowledge = SinkKnowledge(self._env.epoch, self._commits.committed, dict(self._newest), dict(self._kept))
        try:
            listed = self._env.sinks.listed(component)
        except BaseException:  # whatever it is, the next sweep asks again
            log.warning("listing what is pre-committed in the sink of bolt %r", component, exc_info=True)
            return
        kept = {label for known in knowledge.kept.values() for label in known.labels}
        self._ages.warn(component, listed, kept)
        for prepared in listed or ():
            label = TransactionLabel.read(prepared.label)
            assert label is not None
            if knowledge.left_behind(label):
                log.info("%s of bolt %r was left behind, and is aborted", label, component)
                self._abort(SinkHandle(component, prepared.label, prepared.handle))
            elif label.epoch > self._env.epoch:
                log.warning(
                    "the sink of bolt %r holds %s of a newer driver than this one (epoch %d): it is left alone",
                    component,
                    label,
                    self._env.epoch,
                )
        with self._lock:
            for txid in [txid for txid in self._kept if txid <= knowledge.committed]:
                del self._kept[txid]
