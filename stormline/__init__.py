"""Stormline: Storm-style transactional topologies on Spark."""

import importlib
from typing import TYPE_CHECKING, Any

from stormline.bolts.arrow import ArrowBatchBolt, ArrowTransactionalBolt, BatchSource, source_of
from stormline.bolts.base import BaseBasicBolt, BaseBatchBolt, BaseTransactionalBolt
from stormline.bolts.two_phase_commit import TwoPhaseCommitArrowBolt, TwoPhaseCommitBolt
from stormline.spouts.base import (
    BaseOpaquePartitionedTransactionalSpout,
    BasePartitionedTransactionalSpout,
    BaseTransactionalSpout,
)
from stormline.spouts.file import FileTransactionalSpout
from stormline.spouts.iterator import IteratorTransactionalSpout
from stormline.spouts.memory import MemoryTransactionalSpout, OpaqueMemoryTransactionalSpout
from stormline.topology.attempt import TransactionAttempt
from stormline.topology.bolt_declarer import BoltDeclarer
from stormline.topology.builder import TransactionalTopologyBuilder
from stormline.topology.compiler import compile_topology
from stormline.topology.context import TopologyContext
from stormline.topology.contracts import (
    Collector,
    Conf,
    IArrowBatchBolt,
    IBasicBolt,
    IBatchBolt,
    ICommitter,
    ICommitterEmitter,
    ICommitterTransactionalSpout,
    IOpaqueCoordinator,
    IOpaqueEmitter,
    IOpaquePartitionedTransactionalSpout,
    IPartitionedCoordinator,
    IPartitionedEmitter,
    IPartitionedTransactionalSpout,
    ITransactionalCoordinator,
    ITransactionalEmitter,
    ITransactionalSpout,
    Metadata,
)
from stormline.topology.declarers import SpoutDeclarer
from stormline.topology.drpc import LinearDRPCTopologyBuilder
from stormline.topology.errors import FailedException, ReportedFailedException, StormlineError
from stormline.topology.fields import Fields, Values
from stormline.topology.grouping import CustomStreamGrouping, GlobalStreamId, Grouping, GroupingKind
from stormline.topology.hooks import BaseTaskHook, BoltExecuteInfo, EmitInfo, ITaskHook
from stormline.topology.metrics import (
    AssignableMetric,
    Counter,
    CountMetric,
    Gauge,
    Histogram,
    IMetric,
    IReducer,
    MeanReducer,
    Meter,
    MultiCountMetric,
    ReducedMetric,
    Timer,
)
from stormline.topology.plan import Plan
from stormline.topology.secrets import resolve_secret
from stormline.topology.storm_config import Config
from stormline.topology.streams import OutputFieldsDeclarer
from stormline.topology.subtopology import BatchSubtopologyBuilder
from stormline.topology.topology import Topology
from stormline.topology.transaction_label import TransactionLabel
from stormline.topology.tuples import Tuple
from stormline.topology.two_phase_commit import CommitOutcome, PreparedTransaction, Semantic, TwoPhaseCommitSink
from stormline.version import __version__ as __version__

if TYPE_CHECKING:
    from stormline.runtime.cluster.in_process_cluster import InProcessCluster
    from stormline.runtime.cluster.local_cluster import LocalCluster
    from stormline.runtime.cluster.storm_submitter import StormSubmitter
    from stormline.runtime.cluster.topology_handle import TopologyHandle
    from stormline.runtime.coordination.progress import Snapshot
    from stormline.runtime.drpc.local_drpc import LocalDRPC
    from stormline.runtime.errors import DRPCExecutionException
    from stormline.runtime.state.rotating_transactional_state import RotatingTransactionalState
    from stormline.runtime.state.transactional_state import TransactionalState

__all__ = [
    "ArrowBatchBolt",
    "ArrowTransactionalBolt",
    "AssignableMetric",
    "BaseBasicBolt",
    "BaseBatchBolt",
    "BaseOpaquePartitionedTransactionalSpout",
    "BasePartitionedTransactionalSpout",
    "BaseTaskHook",
    "BaseTransactionalBolt",
    "BaseTransactionalSpout",
    "BatchSource",
    "BatchSubtopologyBuilder",
    "BoltDeclarer",
    "BoltExecuteInfo",
    "Collector",
    "CommitOutcome",
    "Conf",
    "Config",
    "CountMetric",
    "Counter",
    "CustomStreamGrouping",
    "DRPCExecutionException",
    "EmitInfo",
    "FailedException",
    "Fields",
    "FileTransactionalSpout",
    "Gauge",
    "GlobalStreamId",
    "Grouping",
    "GroupingKind",
    "Histogram",
    "IArrowBatchBolt",
    "IBasicBolt",
    "IBatchBolt",
    "ICommitter",
    "ICommitterEmitter",
    "ICommitterTransactionalSpout",
    "IMetric",
    "IOpaqueCoordinator",
    "IOpaqueEmitter",
    "IOpaquePartitionedTransactionalSpout",
    "IPartitionedCoordinator",
    "IPartitionedEmitter",
    "IPartitionedTransactionalSpout",
    "IReducer",
    "ITaskHook",
    "ITransactionalCoordinator",
    "ITransactionalEmitter",
    "ITransactionalSpout",
    "InProcessCluster",
    "IteratorTransactionalSpout",
    "LinearDRPCTopologyBuilder",
    "LocalCluster",
    "LocalDRPC",
    "MeanReducer",
    "MemoryTransactionalSpout",
    "Metadata",
    "Meter",
    "MultiCountMetric",
    "OpaqueMemoryTransactionalSpout",
    "OutputFieldsDeclarer",
    "Plan",
    "PreparedTransaction",
    "ReducedMetric",
    "ReportedFailedException",
    "RotatingTransactionalState",
    "Semantic",
    "Snapshot",
    "SpoutDeclarer",
    "StormSubmitter",
    "StormlineError",
    "Timer",
    "Topology",
    "TopologyContext",
    "TopologyHandle",
    "TransactionAttempt",
    "TransactionLabel",
    "TransactionalState",
    "TransactionalTopologyBuilder",
    "Tuple",
    "TwoPhaseCommitArrowBolt",
    "TwoPhaseCommitBolt",
    "TwoPhaseCommitSink",
    "Values",
    "compile_topology",
    "resolve_secret",
    "source_of",
]


_OF_THE_DRIVER = {
    "DRPCExecutionException": "errors",
    "InProcessCluster": "cluster.in_process_cluster",
    "LocalCluster": "cluster.local_cluster",
    "RotatingTransactionalState": "state.rotating_transactional_state",
    "LocalDRPC": "drpc.local_drpc",
    "Snapshot": "coordination.progress",
    "StormSubmitter": "cluster.storm_submitter",
    "TopologyHandle": "cluster.topology_handle",
    "TransactionalState": "state.transactional_state",
}


def __getattr__(name: str) -> Any:
    """Import what only a driver needs (kazoo, and later Spark) when it is asked for."""
    if name in _OF_THE_DRIVER:
        return getattr(importlib.import_module(f"stormline.runtime.{_OF_THE_DRIVER[name]}"), name)
    raise AttributeError(f"module 'stormline' has no attribute {name!r}")
