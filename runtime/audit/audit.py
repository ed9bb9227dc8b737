"""audit: works out once more what a topology has stored, and names what differs. It writes nowhere."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from stormline.runtime.audit.auditable_part import AuditablePart, auditable_part
from stormline.runtime.audit.recomputation import Recomputation
from stormline.runtime.coordination.batch_store import Batch, committed_in, stored_batch
from stormline.runtime.errors import NotAuditable
from stormline.runtime.state.state_store import ValueReader
from stormline.runtime.tasks.task_environment import registry_of
from stormline.state.comparison import Comparison, Difference
from stormline.state.fence import Fence
from stormline.state.inspection import Inspection
from stormline.state.maps import StateMap
from stormline.state.store import ADOPTED, Store
from stormline.state.table import Key, Row
from stormline.topology.commit_participants import WHOLE_TOPOLOGY
from stormline.topology.compiler import compile_topology
from stormline.topology.plan import Placement, Plan
from stormline.topology.topology import Topology

LOOKS_MAX = 20


@dataclass(frozen=True, slots=True)
class AuditedTable:
    """One map's table: how many rows it holds, or should, and which of them differ at a transaction."""

    store: str
    table: str
    txid: int
    rows: int
    differences: tuple[Difference, ...]


@dataclass(frozen=True, slots=True)
class AuditReport:
    """What an audit has found. `left_out` says why committers were not looked at, by id."""

    topology: str
    tables: tuple[AuditedTable, ...]
    left_out: Mapping[str, str]

    @property
    def differ(self) -> int:
        """How many rows differ."""
        return sum(len(table.differences) for table in self.tables)


@dataclass(frozen=True, slots=True)
class _Seen:
    """What one store held at one moment: the last transaction, its batch, and the rows of the maps."""

    txid: int
    batch: Batch
    rows: Mapping[StateMap, Mapping[Key, Row]]


def audit(topology: Topology, config: Mapping[str, Any], state: ValueReader) -> AuditReport:
    """Read the committed batches again, work out the values of maps, and compare.

    It may run beside the topology: of each store it compares what that held at one moment.

    Args:
        topology: as it runs.
        config: as it runs with.
        state: its durable state, each value as it is when it is asked for.

    Raises:
        NotAuditable: it cannot be told what the maps should hold; the message says why.
        StoreFailed: a store cannot be read.
        StormlineError: user code has failed.
    """
    part = auditable_part(topology)
    plan = compile_topology(topology, config)
    seen = {store: _look(store, part, plan, state) for store in {map.store for map in part.maps}}
    tables: list[AuditedTable] = []
    registry = registry_of(plan)
    with Recomputation(part.topology, config) as work:
        for txid in sorted({one.txid for one in seen.values()}):
            again = work.go_on(txid)
            for store, one in seen.items():
                if one.txid != txid:
                    continue
                _check_same(topology, txid, one.batch, again)
                for map in one.rows:
                    held, expected = one.rows[map], work.rows(store, map.spec)
                    found = Comparison(map.spec, registry).differences(held, expected)
                    count = len(held.keys() | expected.keys())
                    tables.append(AuditedTable(str(store), map.table, txid, count, tuple(found)))
    return AuditReport(topology.id, tuple(sorted(tables, key=lambda table: (table.store, table.table))), part.left_out)


def _look(store: Store, part: AuditablePart, plan: Plan, state: ValueReader) -> _Seen:
    """Return what a store holds, with the batch of the last transaction there, which is kept for a while only."""
    maps = [map for map in part.maps if map.store == store]
    bolts = sorted({bolt for map in maps for bolt in part.maps[map]})
    for _ in range(LOOKS_MAX):
        with Inspection.of(store) as seen:
            txid = _txid(store, seen.fences(), plan, bolts)
            rows = {map: seen.rows(map.spec) for map in maps}
            if _txid(store, seen.fences(), plan, bolts) != txid:  # of a store without looks at one moment
                continue
        batch = stored_batch(state, txid)
        if batch is not None:
            return _Seen(txid, batch, rows)
        committed = committed_in(state)
        if committed < txid:
            raise NotAuditable(
                f"{store} holds transaction {txid} of topology {plan.topology_id!r}, whose own state says that "
                f"{committed} is committed, and knows no batch {txid}: it was removed or set back; bring the newer "
                "state back"
            )
    raise NotAuditable(
        f"topology {plan.topology_id!r} commits faster than {store} can be read; stop it for the audit, which needs "
        "what defined the last batch that it sees"
    )


def _txid(store: Store, fences: Mapping[tuple[str, str], Fence], plan: Plan, bolts: Iterable[str]) -> int:
    """Return the last transaction that a store holds."""
    ours = {scope: fence.txid for (topology, scope), fence in fences.items() if topology == plan.topology_id}
    if ADOPTED in ours:
        raise NotAuditable(
            f"{store} was adopted by topology {plan.topology_id!r} at transaction {ours[ADOPTED]}: what its maps held "
            "then is known to nobody; only a store that holds all transactions can be audited"
        )
    scopes = {scope for bolt in bolts for scope in _scopes(plan, bolt)}
    txids = {ours.get(scope, 0) for scope in scopes}
    if txids == {0}:
        raise NotAuditable(
            f"{store} holds nothing of topology {plan.topology_id!r}; run it first, and audit with the settings that "
            "it runs with"
        )
    if len(txids) > 1:
        raise NotAuditable(
            f"{store} holds transactions {sorted(txids)} of tasks that commit by themselves: one was cut off in the "
            "middle; let the topology run and stop, then audit"
        )
    return txids.pop()


def _scopes(plan: Plan, bolt: str) -> list[str]:
    planned = plan.components[bolt]
    if planned.commit_placement is Placement.EXECUTORS:
        return [f"{bolt}:{i}/{len(planned.tasks)}" for i in range(len(planned.tasks))]
    return [WHOLE_TOPOLOGY]


def _check_same(topology: Topology, txid: int, stored: Batch, again: Batch) -> None:
    same = (stored.metadata, stored.rows, stored.positions) == (again.metadata, again.rows, again.positions)
    if not same:
        raise NotAuditable(
            f"spout {topology.spout.id!r} gives another batch of transaction {txid} than it gave ({again.rows} tuples, "
            f"{stored.rows} then): its source was changed, or is cut into batches by when it was read, and not by what "
            "it holds; so nobody can tell what the maps should hold"
        )
