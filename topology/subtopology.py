"""BatchSubtopologyBuilder: a master bolt and bolts behind it, to be put into more than one topology."""

from __future__ import annotations

from stormline.topology.bolt_declarer import BoltDeclarer
from stormline.topology.builder import TransactionalTopologyBuilder, declare_bolt
from stormline.topology.contracts import AnyBolt
from stormline.topology.errors import DuplicateComponent
from stormline.topology.storm_names import storm_names


@storm_names()
class BatchSubtopologyBuilder:
    """Declares a part of a topology: a master bolt, which gets its batches from outside, and bolts behind it.

    Nothing is in a topology before `extend_topology`, which declares the bolts there, under their own ids. They are
    then as any others: each finishes a batch when it holds all its tuples, and an `ICommitter` is a committer. Storm
    takes each tuple of such a master for a batch of its own, of which only bolts of the group may hear; here batches
    are the topology's, so a bolt of the group may listen to any other.

    Args:
        master_bolt_id (str): id of the master bolt.
        master_bolt (AnyBolt): the master bolt.
        bolt_parallelism (int | None): number of its tasks, at least 1; None: 1.

    Raises:
        DeclarationError: as for `TransactionalTopologyBuilder.set_bolt`.
    """

    def __init__(self, master_bolt_id: str, master_bolt: AnyBolt, bolt_parallelism: int | None = None) -> None:
        self._master = declare_bolt(master_bolt_id, master_bolt, bolt_parallelism)
        self._bolts = {master_bolt_id: self._master}

    def get_master_declarer(self) -> BoltDeclarer:
        """Return the declarer of the master bolt: its groupings name components of the topology to be extended."""
        return self._master

    def set_bolt(self, bolt_id: str, bolt: AnyBolt, parallelism: int | None = None) -> BoltDeclarer:
        """Declare a BasicBolt or a BatchBolt; as `TransactionalTopologyBuilder.set_bolt`.

        Args:
            bolt_id (str): its id, unique in the group and in the topology.
            bolt (AnyBolt): the bolt.
            parallelism (int | None): number of its tasks, at least 1; None: 1.

        Returns:
            the bolt's declarer.

        Raises:
            DuplicateComponent: the group has a bolt of this id.
            InvalidId, InvalidComponent, InvalidParallelism, MissingExtra: as there.
        """
        declared = declare_bolt(bolt_id, bolt, parallelism)
        if bolt_id in self._bolts:
            raise DuplicateComponent(f"bolt {bolt_id!r} is declared twice; give each bolt its own id")
        self._bolts[bolt_id] = declared
        return declared

    def extend_topology(self, builder: TransactionalTopologyBuilder) -> None:
        """Declare all bolts, as they are now, in `builder`, the master first; that builder checks the whole.

        Args:
            builder (TransactionalTopologyBuilder): the builder of the topology.

        Raises:
            DuplicateComponent: the topology has a component of the same id.
        """
        for bolt in self._bolts.values():
            builder.add(bolt.copy())
