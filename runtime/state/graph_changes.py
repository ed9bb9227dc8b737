"""How two descriptions of a topology differ, in words."""

from __future__ import annotations

from typing import Any

from stormline.runtime.errors import TopologyChanged
from stormline.topology.errors import shown
from stormline.topology.two_phase_bolt import TWO_PHASES

_ABSENT = object()


def differences(stored: Any, declared: Any) -> list[str]:
    """Return what changed, as ["bolt 'count': parallelism 2 → 3", "bolt 'x' added"]; empty where equal."""
    return _differences((), stored, declared)


def _differences(where: tuple[str, ...], stored: Any, declared: Any) -> list[str]:
    if isinstance(stored, dict) and isinstance(declared, dict):
        keys = [*stored, *(key for key in declared if key not in stored)]
        return [
            line
            for key in keys
            for line in _differences((*where, str(key)), stored.get(key, _ABSENT), declared.get(key, _ABSENT))
        ]
    if stored is _ABSENT:
        return [f"{_name(where)} added"]
    if declared is _ABSENT:
        return [f"{_name(where)} removed"]
    if type(stored) is type(declared) and stored == declared:
        return []
    return [f"{_name(where)} {shown(stored, 100)} → {shown(declared, 100)}"]


def _name(where: tuple[str, ...]) -> str:
    """Name ("bolts", "count", "parallelism") as: bolt 'count': parallelism."""
    if len(where) < 2:
        return "".join(where) or "the description"
    name = f"{where[0].removesuffix('s')} {where[1]!r}"
    return f"{name}: {'.'.join(where[2:])}" if len(where) > 2 else name


def _sinks(described: Any) -> set[str]:
    """Return the names, as "bolt 'load'", of what writes into two-phase sinks."""
    if not isinstance(described, dict):
        return set()
    return {str(name) for name, shape in described.items() if isinstance(shape, dict) and TWO_PHASES in shape}


def check_description(stored: Any, declared: Any, topology_id: str, node: str) -> None:
    """Check that the topology at hand is the one that the state belongs to.

    Raises:
        TopologyChanged: it is another one; the message says what differs.
    """
    lines = differences(stored, declared)
    if lines:
        gone = ", ".join(sorted(_sinks(stored) - _sinks(declared)))
        left = (
            f". What {gone} has prepared in its sink and not committed stays there, with its locks: before you allow "
            "this, let the topology as it was commit all that it has, and stop it in good order; `stormline "
            "transactions list` with its module as it was tells what is left"
        )
        raise TopologyChanged(
            f"the state of topology {topology_id!r} ({node}) belongs to another topology than the one "
            f"submitted: {'; '.join(lines)}. Submit the topology as it was, or under another id, which "
            "begins at transaction 1 and needs stores of its own; or allow the change, if the state kept so far fits "
            "the new topology: --allow-changed-topology for `stormline run` and `stormline submit`, "
            f"allow_changed_topology=True in submit() and submit_topology(){left if gone else ''}"
        )
