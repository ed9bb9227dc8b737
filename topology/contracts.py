"""The contracts between Stormline and user code, each in a module of its own kind, all in reach from here."""

from stormline.topology.bolt_contracts import (
    AnyBatchBolt,
    AnyBolt,
    IArrowBatchBolt,
    IBasicBolt,
    IBatchBolt,
    IBatchLifecycle,
    ICommitter,
    IRowsBolt,
)
from stormline.topology.collector import Collector
from stormline.topology.component import Conf, IComponent, Metadata
from stormline.topology.spout_contracts import (
    AnySpout,
    IAnyPartitionedCoordinator,
    IAnyPartitionedEmitter,
    ICommitterEmitter,
    ICommitterTransactionalSpout,
    ICoordinator,
    IEmitter,
    IOpaqueCoordinator,
    IOpaqueEmitter,
    IOpaquePartitionedTransactionalSpout,
    IPartitionedCoordinator,
    IPartitionedEmitter,
    IPartitionedTransactionalSpout,
    ISpout,
    ITransactionalCoordinator,
    ITransactionalEmitter,
    ITransactionalSpout,
)

AnyComponent = AnySpout | AnyBolt

__all__ = [
    "AnyBatchBolt",
    "AnyBolt",
    "AnyComponent",
    "AnySpout",
    "Collector",
    "Conf",
    "IAnyPartitionedCoordinator",
    "IAnyPartitionedEmitter",
    "IArrowBatchBolt",
    "IBasicBolt",
    "IBatchBolt",
    "IBatchLifecycle",
    "ICommitter",
    "ICommitterEmitter",
    "ICommitterTransactionalSpout",
    "IComponent",
    "ICoordinator",
    "IEmitter",
    "IOpaqueCoordinator",
    "IOpaqueEmitter",
    "IOpaquePartitionedTransactionalSpout",
    "IPartitionedCoordinator",
    "IPartitionedEmitter",
    "IPartitionedTransactionalSpout",
    "IRowsBolt",
    "ISpout",
    "ITransactionalCoordinator",
    "ITransactionalEmitter",
    "ITransactionalSpout",
    "Metadata",
]
