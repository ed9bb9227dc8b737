"""IComponent: what spouts and bolts have in common; the types that their contracts share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stormline.topology.storm_names import StormInterface
from stormline.topology.streams import OutputFieldsDeclarer

Conf = Mapping[str, Any]
"""The configuration that user code is given, by key: the topology's, the component's own, what its declarer says."""

Metadata = Any
"""What defines a batch, or a partition's share of it: any value that the topology's serialization takes."""


class IComponent(StormInterface):
    """Spouts and bolts alike: says what it emits."""

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """Declare each output stream; a component that emits nothing declares none."""

    def get_component_configuration(self) -> Mapping[str, Any] | None:
        """Return settings of this component: they win over the topology's, the declarer's win over them."""
        return None
