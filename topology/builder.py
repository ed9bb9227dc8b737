"""TransactionalTopologyBuilder: declares a topology, as Storm's did."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from stormline.topology.arrow import check_pyarrow
from stormline.topology.bolt_declarer import BoltDeclarer
from stormline.topology.commit_groups import check_effects
from stormline.topology.contracts import (
    AnyBatchBolt,
    AnyBolt,
    AnySpout,
    IArrowBatchBolt,
    IBasicBolt,
    IBatchBolt,
    IBatchLifecycle,
    ICommitter,
    IOpaquePartitionedTransactionalSpout,
    IPartitionedTransactionalSpout,
    ITransactionalSpout,
)
from stormline.topology.declarers import SpoutDeclarer
from stormline.topology.errors import (
    DuplicateComponent,
    InvalidComponent,
    InvalidId,
)
from stormline.topology.gathering import check_gathers
from stormline.topology.graph import check_graph
from stormline.topology.identifiers import NAME_CHARS_MAX, is_part, problem_of_name
from stormline.topology.shipping import check_shippable
from stormline.topology.spout_parts import check_spout
from stormline.topology.storm_names import storm_names
from stormline.topology.topology import ComponentKind, Topology
from stormline.topology.two_phase_bolt import TwoPhaseCommitter
from stormline.topology.two_phase_checks import check_two_phase

_SPOUT_KINDS: dict[type, ComponentKind] = {
    ITransactionalSpout: ComponentKind.TRANSACTIONAL_SPOUT,
    IPartitionedTransactionalSpout: ComponentKind.PARTITIONED_SPOUT,
    IOpaquePartitionedTransactionalSpout: ComponentKind.OPAQUE_SPOUT,
}
_BOLT_KINDS: tuple[type, ...] = (IBasicBolt, IBatchBolt, IArrowBatchBolt)


def declare_bolt(bolt_id: str, bolt: Any, parallelism: int | None, committer: bool = False) -> BoltDeclarer:
    """Check what a bolt is, and return its declarer, which belongs to no topology yet."""
    _check_id(bolt_id, "bolt")
    if isinstance(bolt, tuple(_SPOUT_KINDS)):
        raise InvalidComponent(
            f"bolt {bolt_id!r} is a spout ({type(bolt).__name__}); a topology has one spout: build a second topology "
            "for it"
        )
    if sum(isinstance(bolt, interface) for interface in _BOLT_KINDS) != 1:
        raise InvalidComponent(
            f"bolt {bolt_id!r} is a {_describe(bolt)}, expected an object of exactly one of {_names(_BOLT_KINDS)}"
        )
    committer = committer or isinstance(bolt, ICommitter)
    if committer and isinstance(bolt, IBasicBolt):
        raise InvalidComponent(
            f"bolt {bolt_id!r} ({type(bolt).__name__}) is a BasicBolt and marked as committer; it never learns "
            "that a batch is finished: make it a BaseTransactionalBolt"
        )
    if committer and isinstance(bolt, TwoPhaseCommitter):
        raise InvalidComponent(
            f"bolt {bolt_id!r} ({type(bolt).__name__}) writes into a two-phase sink and is marked as committer; its "
            "sink commits in the commit phase, in the order of txids, without that: declare it by set_bolt"
        )
    if isinstance(bolt, IBatchLifecycle) and not isinstance(bolt.skips_empty, bool):
        raise InvalidComponent(
            f"bolt {bolt_id!r} ({type(bolt).__name__}) has skips_empty = {bolt.skips_empty!r}, expected True or False"
        )
    if isinstance(bolt, IArrowBatchBolt):
        check_pyarrow(f"bolt {bolt_id!r} ({type(bolt).__name__}), which takes record batches,")
    kind = ComponentKind.BASIC_BOLT if isinstance(bolt, IBasicBolt) else ComponentKind.BATCH_BOLT
    declarer = BoltDeclarer(bolt_id, kind, bolt, parallelism)
    declarer._committer = committer
    return declarer


def _check_id(component: Any, what: str) -> None:
    if not isinstance(component, str) or not component:
        raise InvalidId(f"{what} id {component!r}: expected non-empty text")
    if component.startswith("__"):
        raise InvalidId(f"{what} id {component!r} begins with '__', which is kept for Stormline's own components")
    problem = problem_of_name(component)
    if problem is not None:
        raise InvalidId(
            f"{what} id {component[:NAME_CHARS_MAX]!a} {problem}; give it a name that is told from others at a glance"
        )


@storm_names(setSpout="the spout of the constructor")
class TransactionalTopologyBuilder:
    """Declares one topology: a transactional spout and a graph of bolts.

    Nothing runs here, and no JVM is started. Storm 1.2.4: TransactionalTopologyBuilder; what it ignores or replaces
    silently (a repeated id, a BasicBolt marked as committer) is an error here.

    Args:
        topology_id (str): keys all durable state: a topology submitted again under its id goes on where it stopped. 1
            to 128 letters, digits, '_', '.' or '-', since it names a znode.
        spout_id (str): id of the spout, by which bolts subscribe to it.
        spout (AnySpout): a spout of one of the three kinds.
        parallelism (int | None): number of the spout's emitter tasks, at least 1; None: 1.

    Raises:
        InvalidId: an id cannot be used.
        InvalidComponent: `spout` is none, or of two kinds.
        InvalidParallelism: `parallelism` is no whole number of at least 1.
    """

    def __init__(self, topology_id: str, spout_id: str, spout: AnySpout, parallelism: int | None = None) -> None:
        if not is_part(topology_id):
            raise InvalidId(
                f"topology id {topology_id!r}: expected 1 to 128 letters, digits, '_', '.' or '-', not beginning "
                "with '.' or '-', since it names a znode"
            )
        self._topology_id = topology_id
        self._declarers: dict[str, BoltDeclarer] = {}
        _check_id(spout_id, "spout")
        kinds = [kind for interface, kind in _SPOUT_KINDS.items() if isinstance(spout, interface)]
        if len(kinds) != 1:
            raise InvalidComponent(
                f"spout {spout_id!r} is a {_describe(spout)}, expected an object of exactly one of "
                f"{_names(_SPOUT_KINDS)}"
            )
        self._spout = SpoutDeclarer(spout_id, kinds[0], spout, parallelism)

    def get_spout_declarer(self) -> SpoutDeclarer:
        """Return the declarer of the spout, by which it is configured."""
        return self._spout

    def set_bolt(self, bolt_id: str, bolt: AnyBolt, parallelism: int | None = None) -> BoltDeclarer:
        """Declare a BasicBolt or a BatchBolt; a BatchBolt that is an `ICommitter` becomes a committer.

        Args:
            bolt_id (str): its id, unique in the topology; one that begins with `__` is ours.
            bolt (AnyBolt): the bolt; tasks work on copies of it.
            parallelism (int | None): number of its tasks, at least 1; None: 1.

        Returns:
            the bolt's declarer: it needs at least one grouping.

        Raises:
            InvalidId: the id cannot be used.
            DuplicateComponent: there is a spout or bolt of this id.
            InvalidComponent: `bolt` is no bolt, of two kinds, or a BasicBolt that is an `ICommitter`.
            InvalidParallelism: `parallelism` is no whole number of at least 1.
            MissingExtra: the bolt takes record batches, and pyarrow is not installed.
        """
        return self.add(declare_bolt(bolt_id, bolt, parallelism))

    def set_committer_bolt(self, bolt_id: str, bolt: AnyBatchBolt, parallelism: int | None = None) -> BoltDeclarer:
        """Declare any BatchBolt as a committer: it finishes in the commit phase, in the order of txids.

        Args:
            bolt_id (str): its id, unique in the topology; one that begins with `__` is ours.
            bolt (AnyBatchBolt): the bolt.
            parallelism (int | None): number of its tasks, at least 1; None: 1.

        Returns:
            the bolt's declarer: it needs at least one grouping.

        Raises:
            InvalidId: the id cannot be used.
            DuplicateComponent: there is a spout or bolt of this id.
            InvalidComponent: `bolt` is no BatchBolt.
            InvalidParallelism: `parallelism` is no whole number of at least 1.
            MissingExtra: the bolt takes record batches, and pyarrow is not installed.
        """
        return self.add(declare_bolt(bolt_id, bolt, parallelism, committer=True))

    def add(self, bolt: BoltDeclarer) -> BoltDeclarer:
        """Take a bolt that was declared elsewhere, as those of a `BatchSubtopologyBuilder` are.

        Args:
            bolt (BoltDeclarer): its declarer.

        Returns:
            the same declarer.

        Raises:
            DuplicateComponent: there is a spout or bolt of this id.
        """
        if bolt._id == self._spout._id:
            raise DuplicateComponent(f"bolt {bolt._id!r} has the id of the spout; give it another one")
        if bolt._id in self._declarers:
            raise DuplicateComponent(f"bolt {bolt._id!r} is declared twice; give each bolt its own id")
        self._declarers[bolt._id] = bolt
        return bolt

    def build_topology(self) -> Topology:
        """Check the whole and return it frozen.

        Checked are: every source component, stream and grouping field exists; the graph has no cycle, and every bolt is
        reached from the spout; parallelism is at least 1; every component that runs on the executors can be sent there.

        Returns:
            the topology: frozen data, for a cluster's `submit_topology` or `compile_topology`.

        Raises:
            DeclarationError: one of its kinds, all in `stormline.errors`; the message says what to change. Nothing has
                been started.
        """
        check_spout(self._spout._id, self._spout._obj, self._spout._kind)
        for declarer in self._declarers.values():
            check_gathers(declarer._id, declarer._obj)
            check_effects(declarer._id, declarer._obj)
        spout = self._spout._build()
        topology = Topology(self._topology_id, spout, tuple(d._build() for d in self._declarers.values()))
        check_graph(topology)
        check_two_phase(topology)
        check_shippable(topology)
        return topology


def _names(interfaces: Iterable[type]) -> str:
    return ", ".join(interface.__name__ for interface in interfaces)


def _describe(obj: Any) -> str:
    return f"class {obj.__name__} (pass an object of it)" if isinstance(obj, type) else type(obj).__name__
