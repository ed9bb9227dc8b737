"""SpoutCoordinator: the spout's coordinator, whatever kind of spout it is, behind two questions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from stormline.runtime.errors import InvalidPartitions
from stormline.runtime.tasks.task_environment import TaskEnvironment
from stormline.topology.contracts import IAnyPartitionedCoordinator, ICoordinator, ITransactionalCoordinator
from stormline.topology.readings import Readings
from stormline.topology.spout_parts import COORDINATOR, check_part, method_of
from stormline.topology.topology import ComponentKind


def number_of_partitions(who: str, answer: object) -> int:
    """Return what `num_partitions()` of `who` answered.

    Raises:
        InvalidPartitions: it is no int of at least 0. Stored, it would stop every driver from then on.
    """
    if type(answer) is not int or answer < 0:
        raise InvalidPartitions.given_by(who, answer)
    return answer


def present_of(metadata: Any) -> Any:
    """Return the number of partitions that the metadata of a batch of a partitioned spout says; None: of an opaque."""
    return metadata[0] if type(metadata) is list else metadata


def described_by(metadata: Any) -> Any:
    """Return what the coordinator said of the partitions of a batch; None where it said nothing."""
    return metadata[1] if type(metadata) is list else None


class SpoutCoordinator:
    """Asks whether a batch may begin, and what defines it. Lives in the driver; raises what user code raises."""

    def __init__(self, env: TaskEnvironment) -> None:
        spout = env.plan.spout
        self._kind = spout.component.kind
        self._who = f"the coordinator of spout {spout.id!r}"
        made: Any = spout.component.obj
        self._context = env.context(spout.id, spout.tasks[0]).for_attempt()  # not that of the emitter
        self._coordinator = made.get_coordinator(env.conf(spout.id), self._context)
        self._context.prepared()
        check_part(spout.id, self._coordinator, self._kind, COORDINATOR)
        own = getattr(type(self._coordinator), "positions_committed", None)
        transactional = self._kind is ComponentKind.TRANSACTIONAL_SPOUT
        self._wants_committed = not transactional and own not in (None, IAnyPartitionedCoordinator.positions_committed)
        self._told_committed: Mapping[int, Any] = {}

    def resume(self, prev_metadata: Any) -> None:
        """Tell a coordinator that wants to know the newest stored metadata, None where there is none."""
        if self._kind is ComponentKind.TRANSACTIONAL_SPOUT:
            method_of(self._coordinator, ITransactionalCoordinator, "resume")(prev_metadata)
        else:
            described = described_by(prev_metadata)
            method_of(self._coordinator, IAnyPartitionedCoordinator, "resume_partitions")(described)

    def is_ready(self, positions: Mapping[int, Any], batches_ahead: int) -> bool:
        """Return whether a new batch may begin.

        Args:
            positions: metadata of each partition in the newest batch of which it is known.
            batches_ahead: batches that have begun after that one.
        """
        return bool(method_of(self._coordinator, ICoordinator, "is_ready_after")(positions, batches_ahead))

    def tell_committed(self, positions: Mapping[int, Any], copied: Callable[[Any], Any]) -> None:
        """Tell a coordinator that wants to know it the positions after the last committed batch, where they are new."""
        if self._wants_committed and positions and positions != self._told_committed:
            self._told_committed = positions
            self._coordinator.positions_committed(copied(positions))

    def initialize(self, txid: int, prev_metadata: Any) -> Any:
        """Return what defines batch `txid`: metadata, or what `present_of` and `described_by` take apart."""
        if self._kind is ComponentKind.TRANSACTIONAL_SPOUT:
            return self._coordinator.initialize_transaction(txid, prev_metadata)
        describe = method_of(self._coordinator, IAnyPartitionedCoordinator, "describe_partitions")
        described = describe(described_by(prev_metadata))
        present = None
        if self._kind is ComponentKind.PARTITIONED_SPOUT:
            present = number_of_partitions(self._who, self._coordinator.num_partitions())
        return present if described is None else [present, described]

    def counted(self) -> Readings:
        """Return what the coordinator's metrics have counted since the last call."""
        readings: Readings = {}
        self._context.count_into(readings)
        return readings

    def close(self) -> None:
        """Close the coordinator."""
        method_of(self._coordinator, ICoordinator, "close")()
