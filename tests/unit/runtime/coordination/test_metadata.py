"""What a spout gives as metadata must be storable; the error names the spout."""

from __future__ import annotations

from typing import Any

import pytest

from stormline import TransactionalTopologyBuilder
from stormline.runtime.cluster.in_process_cluster import InProcessCluster
from stormline.runtime.errors import StateTooLarge
from stormline.topology.errors import UnregisteredClass
from tests.kits.components import Batch
from tests.kits.spouts import PlainSpout, Ranges


class Thing:
    """Not registered."""


class Giving(PlainSpout):
    """A spout with metadata of the test's choice."""

    def __init__(self, metadata: Any) -> None:
        super().__init__(Ranges("metadata", batches=1))
        self.metadata = metadata

    def get_coordinator(self, conf: Any, context: Any) -> Any:
        coordinator = super().get_coordinator(conf, context)
        coordinator.initialize_transaction = lambda txid, prev: self.metadata
        return coordinator


@pytest.mark.parametrize(
    ("metadata", "error", "message"),
    [
        (
            "x" * 1_100_000,
            StateTooLarge,
            r"metadata that spout 'spout' gave: the value for .*batches/000000000001 has 1,1",
        ),
        ({"what": Thing()}, UnregisteredClass, r"metadata that spout 'spout' gave: class .*Thing is not registered"),
    ],
)
def test_metadata_that_cannot_be_stored_stops_with_the_spouts_name(
    metadata: Any, error: type[Exception], message: str
) -> None:
    builder = TransactionalTopologyBuilder("metadata", "spout", Giving(metadata))
    builder.set_bolt("x", Batch()).shuffle_grouping("spout")
    with InProcessCluster() as cluster:
        handle = cluster.submit_topology("metadata", {}, builder.build_topology())
        with pytest.raises(error, match=message):
            handle.await_committed(1, 20)
