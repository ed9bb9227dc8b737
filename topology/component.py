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
    """What spouts and bolts have in common: it says what the component emits, and how it is configured."""

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """Declare each output stream, in the driver, when the topology is built; unless overridden there is none.

        Args:
            declarer (OutputFieldsDeclarer): takes the streams. The first field of each carries the attempt.
        """

    def get_component_configuration(self) -> Mapping[str, Any] | None:
        """Return settings of this component; None, unless overridden: it has none.

        They win over the topology's configuration; what its declarer says (`add_configuration`) wins over them, as in
        Storm 1.2.4.
        """
        return None
