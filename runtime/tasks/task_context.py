"""TaskContext: the TopologyContext that tasks are given."""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from stormline.runtime.errors import HookTooLate, InvalidHook, InvalidMetric, NotCommitting, OtherEffects
from stormline.runtime.tasks.commit_participants import CommitParticipants, OpenResource
from stormline.runtime.tasks.task_metrics import TaskMetrics
from stormline.topology.attempt import TransactionAttempt
from stormline.topology.commit_groups import effects_of
from stormline.topology.commit_participants import CommitParticipant
from stormline.topology.context import TopologyContext
from stormline.topology.contracts import Conf
from stormline.topology.errors import UnknownAttempt, UnknownComponent, UnknownStream, did_you_mean
from stormline.topology.fields import Fields
from stormline.topology.grouping import DEFAULT_STREAM, GlobalStreamId, Grouping
from stormline.topology.hooks import ITaskHook
from stormline.topology.metrics import Counter, Gauge, Histogram, IReducer, Meter, ReducedMetric, Timer
from stormline.topology.plan import Plan, PlannedComponent
from stormline.topology.readings import Readings, merge_into
from stormline.topology.storm_names import storm_names

log = logging.getLogger("stormline")


@storm_names(getExecutorData="get_task_data", setExecutorData="set_task_data")
class TaskContext(TopologyContext):
    """What one task may know. `commit_ids` are those of the process, by attempt.

    What is registered stays with this object: a BatchBolt is given one `for_attempt`, all else the task's own. Where
    nothing was, `metrics` is None and `hooks` is empty: who counts or wraps looks no further.
    """

    participants: CommitParticipants | None = None
    """Those of the commit phase in which the task has, or last had, its turn."""
    metrics: TaskMetrics | None = None
    hooks: tuple[ITaskHook, ...] = ()
    _prepared = False
    _inherited = 0

    def __init__(
        self,
        plan: Plan,
        epoch: int,
        component: str,
        task: int,
        commit_ids: Mapping[TransactionAttempt, int] = MappingProxyType({}),
        conf: Conf = MappingProxyType({}),
    ) -> None:
        self._plan = plan
        self._epoch = epoch
        self._component = component
        self._task = task
        self._commit_ids = commit_ids
        self.conf = conf
        self._data: dict[str, Any] = {}

    def __deepcopy__(self, memo: Any) -> TaskContext:
        return self

    @property
    def topology_id(self) -> str:
        """Id that keys all durable state."""
        return self._plan.topology_id

    @property
    def epoch(self) -> int:
        """Number of this driver's ownership of the topology id."""
        return self._epoch

    @property
    def this_component_id(self) -> str:
        """Id of the component this task belongs to."""
        return self._component

    @property
    def this_task_id(self) -> int:
        """Id of this task."""
        return self._task

    @property
    def this_task_index(self) -> int:
        """Position among the component's tasks, from 0."""
        return self._plan.components[self._component].tasks.index(self._task)

    @property
    def this_sources(self) -> Mapping[GlobalStreamId, Grouping]:
        """Streams that this component subscribes to."""
        return dict(self._plan.components[self._component].component.inputs)

    @property
    def this_targets(self) -> Mapping[str, Mapping[str, Grouping]]:
        """For each stream of this component, the bolts that subscribe to it."""
        targets: dict[str, dict[str, Grouping]] = {}
        for edge in self._plan.edges:
            if edge.source == self._component:
                targets.setdefault(edge.stream, {})[edge.target] = edge.grouping
        return targets

    def targets_are_columnar(self, stream: str = DEFAULT_STREAM) -> bool:
        """Return whether bolts subscribe to a stream of this component, and all of them take record batches."""
        edges = self._plan.out_edges(self._component, stream)
        return bool(edges) and all(self._plan.components[edge.target].component.columnar for edge in edges)

    def component_tasks(self, component: str) -> Sequence[int]:
        """Return the task ids of a component, ascending."""
        return list(self._planned(component).tasks)

    def component_output_fields(self, component: str | GlobalStreamId, stream: str = DEFAULT_STREAM) -> Fields:
        """Return the fields of a stream."""
        if isinstance(component, GlobalStreamId):
            return self.component_output_fields(component.component, component.stream)
        streams = self._planned(component).component.streams
        if stream not in streams:
            raise UnknownStream(
                f"component {component!r} has no stream {stream!r}; it declares {list(streams)}"
                f"{did_you_mean(stream, streams)}"
            )
        return streams[stream].fields

    def get_component_ids(self) -> Sequence[str]:
        """Return the ids of all components, the spout's first."""
        return list(self._plan.components)

    def get_component_id(self, task: int) -> str:
        """Return the component of a task."""
        components = self._plan.component_of_task()
        if task not in components:
            raise UnknownComponent(f"topology {self.topology_id!r} has no task {task!r}; it has {sorted(components)}")
        return components[task]

    def get_component_streams(self, component: str) -> Sequence[str]:
        """Return the streams that a component declares."""
        return list(self._planned(component).component.streams)

    def _planned(self, component: str) -> PlannedComponent:
        planned = self._plan.components.get(component)
        if planned is None:
            raise UnknownComponent(
                f"topology {self.topology_id!r} has no component {component!r}; it has "
                f"{list(self._plan.components)}{did_you_mean(component, self._plan.components)}"
            )
        return planned

    def commit_id(self, attempt: TransactionAttempt) -> int:
        """Return the id under which a transaction commits."""
        try:
            return self._commit_ids[attempt]
        except KeyError:
            raise UnknownAttempt(
                f"component {self._component!r} asks for the commit id of {attempt}, on which this process does not "
                "work (any more); ask for that of the attempt that `prepare`, or `commit`, was given"
            ) from None

    def take_part(self, attempt: TransactionAttempt, key: Hashable, open_resource: OpenResource) -> CommitParticipant:
        """Return what takes part in the commit phase of `attempt` under `key`."""
        if self.participants is None:
            raise NotCommitting.of(self._component, attempt)
        target = effects_of(self._plan.components[self._component].component.obj)
        if target is not None and target != key:
            raise OtherEffects.of(self._component, target, key)
        return self.participants.take_part(self._component, attempt, key, open_resource)

    # ------------------------------------------------------------------------------------ metrics and hooks

    def for_attempt(self) -> TaskContext:
        """Return the context of this task for one attempt of a BatchBolt, which counts and adds hooks for itself."""
        made = object.__new__(TaskContext)
        made.__dict__.update(self.__dict__)
        made.metrics, made._prepared, made._inherited = None, False, len(self.hooks)
        return made

    def count_into(self, readings: Readings) -> None:
        """Add to `readings` what was counted since the last call."""
        if self.metrics is not None:
            merge_into(readings, self.metrics.taken())

    def clean_up(self) -> None:
        """Clean up the hooks that were added to this object; an error in one is logged."""
        for hook in self.hooks[self._inherited :]:
            try:
                hook.cleanup()
            except BaseException:  # whatever it is, the others are cleaned up too
                log.exception("cleanup of a task hook of component %r, task %d", self._component, self._task)

    def renew(self) -> None:
        """Record that the component is about to be prepared, perhaps again: it adds its hooks anew."""
        self.clean_up()
        self.hooks, self._prepared = (), False

    def prepared(self) -> None:
        """Record that the component is prepared: nobody would heed hooks that come later."""
        self._prepared = True

    def add_task_hook(self, hook: ITaskHook) -> None:
        """Let `hook` hear of what the task does, from the end of `prepare` on."""
        if self._prepared:
            raise HookTooLate(
                f"component {self._component!r} adds task hook {hook!r} after its prepare(), where it would hear "
                "nothing; add it in prepare(), or in get_emitter() of a spout"
            )
        if not isinstance(hook, ITaskHook):
            raise InvalidHook(
                f"component {self._component!r} adds task hook {hook!r}, expected an object of a kind of BaseTaskHook"
            )
        hook.prepare(self.conf, self)
        self.hooks = (*self.hooks, hook)

    def register_counter(self, name: str) -> Counter:
        """Return the counter of this name."""
        return self._counted().metric(name, Counter, Counter)

    def register_meter(self, name: str) -> Meter:
        """Return the meter of this name."""
        return self._counted().metric(name, Meter, Meter)

    def register_histogram(self, name: str) -> Histogram:
        """Return the histogram of this name."""
        return self._counted().metric(name, Histogram, Histogram)

    def register_timer(self, name: str) -> Timer:
        """Return the timer of this name."""
        return self._counted().metric(name, Timer, Timer)

    def register_gauge(self, name: str, value_of: Callable[[], Any]) -> Gauge:
        """Return a gauge that asks `value_of`; registered again, it asks the newer one."""
        if not callable(value_of):
            raise InvalidMetric(
                f"component {self._component!r} registers gauge {name!r} with {value_of!r}, expected a function "
                "without arguments that returns its value"
            )
        gauge = self._counted().metric(name, Gauge, lambda: Gauge(value_of))
        gauge.value_of = value_of
        return gauge

    def register_metric(self, name: str, metric: Any, time_bucket_secs: float = 60) -> Any:
        """Register a metric of Storm's first kind, or a reducer to make one of, and return it."""
        if isinstance(metric, IReducer):
            return self._counted().metric(name, ReducedMetric, lambda: ReducedMetric(metric))
        self._counted().add(name, metric)
        return metric

    def _counted(self) -> TaskMetrics:
        if self.metrics is None:
            self.metrics = TaskMetrics(self._component)
        return self.metrics

    # ------------------------------------------------------------------------------------ data of the task

    def set_task_data(self, name: str, value: Any) -> None:
        """Keep a value for this task in this process."""
        self._data[name] = value

    def get_task_data(self, name: str) -> Any:
        """Return what `set_task_data` kept, or None."""
        return self._data.get(name)
