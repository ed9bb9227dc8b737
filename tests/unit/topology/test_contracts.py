"""The base classes that users subclass: what must be written, and what is there already."""

from __future__ import annotations

from typing import Any

import pytest

from stormline import (
    BaseBasicBolt,
    BaseBatchBolt,
    BaseTransactionalBolt,
    IOpaquePartitionedTransactionalSpout,
    IPartitionedTransactionalSpout,
    ITransactionalSpout,
)
from stormline.topology.contracts import (
    IOpaqueCoordinator,
    IOpaqueEmitter,
    IPartitionedCoordinator,
    IPartitionedEmitter,
    ITransactionalCoordinator,
    ITransactionalEmitter,
)
from stormline.topology.streams import OutputFieldsDeclarer


@pytest.mark.parametrize(
    ("interface", "methods"),
    [
        (BaseBasicBolt, {"execute"}),
        (BaseBatchBolt, {"prepare", "execute", "finish_batch"}),
        (BaseTransactionalBolt, {"execute", "finish_batch"}),
        (ITransactionalSpout, {"get_coordinator", "get_emitter"}),
        (IPartitionedTransactionalSpout, {"get_coordinator", "get_emitter"}),
        (IOpaquePartitionedTransactionalSpout, {"get_coordinator", "get_emitter"}),
        (ITransactionalCoordinator, {"initialize_transaction"}),
        (ITransactionalEmitter, {"emit_batch"}),
        (IPartitionedCoordinator, {"num_partitions"}),
        (IPartitionedEmitter, {"emit_partition_batch_new", "emit_partition_batch"}),
        (IOpaqueCoordinator, set()),
        (IOpaqueEmitter, {"num_partitions", "emit_partition_batch"}),
    ],
)
def test_what_a_user_must_write_and_no_more(interface: Any, methods: set[str]) -> None:
    assert interface.__abstractmethods__ == methods
    written = type("Written", (interface,), {name: lambda self, *arguments: None for name in methods})()
    assert written
    if methods:
        with pytest.raises(TypeError, match="abstract"):
            interface()


@pytest.mark.parametrize("ready", [True, False])
@pytest.mark.parametrize("interface", [ITransactionalCoordinator, IPartitionedCoordinator, IOpaqueCoordinator])
def test_a_coordinator_that_does_not_look_at_positions_says_by_is_ready_whether_it_is(
    interface: Any, ready: bool
) -> None:
    written = dict.fromkeys(interface.__abstractmethods__, lambda self, *arguments: None)
    assert type("Written", (interface,), written)().is_ready_after({}, 0)
    coordinator = type("Written", (interface,), {**written, "is_ready": lambda self: ready})()
    assert coordinator.is_ready_after({0: 7}, 1) is ready


@pytest.mark.parametrize("interface", [BaseBasicBolt, BaseTransactionalBolt, ITransactionalSpout])
def test_a_component_declares_no_stream_and_no_setting_unless_it_says_so(interface: Any) -> None:
    component = type("Written", (interface,), dict.fromkeys(interface.__abstractmethods__, lambda self: None))()
    declarer = OutputFieldsDeclarer("x")
    component.declare_output_fields(declarer)
    assert declarer.streams == {}
    assert component.get_component_configuration() is None


@pytest.mark.parametrize("interface", [ITransactionalCoordinator, IPartitionedCoordinator, IOpaqueCoordinator])
def test_a_coordinator_is_ready_unless_it_says_otherwise(interface: Any) -> None:
    coordinator = type("Written", (interface,), dict.fromkeys(interface.__abstractmethods__, lambda self: None))()
    assert coordinator.is_ready() is True
    coordinator.close()
