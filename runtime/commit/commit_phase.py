"""CommitPhase: the commit phase of one attempt, led from the driver process.

Deferred bolts finish stage by stage: the tasks placed on the driver side by side, each in a thread that is its own for
as long as the topology runs; those placed on the executors in one job beside them. What they emit goes to the deferred
bolts of later stages, in the same commit phase.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any

from stormline.runtime.commit.executor_turn import ExecutorTurn
from stormline.runtime.commit.sink_commits import SinkCommits
from stormline.runtime.messages.engine import CommitEngine
from stormline.runtime.messages.wave import AttemptResult, DeferredTask, Failure
from stormline.runtime.tasks.bolt_tasks import BasicBoltAtCommit, execute_tuples
from stormline.runtime.tasks.collector import Route
from stormline.runtime.tasks.commit_calls import COMMIT_CALLS
from stormline.runtime.tasks.commit_participants import CommitParticipants
from stormline.runtime.tasks.gathered import restore_gathered
from stormline.runtime.tasks.other_state import OtherState
from stormline.runtime.tasks.task_environment import TaskEnvironment
from stormline.runtime.tasks.task_hooks import add_auto_hooks, hooked_batch_bolt, tell_of_emits
from stormline.runtime.tasks.task_routes import HandOver, collector_of
from stormline.runtime.tasks.user_code import AttemptAborted, UserCode, failure_of, run_guarded
from stormline.runtime.tuples.columns import Tuples
from stormline.runtime.tuples.delivery import Delivery
from stormline.runtime.tuples.packing import Packed
from stormline.runtime.world.effects import while_effects_only
from stormline.runtime.world.own_thread import CallAbandoned
from stormline.runtime.world.running_calls import told
from stormline.runtime.world.wanted import WhileWanted
from stormline.topology.commit_groups import effects_of
from stormline.topology.commit_participants import WHOLE_TOPOLOGY, CommitParticipant
from stormline.topology.contracts import AnyBatchBolt, IBasicBolt, ICommitterTransactionalSpout
from stormline.topology.errors import CorruptData
from stormline.topology.gathering import gathered_by
from stormline.topology.plan import Edge, Placement, PlannedComponent
from stormline.topology.readings import Readings, merge_into


class CommitTask:
    """One task of a deferred bolt in one commit. `executing_secs`: how long it prepared and executed."""

    def __init__(
        self,
        env: TaskEnvironment,
        planned: PlannedComponent,
        task: int,
        result: AttemptResult,
        participants: CommitParticipants,
    ) -> None:
        self._env = env
        self._planned = planned
        self.participants = participants
        self._attempt = result.attempt
        self.task = task
        self.sent: list[Delivery] = []
        self.failure: Failure | None = None
        self.executing_secs = 0.0
        self._abandoned = False
        self._deferred = result.deferred.get(task) or DeferredTask()
        self.collector = collector_of(env, planned, task, result.attempt, self._route)
        basic = self.basic = isinstance(planned.component.obj, IBasicBolt)
        """Whether the bolt is a BasicBolt, which is prepared once for many commits."""
        self._bolt: AnyBatchBolt = BasicBoltAtCommit(env, planned.id, task) if basic else env.fresh_bolt(planned.id)
        self._executes: AnyBatchBolt = self._bolt
        shared = env.context(planned.id, task)
        self._context = shared if basic else shared.for_attempt()
        self.metrics: Readings = {}

    def _route(self, edge: Edge) -> Route:
        """Return the route to tasks that have their turn later in the commit."""
        split = self._env.splitter(edge, self.task, self.task + self._attempt.transaction_id)

        def send(target: int, tuples: Tuples) -> None:
            self.sent.append(Delivery(edge.index, self.task, target, tuples))

        return HandOver(split, self._env.plan.components[edge.target].tasks, send)

    @property
    def component(self) -> str:
        """Id of the bolt."""
        return self._planned.id

    def run(self, inbox: Sequence[Delivery]) -> None:
        """Prepare, take over what was gathered, execute what is left to execute, and finish."""
        target = effects_of(self._planned.component.obj)
        with COMMIT_CALLS, WhileWanted(lambda: not self._abandoned):
            if target is None:
                self._run(inbox)
                return
            with while_effects_only(self.component, target):
                self._run(inbox)

    def _run(self, inbox: Sequence[Delivery]) -> None:
        begun = self._env.world.monotonic()
        self.collector.take_over()
        self._guarded("prepare", self._prepare)
        self._guarded("execute", self._execute, inbox)
        self.executing_secs = self._env.world.monotonic() - begun
        self._guarded("finish_batch", self._finish)
        self.collector.close()
        if self._context.metrics is not None:
            self._guarded("its metrics", self._context.count_into, self.metrics)
        if not (self.basic or self._abandoned):
            self._context.clean_up()

    def _guarded(self, where: str, call: Callable[..., None], *args: Any) -> None:
        if self.failure is None and not self._abandoned:
            of = UserCode(self._planned.id, self.task, self._attempt, self._env.calls)
            failure = run_guarded(of, where, call, *args)
            self.failure = self.failure or failure

    def abandon(self) -> None:
        """Begin no further call of user code, and refuse what the present one emits."""
        self._abandoned = True
        self.collector.close()

    def _prepare(self) -> None:
        self._context.participants = self.participants
        if self.basic:
            self._context.count_into({})  # what a commit that failed has counted
        else:
            add_auto_hooks(self._context)
        self._bolt.prepare(self._env.conf(self._planned.id), self._context, self.collector, self._attempt)
        self.collector.flush()
        if self._deferred.gathered is not None:
            self.sent.clear()  # it was prepared on the executors, too, and what it emits there has been sent
            restore_gathered(self._bolt, self._deferred.gathered, self._env.registry)
        if self.basic:
            tell_of_emits(self._context, self.collector)
        else:
            self._executes = hooked_batch_bolt(self._bolt, self._context, self.collector, self._env.world)

    def _finish(self) -> None:
        self._bolt.finish_batch()
        self.collector.finish("finish_batch")

    def _execute(self, inbox: Sequence[Delivery]) -> None:
        deliveries = [*self._deferred.tuples, *inbox]
        gathers = gathered_by(self._planned.component.obj) if deliveries else None
        who = f"bolt {self.component!r} ({type(self._bolt).__name__}), task {self.task},"
        other = None if gathers is None else OtherState(self._bolt, gathers, alone=False, who=who)
        self._execute_all(deliveries)
        if other is not None:
            other.check()

    def _execute_all(self, deliveries: Iterable[Delivery]) -> None:
        for delivery in deliveries:
            edge = self._env.plan.edges[delivery.edge]
            tuples = delivery.tuples
            if isinstance(tuples, Packed):
                tuples = self._read(tuples, edge.source, delivery.source_task)
            execute_tuples(self._executes, tuples, self._env.source(edge, delivery.source_task))
        self.collector.flush()

    def _read(self, tuples: Packed, component: str, task: int) -> Tuples:
        """Return tuples that have come packed; the user's serializers, where there are some, read here."""
        where, registry = "reading the tuples", self._env.registry
        if registry.plain:  # nobody's code but ours reads
            try:
                return tuples.unpack_whole(self._attempt, registry)
            except CorruptData as error:
                self.failure = failure_of(error, component, task, where)
                raise AttemptAborted from None
        of = UserCode(component, task, self._attempt, self._env.calls)
        read = run_guarded(of, where, tuples.unpack_whole, self._attempt, registry)
        if isinstance(read, Failure):
            self.failure = read
            raise AttemptAborted
        return read


class _Turn:
    """What has its turn together: one commit stage of the plan."""

    def __init__(
        self,
        env: TaskEnvironment,
        components: Sequence[str],
        result: AttemptResult,
        engine: CommitEngine,
        participants: CommitParticipants,
    ) -> None:
        here: list[PlannedComponent] = []
        there: list[PlannedComponent] = []
        for planned in (env.plan.components[name] for name in components):
            (there if planned.commit_placement is Placement.EXECUTORS else here).append(planned)
        self._env = env
        self.here = [CommitTask(env, planned, task, result, participants) for planned in here for task in planned.tasks]
        self.there = ExecutorTurn(env, there, result, engine) if there else None

    def run(self, inbox: Mapping[int, Sequence[Delivery]], caller: object) -> None:
        """Run all tasks to their end, each in its own thread; one that is always alone in that of the committer."""
        if self.there is None and len(self.here) == 1 and not self.here[0].basic:
            self.here[0].run(inbox.get(self.here[0].task, ()))
            return
        begin = self._env.commit_threads.begin
        calls = [begin(task.task, partial(task.run, inbox.get(task.task, ())), caller) for task in self.here]
        with ExitStack() as all_ended:  # whatever one of them raises
            for call in calls:
                all_ended.callback(call.wait)
            if self.there is not None:
                self.there.run(inbox)

    def failure(self) -> Failure | None:
        """Return why it failed, a fatal reason first, or None."""
        failures = [task.failure for task in self.here if task.failure is not None]
        if self.there is not None:
            failures += self.there.failures
        return next((f for f in failures if f.fatal), failures[0] if failures else None)

    def sent(self) -> list[Delivery]:
        """Return what the tasks emitted, for those of later turns."""
        sent = [delivery for task in self.here for delivery in task.sent]
        return sent + (self.there.sent if self.there is not None else [])

    def counted(self) -> list[Readings]:
        """Return what the metrics of each task have counted."""
        return [task.metrics for task in self.here] + ([self.there.metrics] if self.there is not None else [])

    def abandon(self) -> None:
        """Begin no further call of user code."""
        for task in self.here:
            task.abandon()
        if self.there is not None:
            self.there.abandon()


class CommitPhase:
    """The commit phase of one attempt."""

    def __init__(self, env: TaskEnvironment, result: AttemptResult, engine: CommitEngine) -> None:
        self._env = env
        self.attempt = result.attempt
        self._abandoned = False
        self._handles = result.handles
        self._ends_soon = False
        self.only_sinks_left = False
        """Whether all else is done, and what was decided is being committed in sinks, however long that takes."""
        self._engine = engine
        self._emitters_metrics: Readings = {}
        self._participants = env.participants(self.attempt, WHOLE_TOPOLOGY)
        self._turns = [
            _Turn(env, components, result, engine, self._participants) for components in env.plan.commit_stages
        ]

    def run(self) -> Failure | None:
        """Run it to its end, that of all who take part; return why it failed, or None."""
        try:
            failure = self._run_turns()
            if failure is None:
                failure = self._participants.commit(lambda: not self._abandoned)
            if failure is None and self._handles and not self._abandoned:
                self.only_sinks_left = True
                commits = SinkCommits(self._env, self.attempt, self._handles, self._sinks_wanted)
                failure = commits.run()
        finally:  # nothing is left where all have committed
            self._participants.abort()
        if self._abandoned:
            return Failure("the commit phase", None, "it was abandoned", counts=False)
        return failure

    def _sinks_wanted(self) -> bool:
        return not (self._abandoned or self._ends_soon)

    def end_soon(self) -> None:
        """Wait no longer for sinks that cannot commit now: what was decided is committed by the next driver."""
        self._ends_soon = True

    def run_within(self, key: Hashable, name: str, participant: CommitParticipant) -> Failure | None:
        """Run all but the end of those who take part: `participant`, the only one, becomes durable with others'."""
        self._participants.share(key, name, participant)
        try:
            return self._run_turns()
        finally:
            self._participants.close()

    @property
    def wanted(self) -> bool:
        """Whether nothing has taken its place."""
        return not self._abandoned

    def _run_turns(self) -> Failure | None:
        failure = self._commit_emitters()
        inbox: dict[int, list[Delivery]] = {}
        for turn in self._turns:
            if failure is not None or self._abandoned:
                break
            turn.run(inbox, self)
            failure = turn.failure()
            for delivery in turn.sent():
                inbox.setdefault(delivery.target_task, []).append(delivery)
        return failure

    def _commit_emitters(self) -> Failure | None:
        spout = self._env.plan.spout
        if not isinstance(spout.component.obj, ICommitterTransactionalSpout):
            return None
        for task in spout.tasks:
            if self._abandoned:
                break
            of = UserCode(spout.id, task, self.attempt, self._env.calls)
            failure = run_guarded(of, "commit", self._commit_emitter, task)
            if failure is not None:
                return failure
        return None

    def _commit_emitter(self, task: int) -> None:
        def commit(emitter: Any) -> None:
            if self._abandoned:  # while the emitter emitted
                raise CallAbandoned("the commit was abandoned")
            context = self._env.context(self._env.plan.spout.id, task)
            context.participants = self._participants
            try:
                emitter.commit(self.attempt)
            finally:  # the emitter counts for all attempts, one after another
                context.count_into(self._emitters_metrics)

        self._env.emitters.call(task, commit, self)

    def metrics(self) -> Readings:
        """Return what has been counted."""
        readings = dict(self._emitters_metrics)
        for turn in self._turns:
            for counted in turn.counted():
                merge_into(readings, counted)
        return readings

    def executing_secs(self) -> dict[str, float]:
        """Return how long the bolts that execute here for want of `gathers` have prepared and executed, by bolt."""
        secs: dict[str, float] = {}
        for task in (task for turn in self._turns for task in turn.here):
            if self._env.plan.components[task.component].stage is None:
                secs[task.component] = secs.get(task.component, 0.0) + task.executing_secs
        return secs

    def abandon(self) -> None:
        """Begin no further call of user code: another attempt, or another driver, has taken this one's place."""
        self._abandoned = True
        self._env.emitters.withdraw(self)
        for turn in self._turns:
            turn.abandon()

    def where(self) -> str:
        """Return which calls of user code run now, and where they stand."""
        attempts = (self.attempt,)
        return told([*self._env.calls.reports(attempts), *self._engine.calls(attempts)]) or "the executors"
