"""TopologyContext: what a task may know about itself and the topology around it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Protocol

from stormline.topology.attempt import TransactionAttempt
from stormline.topology.commit_participants import CommitParticipant, CommitResource
from stormline.topology.fields import Fields
from stormline.topology.grouping import DEFAULT_STREAM, GlobalStreamId, Grouping
from stormline.topology.hooks import ITaskHook
from stormline.topology.metrics import Counter, Gauge, Histogram, Meter, Timer


class TopologyContext(Protocol):
    """Given to `prepare`, to coordinators and to emitters."""

    @property
    def topology_id(self) -> str:
        """Id that keys all durable state."""

    @property
    def epoch(self) -> int:
        """Number of this driver's ownership of the topology id: a fencing token, greater after every take-over."""

    @property
    def this_component_id(self) -> str:
        """Id of the component this task belongs to."""

    @property
    def this_task_id(self) -> int:
        """Id of this task, unique in the topology."""

    @property
    def this_task_index(self) -> int:
        """Position of this task among its component's tasks, from 0."""

    @property
    def this_sources(self) -> Mapping[GlobalStreamId, Grouping]:
        """Streams that this component subscribes to."""

    @property
    def this_targets(self) -> Mapping[str, Mapping[str, Grouping]]:
        """For each stream of this component, the bolts that subscribe to it."""

    def targets_are_columnar(self, stream: str = DEFAULT_STREAM) -> bool:
        """Return whether bolts subscribe to a stream of this component, and all of them take record batches.

        Args:
            stream (str): id of a stream that this component declares.
        """

    def component_tasks(self, component: str) -> Sequence[int]:
        """Return the task numbers of a component, ascending.

        Args:
            component (str): id of a spout or bolt of this topology.

        Raises:
            UnknownComponent: there is none of that id.
        """

    def component_output_fields(self, component: str | GlobalStreamId, stream: str = DEFAULT_STREAM) -> Fields:
        """Return the fields of a stream, which is given by two ids or by one `GlobalStreamId`.

        Args:
            component (str | GlobalStreamId): id of a spout or bolt of this topology, or both ids in one.
            stream (str): id of the stream; not looked at where `component` is a `GlobalStreamId`.

        Raises:
            UnknownComponent: there is no component of that id.
            UnknownStream: it does not declare that stream.
        """

    def commit_id(self, attempt: TransactionAttempt) -> int:
        """Return the id under which a transaction commits, of at most 63 bits: the same for all its tasks.

        It is drawn at random for each attempt, and stored before the first commit effect; from then on all attempts of
        the transaction have it. So a database that holds this very transaction under another id is of another history:
        the topology's state was set back to an older copy. Together with component and task it is an idempotency key
        where each task gets the same tuples in every attempt: by a fields or global grouping.

        Args:
            attempt (TransactionAttempt): the attempt at hand, as `prepare` and `emit_batch` are given it.

        Raises:
            UnknownAttempt: this process does not work on `attempt`.
        """

    def take_part(
        self, attempt: TransactionAttempt, key: Hashable, open_resource: Callable[[], CommitResource]
    ) -> CommitParticipant:
        """Return what takes part in the commit phase of `attempt` under `key`; begun if it is asked for first.

        It is the same for all components and tasks in the driver, and prepared, committed or aborted when all of them
        have finished: see `CommitParticipant`. On the executors each task has one of its own. Stores of
        `stormline.state` come by it; so may a resource of your own.

        Args:
            attempt (TransactionAttempt): The one at hand, which `prepare` was given.
            key (Hashable): By which all that mean the same resource know it.
            open_resource (Callable[[], CommitResource]): Called once in each process, for the first that asks for
                `key`; what it returns is closed with the topology.

        Raises:
            NotCommitting: the commit phase of `attempt` does not run here.
        """

    def get_storm_id(self) -> str:
        """Return `topology_id`."""
        return self.topology_id

    def get_this_component_id(self) -> str:
        """Return `this_component_id`."""
        return self.this_component_id

    def get_this_task_id(self) -> int:
        """Return `this_task_id`."""
        return self.this_task_id

    def get_this_task_index(self) -> int:
        """Return `this_task_index`."""
        return self.this_task_index

    def get_this_sources(self) -> Mapping[GlobalStreamId, Grouping]:
        """Return `this_sources`."""
        return self.this_sources

    def get_this_targets(self) -> Mapping[str, Mapping[str, Grouping]]:
        """Return `this_targets`."""
        return self.this_targets

    def get_this_streams(self) -> Sequence[str]:
        """Return the streams that this component declares."""
        return self.get_component_streams(self.this_component_id)

    def get_this_output_fields(self, stream: str = DEFAULT_STREAM) -> Fields:
        """Return the fields of a stream of this component.

        Args:
            stream (str): id of the stream.

        Raises:
            UnknownStream: this component does not declare it.
        """
        return self.component_output_fields(self.this_component_id, stream)

    def get_component_ids(self) -> Sequence[str]:
        """Return the ids of all components, the spout's first."""

    def get_component_id(self, task: int) -> str:
        """Return the id of the component that a task belongs to.

        Args:
            task (int): number of the task, unique in the topology.

        Raises:
            UnknownComponent: no component has it.
        """

    def get_component_streams(self, component: str) -> Sequence[str]:
        """Return the ids of the streams that a component declares.

        Args:
            component (str): id of a spout or bolt of this topology.

        Raises:
            UnknownComponent: there is none of that id.
        """

    def get_component_tasks(self, component: str) -> Sequence[int]:
        """Return `component_tasks(component)`, as Storm names it.

        Args:
            component (str): id of a spout or bolt of this topology.

        Raises:
            UnknownComponent: there is none of that id.
        """
        return self.component_tasks(component)

    def get_component_output_fields(self, component: str | GlobalStreamId, stream: str = DEFAULT_STREAM) -> Fields:
        """Return `component_output_fields(component, stream)`, as Storm names it.

        Args:
            component (str | GlobalStreamId): id of a spout or bolt of this topology, or both ids in one.
            stream (str): id of the stream; not looked at where `component` is a `GlobalStreamId`.

        Raises:
            UnknownComponent: there is no component of that id.
            UnknownStream: it does not declare that stream.
        """
        return self.component_output_fields(component, stream)

    def register_counter(self, name: str) -> Counter:
        """Return a counter. What metrics count arrives in the driver, once a committed attempt; see `handle.metrics()`.

        A BatchBolt registers in `prepare`, and has metrics of its own for each attempt. The name is known to all tasks
        of the component, and they count together; registered twice, it is the same metric.

        Args:
            name (str): what the count is called in `handle.metrics()`, below the component's id.

        Raises:
            InvalidMetric: the name is no text, or that of another kind of metric.
        """

    def register_meter(self, name: str) -> Meter:
        """Return a meter: a count and its mean rate a second. As `register_counter`.

        Args:
            name (str): what it is called in `handle.metrics()`, below the component's id.

        Raises:
            InvalidMetric: the name is no text, or that of another kind of metric.
        """

    def register_histogram(self, name: str) -> Histogram:
        """Return a histogram: count, mean, least, greatest and percentiles of its numbers. As `register_counter`.

        Args:
            name (str): what it is called in `handle.metrics()`, below the component's id.

        Raises:
            InvalidMetric: the name is no text, or that of another kind of metric.
        """

    def register_timer(self, name: str) -> Timer:
        """Return a timer: a histogram of seconds. As `register_counter`.

        Args:
            name (str): what it is called in `handle.metrics()`, below the component's id.

        Raises:
            InvalidMetric: the name is no text, or that of another kind of metric.
        """

    def register_gauge(self, name: str, value_of: Callable[[], Any]) -> Gauge:
        """Return a gauge: a value that is asked for when the task has done its work for an attempt; the last one wins.

        Args:
            name (str): what it is called in `handle.metrics()`, below the component's id.
            value_of (Callable[[], Any]): called without arguments; returns the value.

        Raises:
            InvalidMetric: the name is no text, or that of another kind of metric, or `value_of` cannot be called.
        """

    def register_metric(self, name: str, metric: Any, time_bucket_secs: float = 60) -> Any:
        """Return a metric of Storm's first kind, registered: `CountMetric` and the like, or one made of a reducer.

        Args:
            name (str): what it is called in `handle.metrics()`, below the component's id.
            metric (Any): an `IMetric`; or an `IReducer`, of which a `ReducedMetric` is made.
            time_bucket_secs (float): seconds of a bucket in Storm; without effect here: values are those since the
                start of the topology.

        Raises:
            InvalidMetric: the name is no text, or that of another kind of metric, or `metric` is none.
        """

    def add_task_hook(self, hook: ITaskHook) -> None:
        """Prepare `hook`, and let it hear of what this task does from the end of `prepare` on.

        One that a BatchBolt adds hears of its attempt.

        Args:
            hook (ITaskHook): an object that hears of what this task does.

        Raises:
            InvalidHook: it is no `ITaskHook`.
            HookTooLate: the component is prepared already.
        """

    def set_task_data(self, name: str, value: Any) -> None:
        """Keep a value for this task in this process, until the process ends.

        Args:
            name (str): under which `get_task_data` finds it.
            value (Any): any object; it is not copied.
        """

    def get_task_data(self, name: str) -> Any:
        """Return what `set_task_data` kept for this task in this process; None where it kept nothing.

        Args:
            name (str): under which it was kept.
        """
