"""InProcessEngine: runs waves and commits in this process, slot after slot: no Spark, the same stage runner."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from stormline.runtime.commit.executor_messages import split
from stormline.runtime.commit.executor_part import ExecutorPart
from stormline.runtime.messages.commit_request import CommitRequest
from stormline.runtime.messages.wave import Wave, WaveResult
from stormline.runtime.processing.driver_stage import run_driver_stage
from stormline.runtime.processing.slot_layout import Layout
from stormline.runtime.processing.slot_report import read_report
from stormline.runtime.processing.slot_reports import merge_reports
from stormline.runtime.processing.stage_runner import SlotBlock, StageRunner
from stormline.runtime.processing.wave_shape import commit_only_stages
from stormline.runtime.tasks.task_environment import TaskEnvironment
from stormline.runtime.world.daemon_threads import run_side_by_side
from stormline.runtime.world.running_calls import CallReport
from stormline.topology.attempt import TransactionAttempt
from stormline.topology.plan import Placement


class InProcessEngine:
    """Runs every stage in this process, slot after slot: no Spark, the same stage runner.

    `_workers` stands for the executors, and so does `_committing`, which may be at work at the same time: what they
    keep is not what the driver keeps. `at_commit`: leave out the stages whose bolts all finish in the commit phase, as
    Spark's engine does where they get few tuples.
    """

    def __init__(self, env: TaskEnvironment, slots: int = 2, at_commit: bool = False) -> None:
        self._env = env
        plan = env.plan.for_executors()
        self._workers = TaskEnvironment(plan, env.epoch, world=env.world)
        self._layout = Layout(env.plan, slots, commit_only_stages(env.plan) if at_commit else frozenset())
        self._committing = TaskEnvironment(plan, env.epoch, world=env.world)
        self._commit_slots: list[ExecutorPart] = []
        self._slots = slots

    def process(self, wave: Wave) -> WaveResult:
        """Run the processing phase."""
        given, reports = run_driver_stage(self._env, self._layout, wave)
        for stage in self._env.plan.stages:
            if stage.placement is Placement.EXECUTORS and self._layout.slots[stage.index]:
                given = list(self._run_stage(wave, stage.index, given))
        reports += [read_report(block) for _, block in given]
        return merge_reports(wave, self._layout, reports)

    def _run_stage(self, wave: Wave, stage: int, given: list[SlotBlock]) -> Iterator[SlotBlock]:
        slots = self._layout.slots[stage]
        for slot in range(slots):
            mine = [(to, block) for to, block in given if to % slots == slot]
            yield from StageRunner(self._workers, self._layout, wave, stage, slot).run(mine)

    def cancel(self) -> None:
        """Let the emitters that emit now be the last: user code cannot be interrupted in this process."""
        self._env.emitters.cancel_wave()

    def commit(self, request: CommitRequest) -> list[bytes]:
        """Run one turn of a commit, through the same bytes as on Spark."""
        self._commit_slots = [ExecutorPart(self._committing, sealed, 0) for sealed in split(request, self._slots)]
        run_side_by_side(self._env.world, [slot.run for slot in self._commit_slots], self._slots)
        return [slot.sealed_reply() for slot in self._commit_slots]

    def cancel_commit(self, attempt: TransactionAttempt) -> None:
        """Begin no further call of user code; one under way cannot be interrupted in this process."""
        for slot in self._commit_slots:
            slot.abandon()

    def calls(self, attempts: Collection[TransactionAttempt]) -> list[CallReport]:
        """Return the calls of user code that stand for those on executors."""
        return [report for env in (self._workers, self._committing) for report in env.calls.reports(attempts)]

    def close(self) -> None:
        """Let components clean up."""
        self._workers.close()
        self._committing.close()
