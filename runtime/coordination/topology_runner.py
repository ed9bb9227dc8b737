"""TopologyRunner: the one loop that performs the coordinator's actions. All state of a run belongs to its thread."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from functools import partial

from stormline.runtime.coordination import coordinator
from stormline.runtime.coordination.batch_definitions import BatchDefinitions
from stormline.runtime.coordination.batch_store import Batches
from stormline.runtime.coordination.commit_costs import ExecutingSecs
from stormline.runtime.coordination.commit_queue import CommitQueue
from stormline.runtime.coordination.committer import CommitEnded, Committer
from stormline.runtime.coordination.coordinator import Committed, Failed, Initialized, Process, Processed
from stormline.runtime.coordination.deadlines import Deadlines
from stormline.runtime.coordination.next_wave import NextWave
from stormline.runtime.coordination.progress import Progress
from stormline.runtime.coordination.retry_backoff import Backoff
from stormline.runtime.coordination.shutdown import close_all
from stormline.runtime.coordination.sink_keeper import SinkKeeper
from stormline.runtime.coordination.spout_questions import SpoutAnswer, SpoutQuestions
from stormline.runtime.coordination.stop_reasons import fatal_error, too_many_attempts
from stormline.runtime.coordination.wave_thread import WaveEnded, WaveThread
from stormline.runtime.errors import Fenced, SessionLost, TopologyFailed
from stormline.runtime.messages.engine import Engine
from stormline.runtime.messages.wave import AttemptResult, Failure
from stormline.runtime.state.state_store import StateStore
from stormline.runtime.tasks.task_environment import TaskEnvironment
from stormline.runtime.world.world import Empty, Queue
from stormline.topology.attempt import TransactionAttempt
from stormline.topology.config import (
    ENABLE_MESSAGE_TIMEOUTS,
    MAX_BATCH_ATTEMPTS,
    MAX_SPOUT_PENDING,
    MESSAGE_TIMEOUT_SECS,
    setting,
)
from stormline.topology.errors import StormlineError

log = logging.getLogger("stormline")

COMMIT_END_SECS = 60.0
"""Time that a commit without a time-out may take to end when its topology stops by an error."""


@dataclass(frozen=True, slots=True)
class _Lost:
    error: StormlineError


@dataclass(frozen=True, slots=True)
class _Wake:
    pass


_Message = WaveEnded | SpoutAnswer | _Lost | _Wake


class _Stop(Exception):
    """Ends the loop."""


class TopologyRunner:
    """Runs one topology to its end: until `stop`, or until `error` says why it stopped."""

    def __init__(self, env: TaskEnvironment, engine: Engine, store: StateStore, progress: Progress) -> None:
        config = env.plan.config
        self._env = env
        self._world = env.world
        self._engine = engine
        self._store = store
        self._inbox: Queue[_Message] = self._world.queue()
        timeouts = setting(config, ENABLE_MESSAGE_TIMEOUTS)
        timeout_secs = float(setting(config, MESSAGE_TIMEOUT_SECS)) if timeouts else None
        self._timeout_secs = timeout_secs
        self._batches = Batches(store)
        self.spout = SpoutQuestions(env, self._inbox.put)
        self.emitters = env.emitters
        kind, group_max = env.plan.spout.component.kind, env.groups.size_max
        self._definitions = BatchDefinitions(self._world, self._batches, kind, group_max)
        self._pending_max, self._failures_max = setting(config, MAX_SPOUT_PENDING), setting(config, MAX_BATCH_ATTEMPTS)
        committed = self._batches.found_committed
        commits = CommitQueue(committed, self._batches.found_begun(), group_max=group_max)
        self._sinks = SinkKeeper(env, self._batches, self._definitions, commits)
        process = self._sinks.around(engine.process)
        self._waves = WaveThread(self._world, engine, self._inbox.put, timeout_secs, process)
        self._committer = Committer(env, engine, store, commits, self._wake, timeout_secs)
        self._deadlines = Deadlines(env, engine, self._waves, self._committer, timeout_secs, self._sinks.holds_up)
        self._next = NextWave(env, self._batches, self._definitions, self.spout, self._committer)
        self._backoff = Backoff(env.plan.topology_id, len(env.plan.components))
        self._executing = ExecutingSecs(self._world, env.plan)
        self._poison: AttemptResult | None = None
        self._stop_asked = self._world.event()
        self._stop_asked_at: float | None = None
        self.progress = progress
        self.ended = self._world.event()
        self.changed = self._world.condition()
        self.idle_looks = 0
        self.step_begun: float | None = None  # None: it waits for a message, or has not begun, or has ended
        self.error: BaseException | None = None
        self._lost: StormlineError | None = None
        progress.txid_found = committed

    # ------------------------------------------------------------------------------------ from other threads

    def stop(self) -> None:
        """Ask the topology to stop after the commit that runs now."""
        self._committer.stop()
        self._stop_asked.set()
        self._wake()

    def _wake(self) -> None:
        self._inbox.put(_Wake())

    def calls_in(self, thread: object) -> bool:
        """Return whether user code of this topology is called in a thread: nothing ends while that waits for it."""
        own = (self._waves.thread, self._committer.thread, self.spout.thread)
        env = self._env
        return thread in (*own, *env.emitters.threads(), *env.commit_threads.threads(), *env.sinks.threads())

    def lost(self, error: StormlineError) -> None:
        """Stop at once: this driver owns the topology no longer."""
        self._lost = error
        self._inbox.put(_Lost(error))

    def run(self) -> None:
        """Run the loop, in the calling thread, until the end."""
        try:
            self._loop()
        except _Stop:
            pass
        except BaseException as error:
            self.error = self._lost or error  # user code whose own state could not be written fails for the same reason
        finally:
            self.step_begun = None
            try:
                self._end()
            finally:
                self.ended.set()
                self._notify()

    def _notify(self) -> None:
        with self.changed:
            self.changed.notify_all()

    # ------------------------------------------------------------------------------------ the loop

    def _loop(self) -> None:
        self.step_begun = self._world.monotonic()
        committed = self._committer.txid_committed
        stored = {txid: batch.metadata for txid, batch in self._batches.after(committed).items()}
        newest = self._batches.known[max(self._batches.known)].metadata if self._batches.known else None
        self._sinks.start()
        self.spout.resume(newest)
        self._state, actions = coordinator.start(
            committed, stored, self._store.epoch, self._pending_max, self._failures_max
        )
        self._take(actions)
        while True:
            self._take_commits()
            self._begin_wave()
            self._check_deadlines()
            if self._may_stop():
                raise _Stop
            self._handle(self._next_message())
            while not self._inbox.empty():
                self._handle(self._inbox.get())

    def _may_stop(self) -> bool:
        """Return whether it is time to stop: the commit that runs ends before, unless it hangs."""
        if not self._stop_asked.is_set():
            return False
        now = self._world.monotonic()
        if self._stop_asked_at is None:
            self._stop_asked_at = now
        hangs = self._committer.hangs or now - self._stop_asked_at >= COMMIT_END_SECS
        return hangs or not self._committer.busy

    def _next_message(self) -> _Message:
        self.step_begun = None
        try:
            wave_time = self._next.look_at(self._state) if self._wave_may_begin() else None
            return self._inbox.get(timeout=self._deadlines.patience(wave_time))
        except Empty:
            return _Wake()
        finally:
            self.step_begun = self._world.monotonic()

    def _handle(self, message: _Message) -> None:
        if isinstance(message, WaveEnded):
            self._wave_ended(message)
        elif isinstance(message, SpoutAnswer):
            self._spout_answered(message)
        elif isinstance(message, _Lost):
            raise message.error

    def _step(self, event: coordinator.Event) -> None:
        self._state, actions = coordinator.step(self._state, event)
        self._take(actions)

    def _take(self, actions: list[coordinator.Action]) -> None:
        for action in actions:
            if isinstance(action, Process):
                self._next.add(action)
            elif isinstance(action, coordinator.AwaitCommit):
                assert self._batches.known[action.result.attempt.transaction_id].fixed
                self._committer.add(action.result)
            elif isinstance(action, coordinator.Revoke):
                self._committer.revoke(action.txid)
            elif isinstance(action, coordinator.GiveUp):
                raise too_many_attempts(self._env.plan.topology_id, action.attempt, action.failures, action.cause)

    def _fail(self, attempt: TransactionAttempt, failure: Failure) -> None:
        if not coordinator.is_current(self._state, attempt):
            return
        at_once = failure.counts or failure.too_large
        wait_secs = 0.0 if at_once else self._backoff.uncounted(attempt, failure)
        level = logging.WARNING if failure.counts else logging.INFO
        log.log(level, "attempt %s fails and is replayed: %s", attempt, failure.message)
        self._poison = None
        self._step(Failed(attempt, failure, failure.counts))
        self._sinks.failed(attempt.transaction_id)
        self.progress.replays += coordinator.next_txid(self._state) - attempt.transaction_id
        failures = self._state.active[attempt.transaction_id].failures
        self._next.wait(max(wait_secs, self._backoff.batch_failed(failures)))
        wave = self._waves.wave
        if wave is not None and wave.attempts[-1].attempt.transaction_id >= attempt.transaction_id:
            self._waves.cancel()

    # ------------------------------------------------------------------------------------ processing phase

    def _wave_may_begin(self) -> bool:
        """Return whether the next wave may begin, and is worth it."""
        if self._waves.busy or self._stop_asked.is_set() or self._poison is not None:
            return False
        return self._next.worth_it(self._state)

    def _begin_wave(self) -> None:
        wave = self._next.begin(self._state) if self._wave_may_begin() else None
        if wave is not None:
            self._env.work_on(wave.commit_ids, wave.committed)
            self._waves.start(wave)
            self.progress.processing = len(wave.attempts)

    def _spout_answered(self, answer: SpoutAnswer) -> None:
        """Begin the batches that the spout has; one write stores them all."""
        self.spout.answered()
        self.progress.metrics.add(answer.metrics)
        if answer.begun:
            self._store_begun(answer)
        if answer.error is not None:
            raise answer.error
        if answer.begun:
            for metadata in answer.begun.values():
                self._step(Initialized(metadata))
        elif answer.more is False and not self._state.active:
            self.idle_looks += 1
            self._notify()
        self._next.answered(answer)

    def _store_begun(self, answer: SpoutAnswer) -> None:
        begin = partial(self._batches.begin, committed=self._committer.txid_committed)
        self.spout.named(begin, dict(answer.begun))

    def _wave_ended(self, ended: WaveEnded) -> None:
        self._waves.ended()
        self.progress.processing = 0
        if ended.result is None:
            self._engine_failed(ended)
        else:
            self._backoff.wave_processed()
            self._next.size.processed(len(ended.wave.attempts), ended.secs)
            self._take_results(ended)
        self.progress.wave_ended()
        self._notify()

    def _take_results(self, ended: WaveEnded) -> None:
        assert ended.result is not None
        current = [r for r in ended.result.attempts if coordinator.is_current(self._state, r.attempt)]
        told = {wave_attempt.attempt: wave_attempt for wave_attempt in ended.wave.attempts}
        for result in current:
            self._definitions.take(told[result.attempt], result)
        bad = next((i for i, r in enumerate(current) if r.failure is not None), len(current))
        good = current[:bad]
        self._sinks.leave(ended.result.attempts, good)
        fixed = self._definitions.fixed(told, good)
        if fixed:
            stale = self._definitions.stale_after(min(fixed), self._committer.txid_begun)
            if stale:
                self._batches.fix(stale)
            self.spout.named(self._batches.fix, fixed)
        self._sinks.fixed(good)
        if bad < len(current):
            failed = current[bad]
            assert failed.failure is not None
            if failed.failure.too_large:
                self._next.size.too_large(bad)
            if not failed.failure.fatal:
                self._fail(failed.attempt, failed.failure)
            else:
                self._poison = failed
        for result in good:
            self._step(Processed(result))

    def _engine_failed(self, ended: WaveEnded) -> None:
        assert ended.failure is not None
        first = ended.wave.attempts[0].attempt
        if not coordinator.is_current(self._state, first):
            return
        self._next.wait(self._backoff.wave_failed(ended.wave.title, ended.failure))
        self._next.size.failed(len(ended.wave.attempts))
        spout = self._env.plan.spout.id
        self._fail(first, Failure(spout, None, f"{ended.wave.title} came to nothing: {ended.failure}", counts=False))

    # ------------------------------------------------------------------------------------ commit phase

    def _take_commits(self) -> None:
        """Record the commits that have ended; stop where the next one is of a batch that must stop all."""
        ended = self._committer.take_ended()
        for commit in ended:
            self._commit_ended(commit)
        if ended:
            self._notify()
        if self._poison is not None and self._poison.attempt.transaction_id == self._state.active.first:
            assert self._poison.failure is not None
            raise fatal_error(self._world, self._env.plan.topology_id, self._poison.attempt, self._poison.failure)

    def _commit_ended(self, ended: CommitEnded) -> None:
        if ended.error is not None:
            raise ended.error
        if not coordinator.is_current(self._state, ended.attempt):
            assert ended.failure is not None, f"{ended.attempt} is recorded, and another attempt has its place"
            return
        self._executing.add(ended.executing_secs)
        if ended.failure is None:
            self._batches.forget_before(ended.attempt.transaction_id)
            self._backoff.committed()
            self._step(Committed(ended.attempt))
            self.progress.committed(ended.result.rows)
            self.progress.metrics.add(ended.result.metrics)
            self.progress.metrics.add(ended.metrics)
        elif ended.failure.fatal:
            raise fatal_error(self._world, self._env.plan.topology_id, ended.attempt, ended.failure)
        else:
            self._fail(ended.attempt, ended.failure)

    # ------------------------------------------------------------------------------------ deadlines and the end

    def _check_deadlines(self) -> None:
        self._committer.tell_if_hung()
        commit = self._deadlines.overdue_commit()
        if commit is not None:
            self._fail(*commit)
        wave, failure = self._waves.wave, self._deadlines.overdue_wave()
        if wave is not None and failure is not None:
            self._next.size.failed(len(wave.attempts))
            self._fail(wave.attempts[0].attempt, failure)

    def _end(self) -> None:
        log.info(
            "topology %s ends at committed transaction %d", self._env.plan.topology_id, self._committer.txid_committed
        )
        self._committer.stop()
        self._waves.close(wait_secs=10.0)
        self._let_commit_end()
        self._committer.close()
        in_order = self.error is None or isinstance(self.error, TopologyFailed)
        closes = (self._close_spout, self._engine.close, partial(self._sinks.close, in_order), self._env.close)
        close_all(self._world, self._env.plan.topology_id, closes, self._give_up)
        self._store.close()

    def _close_spout(self) -> None:
        """Close the coordinator, and store what it began meanwhile: it is asked for it once."""
        try:
            self.spout.close()
        finally:
            self._keep_late_answers()

    def _keep_late_answers(self) -> None:
        while not self._inbox.empty():
            message = self._inbox.get()
            ours = not isinstance(self.error, (Fenced, SessionLost)) and not self.ended.is_set()
            if isinstance(message, SpoutAnswer) and message.begun and ours:
                self._store_begun(message)

    def _let_commit_end(self) -> None:
        """Wait for the commit that runs, whatever the loop has ended with: after the end it would be a zombie."""
        if isinstance(self.error, (Fenced, SessionLost)):
            self._committer.close()  # it is not ours any more: the user code that runs ends, and no other begins
        for ended in self._committer.let_end(2 * self._timeout_secs if self._timeout_secs else COMMIT_END_SECS):
            if ended.failure is None and ended.error is None:
                self.progress.committed(ended.result.rows)

    def _give_up(self) -> None:
        self._store.close()
        self.ended.set()
        self._notify()
