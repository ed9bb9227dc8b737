"""audit: works out once more what a topology has stored, and names what differs. It writes nowhere."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from stormline.runtime.audit.auditable_part import auditable_part
from stormline.runtime.audit.recomputation import Recomputation
from stormline.runtime.coordination.batch_store import Batch, committed_in, stored_batch
from stormline.runtime.errors import NotAuditable
from stormline.runtime.state.state_store import ValueReader
from stormline.runtime.tasks.task_environment import registry_of
from stormline.state.comparison import Comparison, Difference
from stormline.state.fence import Fence
from stormline.state.inspection import Inspection
from stormline.state.store import ADOPTED, Store
from stormline.state.table import Key, Row, Table
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
    """What one store held at one moment: the last transaction, its batch, and the topology's tables by name."""

    txid: int
    batch: Batch
    tables: Mapping[str, tuple[Table, Mapping[Key, Row]]]


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
    seen = {store: _look(store, bolts, plan, state) for store, bolts in part.stores.items()}
    tables: list[AuditedTable] = []
    with Recomputation(part.topology, config) as work:
        for txid in sorted({one.txid for one in seen.values()}):
            again = work.go_on(txid)
            for store, one in seen.items():
                if one.txid == txid:
                    _check_same(topology, txid, one.batch, again)
                    tables += _compared(store, one, work, plan)
    return AuditReport(topology.id, tuple(sorted(tables, key=lambda table: (table.store, table.table))), part.left_out)


def _compared(store: Store, seen: _Seen, work: Recomputation, plan: Plan) -> Iterator[AuditedTable]:
    """Compare what was seen of a store with what was worked out for it."""
    for name, (table, expected) in work.tables(store).items():
        declared, held = seen.tables.get(name, (table, {}))
        if declared != table:
            raise NotAuditable(
                f"table {name!r} of {store} is that of a {declared.described()}, and the topology declares a "
                f"{table.described()}; audit the topology that stored there"
            )
        found = Comparison(table, registry_of(plan)).differences(held, expected)
        yield AuditedTable(str(store), name, seen.txid, len(held.keys() | expected.keys()), tuple(found))


def _look(store: Store, bolts: Iterable[str], plan: Plan, state: ValueReader) -> _Seen:
    """Return what a store holds, with the batch of the last transaction there, which is kept for a while only."""
    for _ in range(LOOKS_MAX):
        with Inspection.of(store) as seen:
            txid = _txid(store, seen.fences(plan.topology_id), plan, bolts)
            tables = {
                name: (held.table, seen.rows(held.table))
                for name, held in seen.tables().items()
                if held.topology == plan.topology_id
            }
            if _txid(store, seen.fences(plan.topology_id), plan, bolts) != txid:  # not all stores show one moment
                continue
        batch = stored_batch(state, txid)
        if batch is not None:
            return _Seen(txid, batch, tables)
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


def _txid(store: Store, fences: Mapping[str, Fence], plan: Plan, bolts: Iterable[str]) -> int:
    """Return the last transaction that a store holds."""
    if ADOPTED in fences:
        raise NotAuditable(
            f"{store} was adopted by topology {plan.topology_id!r} at transaction {fences[ADOPTED].txid}: what its "
            "maps held then is known to nobody; only a store that holds all transactions can be audited"
        )
    scopes = {scope for bolt in bolts for scope in _scopes(plan, bolt)}
    txids = {fences[scope].txid if scope in fences else 0 for scope in scopes}
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
        return [planned.task_scope(task) for task in planned.tasks]
    return [WHOLE_TOPOLOGY]


def _check_same(topology: Topology, txid: int, stored: Batch, again: Batch) -> None:
    same = (stored.metadata, stored.rows, stored.positions) == (again.metadata, again.rows, again.positions)
    if not same:
        raise NotAuditable(
            f"spout {topology.spout.id!r} gives another batch of transaction {txid} than it gave ({again.rows} tuples, "
            f"{stored.rows} then): its source was changed, or is cut into batches by when it was read, and not by what "
            "it holds; so nobody can tell what the maps should hold"
        )
