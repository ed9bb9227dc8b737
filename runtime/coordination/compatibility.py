"""Whether a spout of another kind can go on with the state that is there."""

from __future__ import annotations

from typing import Any, cast

from stormline.runtime.coordination.batch_store import Batches
from stormline.runtime.errors import TopologyChanged
from stormline.runtime.state.state_store import ReadableState, StateStore
from stormline.topology.topology import ComponentKind

BY_PARTITION = {ComponentKind.PARTITIONED_SPOUT.value, ComponentKind.OPAQUE_SPOUT.value}
"""Kinds that go on from what was stored of each partition, and may agree on what that is."""


def check_spout_kind(stored: Any, declared: Any, state: ReadableState, topology_id: str, node: str) -> None:
    """Check that the spout at hand can go on with the state of the described one, where a change has been allowed.

    What defines a batch is another thing with each kind, so one that has begun can only be given again by its own.
    What the last committed batch leaves behind is the metadata of its partitions, or that of the whole batch: a spout
    that looks for the other finds nothing, begins its source anew, and counts all of it once more.

    Raises:
        TopologyChanged: it cannot; the message says how to go on.
        StateCorrupt: the stored batches cannot be read.
    """
    before, now = _kind_of_spout(stored), _kind_of_spout(declared)
    if before is None or now is None or before == now:
        return
    batches = Batches(cast(StateStore, state))  # which only reads here
    if not batches.known:
        return
    begun = list(batches.after(batches.found_committed))
    changed = f"the spout of topology {topology_id!r} ({node}) was a {before} and is now a {now}"
    another_id = "submit this one under another topology id, which begins at transaction 1 and needs stores of its own"
    if {before, now} != BY_PARTITION:
        raise TopologyChanged(
            f"{changed}, which finds no place to go on from after transaction {max(batches.known)} and would begin its "
            f"source anew. No permission changes that: submit the topology as it was, or {another_id}"
        )
    if begun:
        raise TopologyChanged(
            f"{changed}, which cannot give the transactions again that have begun and are not committed ({begun[0]} "
            f"to {begun[-1]}). No permission changes that: submit the topology as it was and let it commit all that "
            f"its spout gives, or {another_id}"
        )


def _kind_of_spout(description: Any) -> str | None:
    """Return what `Plan.describe` says, None where something else described it."""
    if not isinstance(description, dict):
        return None
    spouts = [shape for name, shape in description.items() if str(name).startswith("spout ")]
    kind = spouts[0].get("kind") if len(spouts) == 1 and isinstance(spouts[0], dict) else None
    return kind if isinstance(kind, str) else None
