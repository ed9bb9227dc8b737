"""AttemptRun: one attempt of a wave in one slot: its tasks, their collectors, and its result."""

from __future__ import annotations

from stormline.runtime.messages.sink_handle import SinkHandle
from stormline.runtime.messages.wave import AttemptResult, DeferredTask, Failure, WaveAttempt
from stormline.runtime.tasks.bolt_tasks import BasicBoltTask, BatchBoltTask, Share
from stormline.runtime.tasks.collector import TaskCollector


class AttemptRun:
    """One attempt of the wave in this slot. `waiting`: what was handed over to a task that has yet to execute it."""

    def __init__(self, index: int, wave_attempt: WaveAttempt) -> None:
        self.index = index
        self.wave_attempt = wave_attempt
        self.attempt = wave_attempt.attempt
        self.result = AttemptResult(wave_attempt.attempt)
        self.tasks: dict[int, BatchBoltTask | BasicBoltTask] = {}
        self.collectors: list[TaskCollector] = []
        self.waiting: dict[int, list[Share]] = {}
        self.finished = False
        self.kept_rows = 0

    def fail(self, failure: Failure) -> None:
        """Keep the first failure; a fatal one wins."""
        if self.result.failure is None or (failure.fatal and not self.result.failure.fatal):
            self.result.failure = failure

    def given(self, task: int) -> DeferredTask:
        """Return what a task of a deferred bolt is given for the commit phase, to be added to."""
        given = self.result.deferred.get(task)
        if given is None:
            given = self.result.deferred[task] = DeferredTask()
        return given

    def take_handle(self, handle: SinkHandle | None) -> None:
        """Report what a task has pre-committed in a sink, also where the attempt fails: the driver aborts it then."""
        if handle is not None:
            self.result.handles = (*self.result.handles, handle)

    @property
    def failed(self) -> bool:
        """Whether it is over here: what it still emits, and is sent, counts for nothing."""
        return self.result.failure is not None

    def release(self) -> None:
        """Let go of everything but the result."""
        self.finished = True
        for collector in self.collectors:
            collector.close()
        for task in self.tasks.values():
            task.clean_up()
        self.tasks, self.collectors, self.waiting = {}, [], {}
