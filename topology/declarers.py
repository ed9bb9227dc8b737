"""The declarers: what `set_bolt` and `get_spout_declarer` return, and by which a component is configured and wired."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar, cast, overload

from stormline.topology.config import DEBUG, MAX_SPOUT_PENDING, MAX_TASK_PARALLELISM, TASKS, check_config
from stormline.topology.contracts import AnyComponent, IArrowBatchBolt
from stormline.topology.errors import DuplicateGrouping, InvalidGrouping, InvalidParallelism
from stormline.topology.grouping import (
    DEFAULT_STREAM,
    CustomStreamGrouping,
    GlobalStreamId,
    Grouping,
    GroupingKind,
)
from stormline.topology.storm_names import storm_names
from stormline.topology.streams import OutputFieldsDeclarer
from stormline.topology.topology import Component, ComponentKind

D = TypeVar("D", bound="ComponentDeclarer")


def check_tasks(who: str, what: str, value: Any) -> int:
    """Return `value`, a whole number of at least 1; raise `InvalidParallelism` for anything else."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise InvalidParallelism(f"{who}: {what} is {value!r}, expected a whole number of at least 1")
    return value


@storm_names()
class ComponentDeclarer:
    """What can be said of spouts and bolts alike; every call returns the declarer."""

    def __init__(self, component: str, kind: ComponentKind, obj: AnyComponent, parallelism: int | None) -> None:
        self._id = component
        self._kind = kind
        self._obj = obj
        self._who = f"{kind.value} {component!r}"
        self._parallelism = 1 if parallelism is None else check_tasks(self._who, "parallelism", parallelism)
        self._config: dict[str, Any] = {}
        self._inputs: dict[GlobalStreamId, Grouping] = {}
        self._committer = False

    def set_num_tasks(self: D, tasks: int) -> D:
        """Give the component this many tasks, whatever its parallelism."""
        return self.add_configuration(TASKS, check_tasks(self._who, "number of tasks", tasks))

    def set_max_task_parallelism(self: D, tasks: int) -> D:
        """Let the component have no more tasks than this."""
        return self.add_configuration(MAX_TASK_PARALLELISM, check_tasks(self._who, "max task parallelism", tasks))

    def set_debug(self: D, on: bool) -> D:
        """Log every tuple that the component emits."""
        return self.add_configuration(DEBUG, on)

    def add_configuration(self: D, key: str, value: Any) -> D:
        """Set one key for this component; it wins over the component's own and the topology's configuration."""
        return self.add_configurations({key: value})

    def add_configurations(self: D, config: Mapping[str, Any]) -> D:
        """Set several keys for this component."""
        check_config(config, f"configuration of {self._who}")
        self._config.update(config)
        return self

    def _build(self) -> Component:
        own = self._obj.get_component_configuration()
        own = {} if own is None else own
        check_config(own, f"get_component_configuration of {self._who}")
        config = {**own, **self._config}
        declarer = OutputFieldsDeclarer(self._id)
        self._obj.declare_output_fields(declarer)
        tasks = config.get(TASKS) or self._parallelism
        return Component(
            id=self._id,
            kind=self._kind,
            obj=self._obj,
            num_tasks=min(tasks, config.get(MAX_TASK_PARALLELISM) or tasks),
            committer=self._committer,
            streams=dict(declarer.streams),
            inputs=dict(self._inputs),
            config=config,
            columnar=isinstance(self._obj, IArrowBatchBolt),
        )


@storm_names()
class SpoutDeclarer(ComponentDeclarer):
    """Settings of the spout; they reach its coordinator and its emitters."""

    def set_max_spout_pending(self, transactions: int) -> SpoutDeclarer:
        """Let this many transactions be active at once; wins over the topology's configuration."""
        return self.add_configuration(MAX_SPOUT_PENDING, transactions)


@storm_names()
class BoltDeclarer(ComponentDeclarer):
    """Settings and groupings of one bolt; every call returns the declarer."""

    @property
    def committer(self) -> bool:
        """Whether it was declared as a committer."""
        return self._committer

    @property
    def subscribed(self) -> bool:
        """Whether it has a grouping."""
        return bool(self._inputs)

    def copy(self) -> BoltDeclarer:
        """Return a declarer of the same bolt, with settings and groupings of its own from now on."""
        copied = copy.copy(self)
        copied._config, copied._inputs = dict(self._config), dict(self._inputs)
        return copied

    def grouping(self, source: str | GlobalStreamId, grouping: Grouping, stream: str = DEFAULT_STREAM) -> BoltDeclarer:
        """Subscribe to a stream of `source` by any grouping.

        Raises:
            DuplicateGrouping: this bolt subscribes to that stream already.
            InvalidGrouping: a fields or partial key grouping without fields, a custom one without an object, a
                source or stream that is no text.
        """
        key = source if isinstance(source, GlobalStreamId) else GlobalStreamId(source, stream)
        for what, name in (("component", key.component), ("stream", key.stream)):
            if not isinstance(name, str) or not name:
                raise InvalidGrouping(f"{self._who} subscribes to {what} {name!r}, expected the id of a {what} as text")
        if not isinstance(grouping, Grouping):
            raise InvalidGrouping(f"{self._who}: grouping on {key} is {grouping!r}, expected a Grouping")
        if key in self._inputs:
            raise DuplicateGrouping(
                f"{self._who} has a {self._inputs[key]} grouping and a {grouping} grouping on stream "
                f"{key.stream!r} of {key.component!r}; keep one"
            )
        if grouping.kind in (GroupingKind.FIELDS, GroupingKind.PARTIAL_KEY) and not grouping.fields:
            raise InvalidGrouping(
                f"{self._who}: the {grouping.kind.value} grouping on {key} names no field; give at least one"
            )
        if isinstance(grouping.fields, str) or not all(isinstance(name, str) for name in grouping.fields):
            raise InvalidGrouping(
                f"{self._who}: the {grouping.kind.value} grouping on {key} names the fields {grouping.fields!r}, "
                "expected text for each"
            )
        custom = grouping.custom
        if grouping.kind is GroupingKind.CUSTOM and (
            isinstance(custom, type) or not isinstance(custom, CustomStreamGrouping)
        ):
            raise InvalidGrouping(
                f"{self._who}: the custom grouping on {key} is {custom!r}, expected an object with "
                "prepare(context, stream, target_tasks) and choose_tasks(task_id, values)"
            )
        self._inputs[key] = grouping
        return self

    def _simple(self, kind: GroupingKind, source: str, stream: str) -> BoltDeclarer:
        return self.grouping(source, Grouping(kind), stream)

    def shuffle_grouping(self, source: str, stream: str = DEFAULT_STREAM) -> BoltDeclarer:
        """Spread tuples evenly over the tasks."""
        return self._simple(GroupingKind.SHUFFLE, source, stream)

    @overload
    def fields_grouping(
        self, source: str, fields: Sequence[str] | str, stream: str = DEFAULT_STREAM
    ) -> BoltDeclarer: ...

    @overload
    def fields_grouping(self, source: str, stream: str, fields: Sequence[str], /) -> BoltDeclarer: ...

    def fields_grouping(
        self, source: str, fields: Sequence[str] | str, stream: str | Sequence[str] = DEFAULT_STREAM
    ) -> BoltDeclarer:
        """Send tuples with the same values of `fields` to the same task, in every process and for ever.

        Storm's order of arguments (source, stream, fields) is understood too.
        """
        names, stream_id = fields_and_stream(fields, stream)
        return self.grouping(source, Grouping(GroupingKind.FIELDS, names), stream_id)

    def global_grouping(self, source: str, stream: str = DEFAULT_STREAM) -> BoltDeclarer:
        """Send every tuple to the task with the lowest id."""
        return self._simple(GroupingKind.GLOBAL, source, stream)

    def none_grouping(self, source: str, stream: str = DEFAULT_STREAM) -> BoltDeclarer:
        """Say that any task will do: as `shuffle_grouping`."""
        return self._simple(GroupingKind.NONE, source, stream)

    def all_grouping(self, source: str, stream: str = DEFAULT_STREAM) -> BoltDeclarer:
        """Send every tuple to every task."""
        return self._simple(GroupingKind.ALL, source, stream)

    def direct_grouping(self, source: str, stream: str = DEFAULT_STREAM) -> BoltDeclarer:
        """Let the producer name the task, by `emit_direct`."""
        return self._simple(GroupingKind.DIRECT, source, stream)

    def local_or_shuffle_grouping(self, source: str, stream: str = DEFAULT_STREAM) -> BoltDeclarer:
        """Prefer tasks that share the producer's Spark task, so that tuples pass by plain call."""
        return self._simple(GroupingKind.LOCAL_OR_SHUFFLE, source, stream)

    @overload
    def partial_key_grouping(
        self, source: str, fields: Sequence[str] | str, stream: str = DEFAULT_STREAM
    ) -> BoltDeclarer: ...

    @overload
    def partial_key_grouping(self, source: str, stream: str, fields: Sequence[str], /) -> BoltDeclarer: ...

    def partial_key_grouping(
        self, source: str, fields: Sequence[str] | str, stream: str | Sequence[str] = DEFAULT_STREAM
    ) -> BoltDeclarer:
        """Send tuples of one key to two tasks, each time to the one that got less from this producer."""
        names, stream_id = fields_and_stream(fields, stream)
        return self.grouping(source, Grouping(GroupingKind.PARTIAL_KEY, names), stream_id)

    @overload
    def custom_grouping(
        self, source: str, grouping: CustomStreamGrouping, stream: str = DEFAULT_STREAM
    ) -> BoltDeclarer: ...

    @overload
    def custom_grouping(self, source: str, stream: str, grouping: CustomStreamGrouping, /) -> BoltDeclarer: ...

    def custom_grouping(
        self, source: str, grouping: CustomStreamGrouping | str, stream: str | CustomStreamGrouping = DEFAULT_STREAM
    ) -> BoltDeclarer:
        """Let an object choose the tasks; see `CustomStreamGrouping`."""
        chooser, stream_id = chooser_and_stream(grouping, stream)
        return self.grouping(source, Grouping(GroupingKind.CUSTOM, custom=chooser), stream_id)


def fields_and_stream(fields: Sequence[str] | str, stream: str | Sequence[str]) -> tuple[tuple[str, ...], str]:
    """Return the names and the stream that a grouping on fields was given, in either order of arguments."""
    if isinstance(fields, str) and not isinstance(stream, str):
        fields, stream = stream, fields
    names = tuple(fields) if isinstance(fields, Iterable) and not isinstance(fields, str) else (fields,)
    return names, cast(str, stream)


def chooser_and_stream(
    grouping: CustomStreamGrouping | str, stream: str | CustomStreamGrouping
) -> tuple[CustomStreamGrouping, str]:
    """Return the object and the stream that a custom grouping was given, in either order of arguments."""
    chooser, stream_id = (stream, grouping) if isinstance(grouping, str) else (grouping, stream)
    return cast(CustomStreamGrouping, chooser), cast(str, stream_id)
