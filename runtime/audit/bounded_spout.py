"""BoundedSpout: a spout that gives its first batches again, and no more."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from stormline.topology.contracts import (
    Conf,
    ICoordinator,
    IPartitionedCoordinator,
    IPartitionedTransactionalSpout,
    ITransactionalCoordinator,
    ITransactionalSpout,
    Metadata,
)
from stormline.topology.spout_parts import method_of
from stormline.topology.streams import OutputFieldsDeclarer

ASKED_MAX = 500
"""So many times in a row a coordinator may say that it is not ready: then its source holds no more."""


class _Bounds:
    """Counts the batches that begin."""

    def __init__(self, begun: int, until: int) -> None:
        self.begun = begun
        self.until = until
        self.exhausted = threading.Event()
        self._not_ready = 0

    def is_ready(self, made: Any, positions: Mapping[int, Metadata], batches_ahead: int) -> bool:
        """Return whether one more batch may begin."""
        if self.begun >= self.until:
            return False
        if method_of(made, ICoordinator, "is_ready_after")(positions, batches_ahead):
            self._not_ready = 0
            return True
        self._not_ready += 1
        if self._not_ready >= ASKED_MAX:
            self.exhausted.set()
        return False


class _TransactionalCoordinator(ITransactionalCoordinator):
    def __init__(self, made: Any, bounds: _Bounds) -> None:
        self._made = made
        self._bounds = bounds

    def resume(self, prev_metadata: Metadata) -> None:
        method_of(self._made, ITransactionalCoordinator, "resume")(prev_metadata)

    def is_ready_after(self, positions: Mapping[int, Metadata], batches_ahead: int) -> bool:
        return self._bounds.is_ready(self._made, positions, batches_ahead)

    def initialize_transaction(self, txid: int, prev_metadata: Metadata) -> Metadata:
        metadata = self._made.initialize_transaction(txid, prev_metadata)
        self._bounds.begun += 1
        return metadata

    def close(self) -> None:
        method_of(self._made, ICoordinator, "close")()


class _PartitionedCoordinator(IPartitionedCoordinator):
    def __init__(self, made: Any, bounds: _Bounds) -> None:
        self._made = made
        self._bounds = bounds

    def is_ready_after(self, positions: Mapping[int, Metadata], batches_ahead: int) -> bool:
        return self._bounds.is_ready(self._made, positions, batches_ahead)

    def num_partitions(self) -> int:
        partitions: int = self._made.num_partitions()
        self._bounds.begun += 1
        return partitions

    def close(self) -> None:
        method_of(self._made, ICoordinator, "close")()


class _Bounded:
    """What both kinds of spout have in common: all but the coordinator is the declared spout's."""

    def __init__(self, spout: Any, begun: int, until: int) -> None:
        self._spout = spout
        self.emits_on_executors = bool(spout.emits_on_executors)
        self.bounds = _Bounds(begun, until)

    def __deepcopy__(self, memo: Any) -> _Bounded:
        return self

    def get_emitter(self, conf: Conf, context: Any) -> Any:
        return self._spout.get_emitter(conf, context)

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        self._spout.declare_output_fields(declarer)

    def get_component_configuration(self) -> Any:
        return self._spout.get_component_configuration()


class BoundedTransactionalSpout(_Bounded, ITransactionalSpout):
    """A transactional spout whose coordinator stops after a batch."""

    def get_coordinator(self, conf: Conf, context: Any) -> ITransactionalCoordinator:
        """Return the declared spout's, bounded."""
        return _TransactionalCoordinator(self._spout.get_coordinator(conf, context), self.bounds)


class BoundedPartitionedSpout(_Bounded, IPartitionedTransactionalSpout):
    """A partitioned spout whose coordinator stops after a batch."""

    def get_coordinator(self, conf: Conf, context: Any) -> IPartitionedCoordinator:
        """Return the declared spout's, bounded."""
        return _PartitionedCoordinator(self._spout.get_coordinator(conf, context), self.bounds)


BoundedSpout = BoundedTransactionalSpout | BoundedPartitionedSpout


def bounded(spout: Any, begun: int, until: int) -> BoundedSpout:
    """Return a spout that goes on after batch `begun`, and ends with batch `until`."""
    if isinstance(spout, ITransactionalSpout):
        return BoundedTransactionalSpout(spout, begun, until)
    return BoundedPartitionedSpout(spout, begun, until)
