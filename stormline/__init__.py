"""Stormline: Storm-style transactional topologies on Spark."""

import importlib
from typing import TYPE_CHECKING, Any

from stormline.bolts.arrow import ArrowBatchBolt, ArrowTransactionalBolt
from stormline.bolts.base import BaseBasicBolt, BaseBatchBolt, BaseTransactionalBolt
from stormline.spouts.file import FileTransactionalSpout
from stormline.spouts.memory import MemoryTransactionalSpout, OpaqueMemoryTransactionalSpout
from stormline.topology.attempt import TransactionAttempt
from stormline.topology.builder import TransactionalTopologyBuilder
from stormline.topology.compiler import compile_topology
from stormline.topology.config import Config
from stormline.topology.context import TopologyContext
from stormline.topology.contracts import (
    Collector,
    ICommitter,
    ICommitterTransactionalSpout,
    IOpaquePartitionedTransactionalSpout,
    IPartitionedTransactionalSpout,
    ITransactionalSpout,
)
from stormline.topology.errors import FailedException, ReportedFailedException, StormlineError
from stormline.topology.fields import Fields, Values
from stormline.topology.secrets import resolve_secret
from stormline.topology.streams import OutputFieldsDeclarer
from stormline.topology.topology import Topology
from stormline.topology.tuples import Tuple

if TYPE_CHECKING:
    from stormline.runtime.in_process_cluster import InProcessCluster
    from stormline.runtime.local_cluster import LocalCluster

__version__ = "0.1.0"

__all__ = [
    "ArrowBatchBolt",
    "ArrowTransactionalBolt",
    "BaseBasicBolt",
    "BaseBatchBolt",
    "BaseTransactionalBolt",
    "Collector",
    "Config",
    "FailedException",
    "Fields",
    "FileTransactionalSpout",
    "ICommitter",
    "ICommitterTransactionalSpout",
    "IOpaquePartitionedTransactionalSpout",
    "IPartitionedTransactionalSpout",
    "ITransactionalSpout",
    "InProcessCluster",
    "LocalCluster",
    "MemoryTransactionalSpout",
    "OpaqueMemoryTransactionalSpout",
    "OutputFieldsDeclarer",
    "ReportedFailedException",
    "StormlineError",
    "Topology",
    "TopologyContext",
    "TransactionAttempt",
    "TransactionalTopologyBuilder",
    "Tuple",
    "Values",
    "compile_topology",
    "resolve_secret",
]


_CLUSTERS = {"InProcessCluster": "in_process_cluster", "LocalCluster": "local_cluster"}


def __getattr__(name: str) -> Any:
    """Import what only a driver needs (kazoo, and later Spark) when it is asked for."""
    if name in _CLUSTERS:
        return getattr(importlib.import_module(f"stormline.runtime.{_CLUSTERS[name]}"), name)
    raise AttributeError(f"module 'stormline' has no attribute {name!r}")
