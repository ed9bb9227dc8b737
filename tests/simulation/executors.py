"""The engine of a simulated driver: the real stage runner and commit slots, on executors that Spark's faults befall."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial

from stormline.runtime.commit.executor_messages import split
from stormline.runtime.commit.executor_part import ExecutorPart
from stormline.runtime.messages.commit_request import CommitRequest
from stormline.runtime.messages.engine import EngineFailure
from stormline.runtime.messages.wave import Wave, WaveResult
from stormline.runtime.processing.slot_layout import Layout
from stormline.runtime.processing.slot_report import SlotReport, read_report
from stormline.runtime.processing.slot_reports import merge_reports
from stormline.runtime.processing.stage_runner import SlotBlock, StageRunner
from stormline.runtime.processing.wave_shape import commit_only_stages
from stormline.runtime.tasks.task_environment import TaskEnvironment
from stormline.runtime.tuples.blocks import FOR_DRIVER, stage_of
from stormline.runtime.world.running_calls import CallReport
from stormline.topology.attempt import TransactionAttempt
from stormline.topology.plan import Placement
from tests.simulation.faults import COMMIT_FAULTS, INPUT_FAULTS, RERUN_FAULTS, TASK_FAULTS, WAVE_FAULTS
from tests.simulation.scheduler import Process, SimQueue
from tests.simulation.world import World

EXECUTORS = 2


class Executor:
    """One executor: a process, and what it keeps from wave to wave."""

    def __init__(self, world: World, env: TaskEnvironment) -> None:
        self.process = Process(world, "executor")
        self.env = TaskEnvironment(env.plan, env.epoch, world=env.world)


class SimEngine:
    """Runs waves and placed commits. Its executors die with the driver, and outlive its pauses."""

    def __init__(self, world: World, env: TaskEnvironment, driver: Process, slots: int) -> None:
        self._world = world
        self._env = env
        self._slots = slots
        self._commit_only = commit_only_stages(env.plan)
        self._executors = [Executor(world, env) for _ in range(EXECUTORS)]
        self._cancelled = False
        self._old: SlotBlock = (0, b"")
        self._commits: list[ExecutorPart] = []
        self._replies: SimQueue | None = None  # of the commit that runs
        driver.on_kill.append(self._killed)

    def _killed(self) -> None:
        for executor in self._executors:
            executor.process.kill()

    def _executor_lost(self, number: int) -> None:
        self._executors[number].process.kill()
        self._executors[number] = Executor(self._world, self._env)
        if self._replies is not None:
            self._replies.put(EngineFailure("an executor that was lost while a commit ran on it"))

    # ------------------------------------------------------------------------------------ waves

    def process(self, wave: Wave) -> WaveResult:
        """Run the processing phase."""
        world, faults = self._world, self._world.faults
        world.oracle.wave(self._env.epoch, wave)
        self._cancelled = False
        layout = Layout(
            self._env.plan, 1 + faults.below(self._slots), self._commit_only if faults.chance(0.5) else frozenset()
        )
        self._pass_time(0.02 + 0.05 * world.random.random())
        given, reports = self._run_driver_stage(layout, wave)
        stages = layout.on_executors
        fault = faults.one_of(WAVE_FAULTS) if stages else None
        for stage in stages:
            given = self._run_stage(layout, wave, stage, given)
            if fault == "job: failed":
                raise EngineFailure("a job that failed on order")
            if fault == "job: executor lost":
                self._executor_lost(faults.below(EXECUTORS))
                raise EngineFailure("an executor that was lost on order")
        self._pass_time(0.005)
        if fault == "job: no report":
            del given[faults.below(len(given))]
        reports += [read_report(block) for _, block in given if stage_of(block) == FOR_DRIVER]
        return merge_reports(wave, layout, reports)

    def _pass_time(self, secs: float) -> None:
        self._world.sleep(secs)
        if self._cancelled:
            raise EngineFailure("cancelled")

    def _run_driver_stage(self, layout: Layout, wave: Wave) -> tuple[list[SlotBlock], list[SlotReport]]:
        if layout.plan.stages[0].placement is not Placement.DRIVER:
            return [], []
        given = list(StageRunner(self._env, layout, wave, 0, 0).run(()))
        return (
            [(slot, block) for slot, block in given if stage_of(block) != FOR_DRIVER],
            [read_report(block) for _, block in given if stage_of(block) == FOR_DRIVER],
        )

    def _run_stage(self, layout: Layout, wave: Wave, stage: int, given: Sequence[SlotBlock]) -> list[SlotBlock]:
        slots = layout.slots[stage]
        gives: list[SlotBlock] = []
        for slot in range(slots):
            mine = [(to, block) for to, block in given if to % slots == slot]
            gives += self._run_task(layout, wave, stage, slot, mine)
        return gives

    def _run_task(self, layout: Layout, wave: Wave, stage: int, slot: int, mine: list[SlotBlock]) -> list[SlotBlock]:
        faults = self._world.faults
        fault = faults.one_of((*TASK_FAULTS, *INPUT_FAULTS) if mine else TASK_FAULTS)
        if fault == "task: late":
            self._pass_time(faults.long_secs())
        if fault == "task: cut input":
            mine = mine[: faults.below(len(mine))]
        if fault == "task: doubled block":
            mine = [*mine, mine[faults.below(len(mine))]]
        if fault == "task: lost block":
            del mine[faults.below(len(mine))]
        if fault == "task: cut block":
            to, block = mine.pop(faults.below(len(mine)))
            mine.append((to, block[: faults.below(len(block))]))
        if fault == "task: old block":  # of another wave, or for another task
            mine.append(self._old)
        elif mine:
            self._old = mine[faults.below(len(mine))]
        gave = self._execute(layout, wave, stage, slot, mine)
        if fault in RERUN_FAULTS:
            self._pass_time(0.01)
            again = self._execute(layout, wave, stage, slot, mine)
            if fault == "task: lost":
                gave = again
            elif fault == "task: recomputed" and faults.chance(0.5):  # while it is read, and read on
                begin, end = sorted((faults.below(len(gave) + 1), faults.below(len(gave) + 1)))
                if faults.chance(0.5):  # just one block later than all others
                    begin, end = max(begin, 1), max(begin, 1) + 1
                gave = [*gave[:begin], *again[begin:end], *gave[end:]]
            elif fault == "task: recomputed":  # who reads it early finds the one, who reads it late the other
                places = sorted({(stage_of(block), to) for to, block in gave + again})
                late = {place for place in places if faults.chance(0.5)}
                gave = [(to, block) for to, block in gave if (stage_of(block), to) not in late]
                gave += [(to, block) for to, block in again if (stage_of(block), to) in late]
        self._pass_time(0.002 * self._world.random.random())
        return gave

    def _execute(self, layout: Layout, wave: Wave, stage: int, slot: int, mine: list[SlotBlock]) -> list[SlotBlock]:
        executor = self._executors[(slot + wave.number) % EXECUTORS]
        self._world.executing = executor.process
        try:
            return list(StageRunner(executor.env, layout, wave, stage, slot).run(mine))
        finally:
            self._world.executing = None

    def cancel(self) -> None:
        """Let the job end soon; sometimes Spark has not heard of it yet."""
        if not self._world.faults.chance(0.2):
            self._cancelled = True

    # ------------------------------------------------------------------------------------ commits

    def commit(self, request: CommitRequest) -> list[bytes]:
        """Run one turn of a commit on the executors; what failed may still go on."""
        world, faults = self._world, self._world.faults
        fault = faults.one_of(COMMIT_FAULTS)
        replies = self._replies = SimQueue(world)
        self._commits = []
        parts = split(request, self._slots)
        for number, sealed in enumerate(parts):
            task = faults.one_of((*TASK_FAULTS, "task: cut input"))
            if task == "task: cut input":
                sealed = sealed[: faults.below(len(sealed))]
            executor = self._executors[number % EXECUTORS]
            runs = [ExecutorPart(executor.env, sealed, 0)]
            if task in RERUN_FAULTS:
                runs.append(ExecutorPart(executor.env, sealed, 1))
            self._commits += runs
            wait_secs = faults.long_secs() if task == "task: late" or fault == "job: zombie" else 0.01
            world.expect(wait_secs)
            world.spawn(executor.process, partial(self._commit_part, runs, wait_secs, replies), "commit part")
        if fault == "job: zombie":
            world.sleep(0.05)
            raise EngineFailure("the driver lost sight of the job on order")
        got: list[bytes] = []
        for _ in parts:
            reply = replies.get()
            if isinstance(reply, EngineFailure):
                raise reply
            got.append(reply)
            if fault == "job: failed":
                raise EngineFailure("a job that failed on order")
            if fault == "job: executor lost":
                self._executor_lost(faults.below(EXECUTORS))
                raise EngineFailure("an executor that was lost on order")
        if fault == "job: no report":
            del got[faults.below(len(got))]
        elif faults.strikes("job: cut report"):
            got.append(got.pop()[: faults.below(40)])
        return got

    def _commit_part(self, runs: list[ExecutorPart], wait_secs: float, replies: SimQueue) -> None:
        self._world.sleep(wait_secs)
        for slot in runs:
            slot.run()
        replies.put(runs[-1].sealed_reply())

    def cancel_commit(self, attempt: TransactionAttempt) -> None:
        """Begin no further call of user code; one that is under way goes on. Spark may not have heard of it yet."""
        for slot in self._commits:
            slot.abandon()
        if self._replies is not None and not self._world.faults.chance(0.2):
            self._replies.put(EngineFailure("cancelled"))

    def calls(self, attempts: Collection[TransactionAttempt]) -> list[CallReport]:
        """Return the calls that run on the executors that live: what they would have told of."""
        return [report for executor in self._executors for report in executor.env.calls.reports(attempts)]

    def close(self) -> None:
        """Do nothing: the executors end with the driver."""
