"""The bolts of the simulated topologies: some are not deterministic, all may fail, three keep state."""

from __future__ import annotations

import datetime as dt
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from typing import Any

from stormline import (
    BaseBasicBolt,
    BaseBatchBolt,
    BaseTransactionalBolt,
    Config,
    Fields,
    ICommitter,
    TransactionalTopologyBuilder,
    TransactionAttempt,
    Tuple,
    compile_topology,
)
from stormline.state import NonTransactionalMap, OpaqueMap, StateMap, TransactionalMap
from stormline.topology.plan import Plan
from tests.simulation import source
from tests.simulation.databases import Row, Token, send, token_of
from tests.simulation.sinks import sink_bolt
from tests.simulation.source import fail_on_order, sleep_on_order
from tests.simulation.stores import STORE
from tests.simulation.world import world


@dataclass(frozen=True, eq=True)
class Key:
    """A key whose hash differs from process to process, as Python's hash of a text does."""

    number: int

    def __hash__(self) -> int:
        return (self.number + 1) * world().process_here().hash_seed >> 7


KEYS = 3
MOMENT = dt.datetime(2026, 2, 3, 4, 5, tzinfo=dt.UTC)
FORMS: tuple[tuple[Any, ...], ...] = (
    (Key(0),),
    (28, 28.0, Decimal(28), Decimal("28.00")),
    (MOMENT, MOMENT.astimezone(dt.timezone(dt.timedelta(hours=5)))),
)
"""The keys, each in all forms that are equal: what a process saw before must not tell where a key goes. Hashed as they
stand, the forms of one key would be of different tasks."""


def number_of(key: Any) -> int:
    """Return which key this is, in whatever form."""
    return 2 if isinstance(key, dt.datetime) else 0 if isinstance(key, Key) else 1


class ByOffset:
    """A grouping of the user's."""

    def prepare(self, context: Any, stream: Any, target_tasks: Sequence[int]) -> None:
        self.tasks = target_tasks

    def choose_tasks(self, task_id: int, values: Sequence[Any]) -> list[int]:
        return [self.tasks[(values[1] + values[2]) % len(self.tasks)]]


GROUPINGS: tuple[Callable[[Any], Any], ...] = (
    lambda bolt: bolt.shuffle_grouping("spout"),
    lambda bolt: bolt.none_grouping("spout"),
    lambda bolt: bolt.local_or_shuffle_grouping("spout"),
    lambda bolt: bolt.partial_key_grouping("spout", Fields("partition")),
    lambda bolt: bolt.fields_grouping("spout", Fields("partition", "offset")),
    lambda bolt: bolt.custom_grouping("spout", ByOffset()),
)
"""How rows come from the spout to those who only pass them on."""


class Mix(BaseBatchBolt):
    """Passes rows on, in another order each time, with something made up."""

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("tx", "key", "partition", "offset", "edition", "made_up"))

    def prepare(self, conf: Any, context: Any, collector: Any, batch_id: TransactionAttempt) -> None:
        self.collector, self.attempt = collector, batch_id
        self.rows: list[Row] = []

    def execute(self, tup: Tuple) -> None:
        fail_on_order("bolt: failed", "bolt: bug")
        self.rows.append((tup[1], tup[2], tup[3]))

    def finish_batch(self) -> None:
        fail_on_order("bolt: failed", "bolt: bug")
        world().random.shuffle(self.rows)
        for row in self.rows:
            self.collector.emit(mixed(self.attempt, row))


class BasicMix(BaseBasicBolt):
    """As `Mix`, row by row."""

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("tx", "key", "partition", "offset", "edition", "made_up"))

    def execute(self, tup: Tuple, collector: Any) -> None:
        fail_on_order("bolt: failed", "bolt: bug")
        collector.emit(mixed(tup[0], (tup[1], tup[2], tup[3])))


def mixed(attempt: TransactionAttempt, row: Row) -> list[Any]:
    """Return a tuple for a row."""
    forms = FORMS[(row[0] * 7 + row[1]) % KEYS]
    key = forms[world().faults.below(len(forms))] if len(forms) > 1 else forms[0]
    return [attempt, key, *row, world().faults.below(100)]


class Storing(BaseTransactionalBolt, ICommitter):
    """Gathers rows, and stores them when its batch is committed."""

    gathers: Sequence[str] | None = None
    table = ""
    first = 1

    def __init__(self, declared: bool = False) -> None:
        if declared:
            self.gathers = ("rows", "made_up")

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("tx", "table", "rows", "made_up"))

    def prepare(self, conf: Any, context: Any, collector: Any, batch_id: TransactionAttempt) -> None:
        self.context, self.collector, self.attempt = context, collector, batch_id
        self.rows: list[tuple[int, Row]] = []
        self.made_up = 0

    def execute(self, tup: Tuple) -> None:
        self.made_up += tup[5] if self.first == 2 else 0
        key = number_of(tup[1]) if self.first == 2 else 0
        self.rows.append((key, (tup[self.first], tup[self.first + 1], tup[self.first + 2])))

    def finish_batch(self) -> None:
        token = token_of(self.context, self.attempt)
        commit_id = self.context.commit_id(self.attempt)
        who = (self.table, self.context.this_task_index, token)
        world().oracle.commit_begins(*who, commit_id)
        try:
            self._store(token, commit_id)
        finally:
            world().oracle.commit_ends(*who)

    def _store(self, token: Token, commit_id: int) -> None:
        sleep_on_order("committer: hangs")
        fail_on_order("committer: failed", "committer: bug")
        for key, rows in sorted(self.shares().items()):
            send(self.table, key, token, rows, commit_id)
            fail_on_order("committer: failed", "committer: bug")
        self.collector.emit([self.attempt, self.table, len(self.rows), self.made_up])

    def shares(self) -> dict[str, list[Row]]:
        """Return the rows by the key that they are stored at."""
        return {"all": [row for _, row in self.rows]}


class Keyed(Storing):
    """A value and a txid for each key: two tasks, each key in a database transaction of its own."""

    table = "keyed"
    first = 2

    def execute(self, tup: Tuple) -> None:
        world().oracle.routed(number_of(tup[1]), self.context.this_task_index)
        super().execute(tup)

    def shares(self) -> dict[str, list[Row]]:
        shares: dict[str, list[Row]] = {}
        for key, row in self.rows:
            shares.setdefault(str(key), []).append(row)
        return shares


class Total(Storing):
    """One opaque value, straight from the spout."""

    table = "total"


class Ledger(Storing):
    """One value, fenced by the token."""

    table = "ledger"
    first = 2


class LockedLedger(Ledger):
    """Opens in `prepare` what cannot travel, so it does not say what it gathers."""

    def prepare(self, conf: Any, context: Any, collector: Any, batch_id: TransactionAttempt) -> None:
        super().prepare(conf, context, collector, batch_id)
        self.lock = threading.Lock()


class Kept(Storing):
    """Stores in the store, by a map of its own: all of a transaction, whoever stores, becomes durable at once."""

    effects_in = STORE
    kind: type[StateMap] = TransactionalMap

    def _store(self, token: Token, commit_id: int) -> None:
        sleep_on_order("committer: hangs")
        fail_on_order("committer: failed", "committer: bug")
        kept = self.kind(STORE, self.table, key={"key": str}, value={"rows": object})
        opened = kept.begin_commit(self.context, self.attempt)
        fail_on_order("committer: failed", "committer: bug")
        changes = {key: tuple(sorted(rows)) for key, rows in sorted(self.shares().items())}
        opened.multi_update(changes, lambda old, rows: (*(old or ()), *rows))
        fail_on_order("committer: failed", "committer: bug")
        self.collector.emit([self.attempt, self.table, len(self.rows), self.made_up])


class KeptKeyed(Kept, Keyed):
    """As `Keyed`, in the store."""


class KeptTotal(Kept, Total):
    """As `Total`, in the store."""

    kind = OpaqueMap


class KeptLedger(Kept, Ledger):
    """As `Ledger`, in the store."""

    kind = NonTransactionalMap


class KeptLockedLedger(Kept, LockedLedger):
    """As `LockedLedger`, in the store."""

    kind = NonTransactionalMap


class Audit(BaseTransactionalBolt):
    """Downstream of committers: sees what each of their tasks stored, in the same commit phase."""

    def prepare(self, conf: Any, context: Any, collector: Any, batch_id: TransactionAttempt) -> None:
        self.attempt = batch_id
        self.stored: dict[str, list[int]] = {}
        self.made_up: dict[str, int] = {}

    def execute(self, tup: Tuple) -> None:
        self.stored.setdefault(tup[1], []).append(tup[2])
        self.made_up[tup[1]] = self.made_up.get(tup[1], 0) + tup[3]

    def finish_batch(self) -> None:
        world().oracle.audit(self.attempt, self.stored)
        world().oracle.one_execution(self.attempt, self.made_up)


class KeptAudit(Audit):
    """As `Audit`; it has no effects."""

    effects_in = STORE


SPOUTS: dict[str, Any] = {
    "plain": source.PlainSpout,
    "plain on driver": source.DriverPlainSpout,
    "committer": source.CommitterSpout,
    "partitioned": source.PartitionedSpout,
    "partitioned on driver": source.DriverPartitionedSpout,
    "opaque": source.OpaqueSpout,
    "opaque committer": source.CommitterOpaqueSpout,
    "opaque on driver": source.DriverOpaqueSpout,
}


@dataclass(frozen=True)
class Shape:
    """What one seed's topology looks like."""

    spout: str
    basic: bool
    placed: bool
    locked: bool
    declared: bool
    kept: bool = False
    sunk: bool = False


@cache
def plan_of(shape: Shape) -> Plan:
    """Return the compiled topology."""
    builder = TransactionalTopologyBuilder("simulated", "spout", SPOUTS[shape.spout](), 2)
    grouping = GROUPINGS[(list(SPOUTS).index(shape.spout) + shape.basic + 2 * shape.placed) % len(GROUPINGS)]
    grouping(builder.set_bolt("mix", BasicMix() if shape.basic else Mix(), 2))
    kinds = (Keyed, Total, LockedLedger if shape.locked else Ledger, Audit)
    if shape.kept:
        kinds = (KeptKeyed, KeptTotal, KeptLockedLedger if shape.locked else KeptLedger, KeptAudit)
    keyed_kind, total_kind, ledger_kind, audit_kind = kinds
    keyed = builder.set_bolt("keyed", keyed_kind(shape.declared), 2).fields_grouping("mix", Fields("key"))
    builder.set_bolt("total", total_kind(shape.declared), 1).global_grouping("spout")
    ledger = builder.set_bolt("ledger", ledger_kind(shape.declared and not shape.locked), 1).global_grouping("mix")
    audit = builder.set_bolt("audit", audit_kind(), 1).global_grouping("keyed")
    audit.global_grouping("total").global_grouping("ledger")
    if shape.placed:
        keyed.add_configuration("topology.commit.placement", "executors")
        ledger.add_configuration("topology.commit.placement", "executors")
    if shape.sunk:
        builder.set_bolt("sink", sink_bolt(), 2).shuffle_grouping("mix")
    config = Config()
    config.register_serialization(Key)
    return compile_topology(builder.build_topology(), config)
