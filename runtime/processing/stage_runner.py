"""StageRunner: feeds tuples to the tasks of one slot of a stage, counts, routes and finishes. Knows no Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar

from stormline.runtime.messages.wave import Failure, Wave
from stormline.runtime.messages.wave_room import NO_ROOM_BESIDE, WaveRoom
from stormline.runtime.processing.attempt_run import AttemptRun
from stormline.runtime.processing.slot_layout import Layout
from stormline.runtime.processing.slot_report import SlotReport, pack_report
from stormline.runtime.tasks.bolt_tasks import BasicBoltTask, BatchBoltTask, Share, begin_batch
from stormline.runtime.tasks.collector import Route, TaskCollector
from stormline.runtime.tasks.emitter_task import EmitterTask
from stormline.runtime.tasks.task_environment import TaskEnvironment
from stormline.runtime.tasks.task_routes import HandOver, Pack, PackedRoute, collector_of
from stormline.runtime.tasks.user_code import AttemptAborted, UserCode, failure_of, run_guarded
from stormline.runtime.tuples import blocks, partitioning
from stormline.runtime.tuples.blocks import Outbox
from stormline.runtime.tuples.columns import Tuples, columns_of
from stormline.runtime.tuples.delivery import Delivery
from stormline.runtime.tuples.packing import ARROW, Packed, as_unpacked
from stormline.runtime.tuples.partitioning import FEW_ROWS, Split
from stormline.runtime.world.stopwatch import Stopwatch
from stormline.topology.contracts import IBatchLifecycle
from stormline.topology.errors import CorruptData
from stormline.topology.grouping import LOCAL_SHUFFLES, GroupingKind
from stormline.topology.plan import Edge, Placement, PlannedComponent, Transfer

T = TypeVar("T")

SlotBlock = tuple[int, bytes]

KEPT_ROWS_MAX = 65_536
"""Rows that one slot keeps of one attempt for a stage that is left out of the wave: more are better executed there."""


class _Way(NamedTuple):
    """What the routes of one task over one edge share: one a wave, so that small batches are spread evenly too."""

    split: Split
    tasks: Sequence[int]
    pack: Pack
    send: Callable[..., None]
    packed: bool
    together: bool


class StageRunner:
    """One slot of one stage in one wave: one instance serves all attempts of the wave."""

    def __init__(self, env: TaskEnvironment, layout: Layout, wave: Wave, stage: int, slot: int) -> None:
        env.work_on(wave.commit_ids, wave.committed)
        self._env = env
        self._plan = env.plan
        self._layout = layout
        self._wave = wave
        self._stage = stage
        self._slot = slot
        self._origin = blocks.Origin(env.epoch, wave.number)
        self._execution = env.world.random_below(1 << 64)
        execution = self._execution.to_bytes(8, "big")
        self._outbox = Outbox(self._origin, (stage, slot, execution), layout.places.__getitem__)
        self._runs = [AttemptRun(i, wave_attempt) for i, wave_attempt in enumerate(wave.attempts)]
        self._received: dict[blocks.Count, int] = {}
        self._closed: dict[tuple[int, int], blocks.Closing] = {}
        self._report = SlotReport(stage, slot, execution, [run.result for run in self._runs])
        self._ways: dict[tuple[int, int], _Way] = {}
        self._on_driver = self._plan.stages[stage].placement is Placement.DRIVER
        self._room = WaveRoom(wave.emitted_bytes_max if self._on_driver else wave.bytes_max)
        self._components = [self._plan.components[name] for name in layout.components[stage]]
        self._tasks_here = {planned.id: layout.tasks_at(planned.id, stage, slot) for planned in self._components}
        self._skip_empty = {planned.id for planned in self._components if _skips_empty(planned)}
        self._order = [task for planned in self._components for task in self._tasks_here[planned.id]]

    def run(self, incoming: Iterable[SlotBlock]) -> Iterator[SlotBlock]:
        """Run the slot: take blocks for it, pass on those for later stages, give blocks and a report."""
        watch = Stopwatch(self._env.world)
        return watch.outside(self._run(watch.inside(incoming), watch))

    def _run(self, incoming: Iterable[SlotBlock], watch: Stopwatch) -> Iterator[SlotBlock]:
        if self._plan.spout.id in self._tasks_here:
            yield from self._emit_spout()
        for slot, block in incoming:
            if blocks.stage_of(block) == self._stage:
                self._receive(block)
                yield from self._outbox.drain()
            else:
                yield slot, block
        self._check_counts()
        for run in self._runs:
            self._finish(run)
            yield from self._outbox.drain()
        failed = [run.index for run in self._runs if run.failed]
        self._outbox.close(self._layout.targets_of(self._stage), failed)
        yield from self._outbox.drain()
        if self._received:
            self._report.rows_of[self._stage] = sum(self._received.values())
        self._report.busy_secs = watch.secs()
        yield 0, pack_report(self._report)

    # ------------------------------------------------------------------------------------ spout

    def _emit_spout(self) -> Iterator[SlotBlock]:
        spout = self._plan.spout
        tasks = self._tasks_here[spout.id]
        emitters = {task: EmitterTask(self._env, task, self._wave) for task in tasks}
        fed_only_by_spout = not self._layout.sources_of(self._stage)
        for i, run in enumerate(self._runs):
            for task in tasks:
                self._emit_attempt(run, emitters[task], task)
                yield from self._outbox.drain()
            self._settle(run)
            if run.failed:
                for later in self._runs[i + 1 :]:
                    later.fail(
                        Failure(spout.id, None, f"an earlier transaction, {run.attempt}, has failed", counts=False)
                    )
                break
            if fed_only_by_spout:
                self._finish(run)
                yield from self._outbox.drain()

    def _emit_attempt(self, run: AttemptRun, emitter: EmitterTask, task: int) -> None:
        if run.failed:
            return
        spout = self._plan.spout
        collector = self._collector(run, spout, task)
        self._guarded(run, spout.id, task, "the emitter", emitter.emit, run.wave_attempt, collector, run.result)
        run.result.rows += collector.emitted
        collector.close()

    def _guarded(
        self, run: AttemptRun, component: str, task: int, where: str, call: Callable[..., T], *args: Any
    ) -> T | None:
        """Return what user code returns; None where it has failed the attempt."""
        result = run_guarded(UserCode(component, task, run.attempt, self._env.calls), where, call, *args)
        if isinstance(result, Failure):
            run.fail(result)
            return None
        return result

    # ------------------------------------------------------------------------------------ tuples

    def _receive(self, data: bytes) -> None:
        try:
            block = blocks.decode(data, self._origin)
            self._check_places(block)
        except CorruptData as error:
            for run in self._runs:
                run.fail(self._incomplete(str(error)))
            return
        source = (block.source_stage, block.source_slot)
        if self._report.read_from.setdefault(source, block.execution) != block.execution:
            for run in self._runs:
                run.fail(self._incomplete(f"slot {source[1]} of stage {source[0]} ran twice, and both came"))
            return
        of_tasks: dict[tuple[int, int], list[Delivery]] = {}
        for index, delivery in block.segments:
            of_tasks.setdefault((index, delivery.target_task), []).append(delivery)
        for (index, target_task), deliveries in of_tasks.items():  # one call for all: it costs more than a small one
            self._execute(self._runs[index], target_task, deliveries)
        if block.closing is not None:
            self._closed[source] = block.closing

    def _execute(self, run: AttemptRun, target_task: int, deliveries: list[Delivery]) -> None:
        """Count what one task was sent for one attempt, and let it execute that."""
        task = self._task(run, target_task)
        shares: list[Share] = []
        for edge_index, source_task, _, packed in deliveries:
            if run.failed:
                return
            assert isinstance(packed, Packed)
            count = (run.index, edge_index, source_task, target_task)
            self._received[count] = self._received.get(count, 0) + packed.rows
            edge = self._plan.edges[edge_index]
            tuples = self._unpack(run, edge.source, source_task, packed)
            if tuples is not None:
                shares.append((tuples, self._env.source(edge, source_task)))
        if task is not None and not run.failed:
            task.execute_all(shares)
            self._settle(run)

    def _settle(self, run: AttemptRun) -> None:
        """Let tasks execute what was handed over to them and waits; what they emit is for later ones."""
        if run.waiting:
            for task in self._order:
                self._execute_waiting(run, task)

    def _execute_waiting(self, run: AttemptRun, task: int) -> bool:
        """Let a task execute what waits for it; return whether that came through."""
        shares = run.waiting.pop(task, None)
        if shares is None:
            return True
        receiver = self._task(run, task)
        return receiver is not None and not run.failed and receiver.execute_all(shares)

    def _check_places(self, block: blocks.Block) -> None:
        """Check that attempts, edges and tasks exist; raise `CorruptData`."""
        for index, delivery in block.segments:
            if index >= len(self._runs) or delivery.edge >= len(self._plan.edges):
                raise CorruptData("a block for an attempt or an edge that does not exist")
            edge = self._plan.edges[delivery.edge]
            if delivery.target_task not in self._plan.components[edge.target].tasks:
                raise CorruptData(f"a block for task {delivery.target_task}, which is none of {edge.target!r}")

    def _unpack(self, run: AttemptRun, component: str, task: int, packed: Packed) -> Tuples | None:
        where = "reading the tuples"
        if not self._env.registry.plain:  # the user's serializers read, too
            tuples = self._guarded(run, component, task, where, self._read, run, packed)
        else:
            try:
                tuples = self._read(run, packed)
            except CorruptData as error:
                run.fail(failure_of(error, component, task, where))
                return None
        if tuples is not None and len(tuples) != packed.rows:
            run.fail(self._incomplete(f"a segment of {packed.rows} rows holds {len(tuples)}"))
            return None
        return tuples

    def _read(self, run: AttemptRun, packed: Packed) -> Tuples | None:
        try:
            return packed.unpack(run.attempt, self._env.registry)
        except CorruptData as error:
            if packed.kind != ARROW:
                raise
            run.fail(self._incomplete(str(error)))
            return None

    def _task(self, run: AttemptRun, task: int) -> BatchBoltTask | BasicBoltTask | None:
        found = run.tasks.get(task)
        if found is not None or run.failed:
            return found
        component = self._env.component_of(task)
        planned = self._plan.components[component]
        collector = self._collector(run, planned, task)
        decided = component in run.wave_attempt.decided
        made = begin_batch(self._env, component, task, run.attempt, collector, run.fail, decided, self._execution)
        if made is not None:
            run.tasks[task] = made
        return made

    def _collector(self, run: AttemptRun, planned: PlannedComponent, task: int) -> TaskCollector:
        collector = collector_of(self._env, planned, task, run.attempt, lambda edge: self._route(run, edge, task))
        run.collectors.append(collector)
        return collector

    def _way(self, edge: Edge, task: int) -> _Way:
        way = self._ways.get((edge.index, task))
        if way is None:
            here = self._layout.hands_over(edge)
            tasks = self._tasks_here[edge.target] if here else self._plan.components[edge.target].tasks
            send: Callable[..., None] = StageRunner._exchange
            if here:
                send = StageRunner._deliver if edge.transfer is Transfer.LOCAL else StageRunner._hand_over
            elif self._layout.waits_for_commit(edge):
                send = StageRunner._keep_for_commit
            together = here and len(tasks) > 1 and edge.grouping.kind is GroupingKind.NONE
            way = _Way(self._split(edge, task), tasks, self._pack(edge, task), send, not here, together)
            self._ways[(edge.index, task)] = way
        return way

    def _pack(self, edge: Edge, task: int) -> Pack:
        source, registry = self._env.source(edge, task), self._env.registry
        if self._plan.components[edge.target].component.columnar:
            return lambda tuples: Packed.of(columns_of(tuples, source), source, registry)
        return lambda tuples: Packed.of(tuples, source, registry)

    def _route(self, run: AttemptRun, edge: Edge, task: int) -> Route:
        split, tasks, pack, send, packed, together = self._way(edge, task)
        if together:  # the user does not care, and nothing works side by side here: attempts take the tasks in turn
            split = partitioning.few_together(split, tasks[(self._wave.number + run.index) % len(tasks)])
        give = partial(send, self, run, edge, task)
        return PackedRoute(split, tasks, pack, give) if packed else HandOver(split, tasks, give)

    def _exchange(self, run: AttemptRun, edge: Edge, task: int, target: int, packed: Packed) -> None:
        if self._on_driver:
            self._take_room(run, edge.source, len(packed.data))
        self._outbox.send((run.index, edge.index, task, target), packed)

    def _keep_for_commit(self, run: AttemptRun, edge: Edge, task: int, target: int, packed: Packed) -> None:
        stage = self._plan.components[edge.target].stage
        if stage is not None and edge.transfer is not Transfer.COMMIT:
            # It is left out of this wave, and comes back where it gets many.
            self._report.rows_of[stage] = self._report.rows_of.get(stage, 0) + packed.rows
            run.kept_rows += packed.rows
            if run.kept_rows > KEPT_ROWS_MAX:
                self._report.overfull.add(stage)
                what = f"more than {KEPT_ROWS_MAX} tuples to be executed at the commit; they are exchanged from now on"
                run.fail(Failure(edge.target, None, what, counts=False))
                raise AttemptAborted
        self._take_room(run, edge.target, len(packed.data))
        run.given(target).tuples.append(Delivery(edge.index, task, target, packed))

    def _take_room(self, run: AttemptRun, component: str, size: int) -> None:
        """Count what goes to Spark in one piece; where it is too much the last attempts go, to come in later waves."""
        gone = [self._runs[index] for index in self._room.take(run.index, size)]
        for one in gone:
            alone = one.index == 0
            message = self._room.too_large(component, self._on_driver) if alone else NO_ROOM_BESIDE
            one.fail(Failure(component, None, message, fatal=alone, counts=False, too_large=not alone))
            one.result.deferred.clear()
        if run in gone:
            raise AttemptAborted

    def _split(self, edge: Edge, task: int) -> Split:
        seed = task + self._wave.number
        if edge.transfer is Transfer.LOCAL and edge.grouping.kind in LOCAL_SHUFFLES:
            return partitioning.shuffle(self._tasks_here[edge.target], seed)
        return self._env.splitter(edge, task, seed)

    def _hand_over(self, run: AttemptRun, edge: Edge, task: int, target: int, tuples: Tuples) -> None:
        """Deliver what a wave of more slots exchanges: what comes out is the same, and nobody else's.

        A few rows wait for others: a call of the task costs more than they do.
        """
        if not as_unpacked(tuples):
            packed = self._way(edge, task).pack(tuples)
            unpacked = self._unpack(run, edge.source, task, packed)
            if unpacked is None:
                raise AttemptAborted
            tuples = unpacked
        waiting = run.waiting.setdefault(target, [])
        waiting.append((tuples, self._env.source(edge, task)))
        if sum([len(few) for few, _ in waiting]) > FEW_ROWS and not self._execute_waiting(run, target):
            raise AttemptAborted

    def _deliver(self, run: AttemptRun, edge: Edge, task: int, target: int, tuples: Tuples) -> None:
        receiver = self._task(run, target)
        if receiver is None or not receiver.execute_all([(tuples, self._env.source(edge, task))]):
            raise AttemptAborted

    # ------------------------------------------------------------------------------------ the end of input

    def _check_counts(self) -> None:
        sources = self._layout.sources_of(self._stage)
        missing = len([source for source in sources if source not in self._closed])
        sent: dict[int, dict[blocks.Count, int]] = {}
        for closing in self._closed.values():
            for index in closing.failed:
                self._runs[index].fail(self._incomplete("the attempt has failed in an earlier stage"))
            for count, rows in closing.counts.items():
                sent.setdefault(count[0], {})[count] = rows
        held: dict[int, dict[blocks.Count, int]] = {}
        for count, rows in self._received.items():
            held.setdefault(count[0], {})[count] = rows
        for run in self._runs:
            if missing:
                run.fail(self._incomplete(f"the counts of {missing} of {len(sources)} Spark tasks have not arrived"))
            elif sent.get(run.index, {}) != held.get(run.index, {}):
                run.fail(self._incomplete(blocks.difference(sent.get(run.index, {}), held.get(run.index, {}))))

    def _incomplete(self, what: str) -> Failure:
        component = self._components[0].id if self._components else self._plan.spout.id
        return Failure(component, None, f"input of stage {self._stage} was cut: {what}", counts=False)

    def _finish(self, run: AttemptRun) -> None:
        if run.finished:
            return
        for planned in self._components:
            for task in self._tasks_here[planned.id]:
                if run.failed:
                    run.release()
                    return
                if planned.id == self._plan.spout.id:
                    continue
                self._finish_task(run, planned, task)
        run.release()

    def _finish_task(self, run: AttemptRun, planned: PlannedComponent, task: int) -> None:
        came_through = self._execute_waiting(run, task)
        if planned.id in self._skip_empty and task not in run.tasks:
            return
        bolt_task = self._task(run, task)
        if bolt_task is None or not came_through:
            return
        if planned.deferred:
            assert isinstance(bolt_task, BatchBoltTask)
            self._guarded(run, planned.id, task, "execute", self._gather, run, bolt_task, task)
        elif not bolt_task.finish():
            return
        elif isinstance(bolt_task, BatchBoltTask) and bolt_task.turn is not None:
            run.take_handle(bolt_task.turn.handle)
        if bolt_task.context.metrics is not None and not run.failed:
            self._guarded(run, planned.id, task, "its metrics", bolt_task.count_into, run.result.metrics)

    def _gather(self, run: AttemptRun, bolt_task: BatchBoltTask, task: int) -> None:
        bolt_task.collector.finish("execute")
        gathered = bolt_task.gathered(self._env.registry)
        self._take_room(run, bolt_task.of.component, len(gathered))
        run.given(task).gathered = gathered


def _skips_empty(planned: PlannedComponent) -> bool:
    bolt = planned.component.obj
    return isinstance(bolt, IBatchLifecycle) and bolt.skips_empty and not planned.deferred
