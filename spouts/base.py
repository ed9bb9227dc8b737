"""Base classes of spouts, by Storm's names."""

from __future__ import annotations

from stormline.topology.contracts import (
    IOpaquePartitionedTransactionalSpout,
    IPartitionedTransactionalSpout,
    ITransactionalSpout,
)


class BaseTransactionalSpout(ITransactionalSpout):
    """A spout whose coordinator defines each batch.

    Override `get_coordinator`, `get_emitter` and `declare_output_fields`.
    """


class BasePartitionedTransactionalSpout(IPartitionedTransactionalSpout):
    """A spout over partitions that can replay any batch. Override the same three."""


class BaseOpaquePartitionedTransactionalSpout(IOpaquePartitionedTransactionalSpout):
    """A spout over partitions that may vanish or give another batch on replay. Override the same three."""
