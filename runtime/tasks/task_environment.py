"""TaskEnvironment: what one process keeps of a topology from wave to wave."""

from __future__ import annotations

import copy
import copyreg
import dataclasses
import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any

from stormline.runtime.tasks.commit_participants import CommitParticipants, CommitResources
from stormline.runtime.tasks.commit_threads import CommitThreads
from stormline.runtime.tasks.driver_sinks import DriverSinks, opened
from stormline.runtime.tasks.emitters import Emitters
from stormline.runtime.tasks.task_context import TaskContext
from stormline.runtime.tasks.task_hooks import add_auto_hooks, hooked_basic_bolt
from stormline.runtime.tuples import partitioning
from stormline.runtime.tuples.canonical_form import stable_hashes
from stormline.runtime.tuples.columns import Columns, Tuples
from stormline.runtime.tuples.grouping_key import Key
from stormline.runtime.tuples.packing import unregistered_field
from stormline.runtime.world.running_calls import Calls
from stormline.runtime.world.world import REAL, World
from stormline.topology.attempt import TransactionAttempt
from stormline.topology.commit_groups import commit_groups
from stormline.topology.commit_participants import CommitToken
from stormline.topology.config import DEBUG, KNOWN_KEYS, KRYO_REGISTER
from stormline.topology.contracts import AnyBatchBolt, Conf, IBasicBolt, ICommitterTransactionalSpout
from stormline.topology.errors import InvalidRegistration, UnregisteredClass
from stormline.topology.grouping import GlobalStreamId, GroupingKind
from stormline.topology.plan import Edge, Placement, Plan
from stormline.topology.registration import Registration
from stormline.topology.serialization import Registry
from stormline.topology.spout_parts import EMITTER, check_part
from stormline.topology.streams import StreamDeclaration
from stormline.topology.tuples import TupleSource
from stormline.topology.two_phase_bolt import TwoPhaseCommitter, sink_of
from stormline.topology.two_phase_commit import TwoPhaseCommitSink

log = logging.getLogger("stormline")

_DEFAULTS = {key: known.default for key, known in KNOWN_KEYS.items() if known.default is not None}
_ATOMS = frozenset({str, bytes, int, float, bool, type(None)})

Outlet = tuple[str, StreamDeclaration, Sequence[Edge], frozenset[int]]
"""A stream of a component: its name and declaration, its subscriptions, and the tasks that these may reach."""


def registry_of(plan: Plan) -> Registry:
    """Return the wire format of a topology: its registrations win over its components' own.

    Raises:
        InvalidRegistration: two components register one name differently.
    """
    merged: dict[str, tuple[Registration, str]] = {}
    for planned in plan.components.values():
        for registration in planned.component.config.get(KRYO_REGISTER, ()):
            other, who = merged.setdefault(registration.name, (registration, planned.id))
            if type(other.serializer) is not type(registration.serializer):
                raise InvalidRegistration(
                    f"components {who!r} and {planned.id!r} register {registration.name} with different serializers; "
                    "register it once, in the topology's configuration"
                )
    for registration in plan.config.get(KRYO_REGISTER, ()):
        merged[registration.name] = (registration, "the topology")
    return Registry(registration for registration, _ in merged.values())


_MAKES_AND_READS = ("__new__", "__reduce_ex__", "__reduce__", "__getstate__", "__getattribute__")
_HOOKS_OF_COPY = ("__copy__", "__deepcopy__", "__setstate__", "__getnewargs__", "__getnewargs_ex__")


def _is_copied_plainly(obj: Any) -> bool:
    """Return whether all that copying does with an object is to make one of its class and to fill its __dict__."""
    kind = type(obj)
    return (
        hasattr(obj, "__dict__")
        and all(getattr(kind, name, None) is getattr(object, name, None) for name in _MAKES_AND_READS)
        and not any(hasattr(obj, name) for name in _HOOKS_OF_COPY)
        and kind not in copyreg.dispatch_table
        and not any(vars(klass).get("__slots__") for klass in kind.__mro__)
        and type(obj.__reduce_ex__(4)) is tuple  # it can be
    )


class TaskEnvironment:
    """Configurations, contexts, prepared BasicBolts, emitters and routing of one process. Tasks share it.

    Several threads fill its dicts, and lock nothing: what is made first, by `setdefault`, is what all of them get.

    `driver_conf`: what each `conf` holds in the driver, and in no other process. `resources`: those of commits, where
    they are to be others than bolts ask for.
    """

    def __init__(
        self,
        plan: Plan,
        epoch: int,
        driver_conf: Mapping[str, Any] = MappingProxyType({}),
        world: World = REAL,
        resources: CommitResources | None = None,
    ) -> None:
        self.plan = plan
        self.world = world
        self._driver_conf = driver_conf
        self.epoch = epoch
        self.registry = registry_of(plan)
        self._confs: dict[str, Conf] = {}
        self._contexts: dict[int, TaskContext] = {}
        self.commit_ids: dict[TransactionAttempt, int] = {}
        """By attempt: see `work_on`."""
        self._basic_bolts: dict[int, IBasicBolt] = {}
        self.emitters = Emitters(world, self._made_emitter, plan.stages[0].placement is Placement.DRIVER)
        self.commit_threads = CommitThreads(world)
        self.commit_resources = resources or CommitResources(world)
        self.groups = commit_groups(plan)
        self.sinks = DriverSinks(world, plan, epoch, self.conf, self.context)
        """In the driver; on the executors each task has its own: see `sink`."""
        self._task_sinks: dict[int, TwoPhaseCommitSink] = {}
        self.calls = Calls(world)
        self.closed = world.event()
        self._keys: dict[int, Key] = {}
        self._customs: dict[tuple[int, int], Edge] = {}
        self._component_of_task = plan.component_of_task()
        self._sources: dict[tuple[int, int], TupleSource] = {}
        self._outlets: dict[str, tuple[bool, Sequence[Outlet]]] = {}
        self._declared_bolts: dict[str, tuple[AnyBatchBolt, bool, Mapping[int, Any]]] = {}
        self._lock = threading.Lock()  # of the commit ids; nobody's code runs under it: it may hang

    def conf(self, component: str) -> Conf:
        """Return a component's configuration: its own keys win over the topology's."""
        conf = self._confs.get(component)
        if conf is None:
            own = self.plan.components[component].component.config
            conf = self._confs.setdefault(component, {**_DEFAULTS, **self.plan.config, **own, **self._driver_conf})
        return conf

    def debug(self, component: str) -> bool:
        """Return whether a component's tuples are to be logged."""
        return bool(self.conf(component).get(DEBUG))

    def context(self, component: str, task: int) -> TaskContext:
        """Return the context of a task."""
        context = self._contexts.get(task)
        if context is None:
            made = TaskContext(self.plan, self.epoch, component, task, self.commit_ids, self.conf(component))
            context = self._contexts.setdefault(task, made)
        return context

    def work_on(self, commit_ids: Mapping[TransactionAttempt, int], committed: int = 0) -> None:
        """Record attempts and their commit ids; forget earlier attempts, and transactions up to `committed`."""
        newest = {attempt.transaction_id: attempt.attempt_id for attempt in commit_ids}

        def over(old: TransactionAttempt) -> bool:
            return old.transaction_id <= committed or old.attempt_id < newest.get(old.transaction_id, 0)

        with self._lock:
            for attempt in [old for old in self.commit_ids if over(old)]:
                del self.commit_ids[attempt]
            self.commit_ids.update(commit_ids)

    def participants(self, attempt: TransactionAttempt, scope: str) -> CommitParticipants:
        """Return what is to take part in a commit phase: nothing yet."""

        # Its token not before it is asked for: an attempt that was taken back has none any more.
        token = partial(self.commit_token, attempt, scope)
        return CommitParticipants(self.commit_resources, attempt, token, self.registry, self.calls)

    def commit_token(self, attempt: TransactionAttempt, scope: str) -> CommitToken:
        """Return what a commit phase shows to those that take part in it."""
        return CommitToken(self.plan.topology_id, scope, self.epoch, attempt, self.commit_ids[attempt])

    def component_of(self, task: int) -> str:
        """Return the component of a task id."""
        return self._component_of_task[task]

    def fresh_bolt(self, component: str) -> AnyBatchBolt:
        """Return a fresh copy of the declared BatchBolt."""
        declared, plain, shared = self._declared_bolts.get(component) or self._declared_bolt(component)
        if plain:  # all that copy.deepcopy would do, in a fraction of the time
            made: AnyBatchBolt = object.__new__(type(declared))
            if held := vars(declared):  # an object whose __dict__ nobody has asked for is quicker to work with
                own, memo = vars(made), {**shared, id(declared): made}
                for name, value in held.items():
                    own[name] = value if type(value) in _ATOMS else copy.deepcopy(value, memo)
            return made
        reduced = declared.__reduce_ex__(4)
        state = reduced[2] if isinstance(reduced, tuple) and len(reduced) > 2 else declared
        # What stands in __slots__ makes the state a tuple.
        if state is None or (type(state) is dict and _ATOMS.issuperset(map(type, state.values()))):
            return copy.copy(declared)
        return copy.deepcopy(declared, dict(shared))

    def _declared_bolt(self, component: str) -> tuple[AnyBatchBolt, bool, Mapping[int, Any]]:
        """Return a bolt, whether it is copied plainly, and what its copies share, as deepcopy takes it."""
        declared = self.plan.components[component].component.obj
        assert isinstance(declared, AnyBatchBolt)
        # Nobody opens the sink that was declared: to copy it for each attempt would cost, and give nothing.
        shared = {id(declared.sink): declared.sink} if isinstance(declared, TwoPhaseCommitter) else {}
        found = self._declared_bolts[component] = declared, _is_copied_plainly(declared), shared
        return found

    def basic_bolt(self, component: str, task: int) -> IBasicBolt:
        """Return the prepared BasicBolt of a task, prepared once in this process."""
        bolt = self._basic_bolts.get(task)
        if bolt is None:
            declared = self.plan.components[component].component.obj
            assert isinstance(declared, IBasicBolt)
            made = copy.deepcopy(declared)
            context = self.context(component, task)
            context.renew()
            add_auto_hooks(context)
            made.prepare(self.conf(component), context)
            bolt = self._basic_bolts.setdefault(task, hooked_basic_bolt(made, context, self.world))
        return bolt

    def sink(self, component: str, task: int) -> TwoPhaseCommitSink:
        """Return the two-phase sink of a task, opened once in this process."""
        sink = self._task_sinks.get(task)
        if sink is None:
            bolt = sink_of(self.plan.components[component].component)
            assert bolt is not None
            made = opened(bolt, self.conf(component), self.context(component, task))
            sink = self._task_sinks.setdefault(task, made)
        return sink

    def _made_emitter(self, task: int) -> Any:
        spout = self.plan.spout
        declared: Any = spout.component.obj
        context = self.context(spout.id, task)
        context.renew()
        add_auto_hooks(context)
        made = declared.get_emitter(self.conf(spout.id), context)
        context.prepared()
        commits = isinstance(declared, ICommitterTransactionalSpout)
        check_part(spout.id, made, spout.component.kind, EMITTER, commits)
        return made

    def copied(self, metadata: Any) -> Any:
        """Return metadata as a restart would read it: user code may change what it was given, or gave."""
        return metadata if type(metadata) in _ATOMS else self.registry.unpack(self.registry.pack(metadata))

    def splitter(self, edge: Edge, source_task: int, seed: int) -> partitioning.Split:
        """Return what shares rows out to the tasks of `edge` for one sender; `seed` varies where a shuffle begins."""
        tasks = self.plan.components[edge.target].tasks
        kind = edge.grouping.kind
        if kind is GroupingKind.GLOBAL:
            return partitioning.single(min(tasks))
        if kind is GroupingKind.ALL:
            return partitioning.every(tasks)
        if kind is GroupingKind.DIRECT:
            return partitioning.direct
        if kind is GroupingKind.CUSTOM:
            return partitioning.custom(self._prepared_custom(edge, source_task), source_task, tasks)
        if kind in (GroupingKind.FIELDS, GroupingKind.PARTIAL_KEY):
            split = partitioning.fields if kind is GroupingKind.FIELDS else partitioning.partial_key
            return self._naming_fields(edge, split(self._key(edge, len(tasks)), tasks))
        return partitioning.shuffle(tasks, seed)

    def outlets(self, component: str) -> tuple[bool, Sequence[Outlet]]:
        """Return whether a component's tuples are to be logged, and what each of its collectors is made of."""
        found = self._outlets.get(component)
        if found is None:
            outlets = []
            for stream, declaration in self.plan.components[component].component.streams.items():
                edges = self.plan.out_edges(component, stream)
                outlets.append((stream, declaration, edges, self.listeners(edges)))
            found = self._outlets[component] = self.debug(component), outlets
        return found

    def listeners(self, edges: Sequence[Edge]) -> frozenset[int]:
        """Return all tasks that these subscriptions may reach."""
        return frozenset(task for edge in edges for task in self.plan.components[edge.target].tasks)

    def source(self, edge: Edge, task: int) -> TupleSource:
        """Return what tuples of `edge` say of their origin; shared by all of them."""
        source = self._sources.get((edge.index, task))
        if source is None:
            fields = self.plan.components[edge.source].component.streams[edge.stream].fields
            source = self._sources[(edge.index, task)] = TupleSource(edge.source, edge.stream, task, fields)
        return source

    def _key(self, edge: Edge, tasks: int) -> Key:
        key = self._keys.get(edge.index)
        if key is None:
            fields = self.plan.components[edge.source].component.streams[edge.stream].fields
            positions = [fields.field_index(name) for name in edge.grouping.fields]
            key = self._keys[edge.index] = partitioning.fields_key(edge, positions, tasks, self.registry)
        return key

    def _naming_fields(self, edge: Edge, split: partitioning.Split) -> partitioning.Split:
        """Let an error of a key that cannot be hashed name component, stream and field."""

        def named(tuples: Tuples) -> partitioning.Shares:
            try:
                return split(tuples)
            except UnregisteredClass as error:
                fields = self.plan.components[edge.source].component.streams[edge.stream].fields
                names = {fields.field_index(name): name for name in edge.grouping.fields}
                rows = [] if isinstance(tuples, Columns) else tuples
                raise unregistered_field(error, rows, names, self._hashed, (edge.source, edge.stream)) from None

        return named

    def _hashed(self, value: Any) -> object:
        return stable_hashes([value], self.registry)

    def _prepared_custom(self, edge: Edge, source_task: int) -> Edge:
        prepared = self._customs.get((edge.index, source_task))
        if prepared is None:
            grouping = copy.deepcopy(edge.grouping.custom)
            assert grouping is not None
            source = GlobalStreamId(edge.source, edge.stream)
            tasks = list(self.plan.components[edge.target].tasks)
            grouping.prepare(self.context(edge.source, source_task), source, tasks)
            made = dataclasses.replace(edge, grouping=dataclasses.replace(edge.grouping, custom=grouping))
            prepared = self._customs.setdefault((edge.index, source_task), made)
        return prepared

    def close(self) -> None:
        """Clean BasicBolts up and close emitters; an error in one is logged and does not keep the others open."""
        self.closed.set()
        closes: list[Callable[[], None]]
        closes = [partial(self.commit_threads.run, task, bolt.cleanup) for task, bolt in self._basic_bolts.items()]
        self._basic_bolts = {}
        closes += [*self.emitters.closes(), self.commit_threads.close, *self.commit_resources.closes()]
        closes += [*self.sinks.closes(), *(sink.close for sink in self._task_sinks.values())]
        self._task_sinks = {}
        closes += [context.clean_up for context in list(self._contexts.values())]
        for close in closes:
            try:
                close()
            except BaseException:  # whatever it is, the others are closed too
                log.exception("closing a component of topology %s", self.plan.topology_id)
