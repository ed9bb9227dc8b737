"""Topology: what the user declared, checked and frozen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, cast

from stormline.topology.contracts import AnyComponent
from stormline.topology.grouping import GlobalStreamId, Grouping
from stormline.topology.streams import StreamDeclaration


class ComponentKind(StrEnum):
    """What a component is, by the interface it implements."""

    TRANSACTIONAL_SPOUT = "transactional spout"
    PARTITIONED_SPOUT = "partitioned transactional spout"
    OPAQUE_SPOUT = "opaque partitioned transactional spout"
    BASIC_BOLT = "basic bolt"
    BATCH_BOLT = "batch bolt"


@dataclass(frozen=True, slots=True)
class Component:
    """One spout or bolt: the declared object and everything said about it.

    `obj` is None in a process that never calls it. `columnar`: it is a bolt that takes record batches.
    """

    id: str
    kind: ComponentKind
    obj: AnyComponent = field(repr=False)
    num_tasks: int
    committer: bool
    streams: Mapping[str, StreamDeclaration]
    inputs: Mapping[GlobalStreamId, Grouping]
    config: Mapping[str, Any]
    columnar: bool = False

    def without_object(self) -> Component:
        """Return the same, for a process that never calls the object."""
        return replace(self, obj=cast(Any, None))


@dataclass(frozen=True, slots=True)
class Topology:
    """What was declared, checked and frozen: `build_topology` returns it. It can be printed, compared and drawn.

    Attributes:
        id (str): keys all durable state.
        spout (Component): the spout.
        bolts (tuple[Component, ...]): the bolts, in the order of declaration.
    """

    id: str
    spout: Component
    bolts: tuple[Component, ...]

    @property
    def components(self) -> dict[str, Component]:
        """All components by id, the spout first."""
        return {component.id: component for component in (self.spout, *self.bolts)}
