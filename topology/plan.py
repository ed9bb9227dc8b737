"""Plan: a compiled topology, still pure data. Tuples know their way by it in every process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from stormline.topology.grouping import DEFAULT_STREAM, GlobalStreamId, Grouping
from stormline.topology.topology import Component, Topology


class Transfer(StrEnum):
    """How tuples of an edge get from task to task."""

    LOCAL = "plain call"
    EXCHANGE = "exchange"
    COMMIT = "in the commit phase"


class Placement(StrEnum):
    """Where a stage of the processing phase runs, or where a deferred bolt finishes."""

    DRIVER = "driver"
    EXECUTORS = "executors"


@dataclass(frozen=True, slots=True)
class Edge:
    """One subscription: tuples of `stream` of `source` go to tasks of `target`."""

    index: int
    source: str
    stream: str
    target: str
    grouping: Grouping
    transfer: Transfer


@dataclass(frozen=True, slots=True)
class PlannedComponent:
    """A component, its tasks and its place.

    `stage` is the stage of the processing phase it executes in; None where it executes in the commit phase only: it is
    deferred and does not say what it gathers, or nothing reaches it before. `commit_stage` is its turn in the commit
    phase, and `commit_placement` where it has it; None where it finishes in the processing phase.
    """

    component: Component
    tasks: tuple[int, ...]
    stage: int | None
    commit_stage: int | None
    commit_placement: Placement | None = None

    @property
    def id(self) -> str:
        """Id of the component."""
        return self.component.id

    @property
    def deferred(self) -> bool:
        """Whether it finishes in the commit phase."""
        return self.commit_stage is not None

    def task_scope(self, task: int) -> str:
        """Name what a task commits by itself; with another parallelism it has other keys, so another name."""
        return f"{self.id}:{self.tasks.index(task)}/{len(self.tasks)}"


@dataclass(frozen=True, slots=True)
class Stage:
    """Components whose tasks run side by side in one Spark stage, in topological order."""

    index: int
    placement: Placement
    components: tuple[str, ...]


def _named(source: GlobalStreamId) -> str:
    # Quoted, since stream 'b' of 'a' and the component 'a.b' must not look the same.
    stream = "" if source.stream == DEFAULT_STREAM else f", stream {source.stream!r}"
    return f"{source.component!r}{stream}"


@dataclass(frozen=True, slots=True)
class Plan:
    """A compiled topology: what runs where, and how tuples move. `compile_topology` returns it; it is pure data.

    Attributes:
        topology (Topology): what was declared.
        config (Mapping[str, Any]): the topology's configuration.
        components (Mapping[str, PlannedComponent]): by id, each with its tasks and its place, the spout first.
        edges (tuple[Edge, ...]): one for each subscription of a bolt.
        stages (tuple[Stage, ...]): the stages of the processing phase, in order.
        commit_stages (tuple[tuple[str, ...], ...]): ids of the components that take their turn together in the commit
            phase, in order.
    """

    topology: Topology
    config: Mapping[str, Any]
    components: Mapping[str, PlannedComponent]
    edges: tuple[Edge, ...]
    stages: tuple[Stage, ...]
    commit_stages: tuple[tuple[str, ...], ...]

    @property
    def topology_id(self) -> str:
        """Id of the topology."""
        return self.topology.id

    @property
    def spout(self) -> PlannedComponent:
        """The spout."""
        return self.components[self.topology.spout.id]

    def out_edges(self, component: str, stream: str) -> list[Edge]:
        """Return the subscriptions to one stream.

        Args:
            component (str): id of the component that emits it.
            stream (str): id of the stream.
        """
        return [edge for edge in self.edges if edge.source == component and edge.stream == stream]

    def in_edges(self, component: str) -> list[Edge]:
        """Return the subscriptions of one component.

        Args:
            component (str): its id.
        """
        return [edge for edge in self.edges if edge.target == component]

    def component_of_task(self) -> dict[int, str]:
        """Return the component of every task id."""
        return {task: planned.id for planned in self.components.values() for task in planned.tasks}

    def for_executors(self) -> Plan:
        """Return the plan without the objects that only the driver calls: they may hold what cannot be sent."""

        def sent(planned: PlannedComponent) -> Component:
            executes = planned.stage is not None and self.stages[planned.stage].placement is Placement.EXECUTORS
            here = executes or planned.commit_placement is Placement.EXECUTORS
            return planned.component if here else planned.component.without_object()

        components = {name: replace(planned, component=sent(planned)) for name, planned in self.components.items()}
        spout, *bolts = (components[name].component for name in self.topology.components)
        return replace(self, topology=Topology(self.topology.id, spout, tuple(bolts)), components=components)

    def describe(self) -> dict[str, Any]:
        """Return what durable state depends on, as plain values: compared when a topology is submitted again."""

        def shape(planned: PlannedComponent) -> dict[str, Any]:
            component = planned.component
            return {
                "kind": component.kind.value,
                "committer": component.committer,
                "parallelism": len(planned.tasks),
                "streams": {
                    name: {"fields": stream.fields.to_list(), "direct": stream.direct}
                    for name, stream in sorted(component.streams.items())
                },
                "groupings": {_named(source): str(grouping) for source, grouping in component.inputs.items()},
            }

        return {
            ("spout" if planned is self.spout else "bolt") + f" {name!r}": shape(planned)
            for name, planned in self.components.items()
        }
