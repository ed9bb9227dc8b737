"""The maps of a store, after Trident's: what a topology stores by key, each transaction once."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from stormline.state.columns import check_name, columns_of
from stormline.state.errors import InvalidStore
from stormline.state.open_map import OpenMap, OpenValue
from stormline.state.packed_columns import PackedColumns
from stormline.state.store import Store
from stormline.state.table import PREV, REMOVED, RESERVED, TXID, Kind, Table
from stormline.topology.attempt import TransactionAttempt
from stormline.topology.context import TopologyContext


@dataclass(frozen=True)
class StateMap:
    """A table of a store with typed columns: those of the key, those of the value, and what its kind adds.

    It is plain data: declare it beside the topology, and open it in `finish_batch`, in every batch. A key, and a value,
    of one column is that column's value, of several a tuple.

    Args:
        store (Store): The database.
        table (str): Its name; made where it is missing. A table of yours is adopted where it has the columns, and the
            key's are its primary key. What other columns it has must have defaults.
        key (Mapping[str, type]): The key's columns, name → type: int, str, bytes, bool, datetime or date.
        value (Mapping[str, type]): The value's columns: any of these, float, Decimal, or object: what the topology's
            serialization takes, as msgpack.
        cache (int): How many rows each process remembers, so that it need not read them again. Where others change the
            table it must be 0.

    Raises:
        InvalidStore: Names or types that cannot be columns.
    """

    store: Store
    table: str
    key: Mapping[str, type]
    value: Mapping[str, type]
    cache: int = 0
    spec: Table = field(init=False, repr=False, compare=False)
    kind: ClassVar[Kind]

    def __post_init__(self) -> None:
        if not isinstance(self.store, Store):
            raise InvalidStore(f"map {self.table!r} is in {self.store!r}, expected a store, as SQLiteStore(path)")
        if type(self.cache) is not int or self.cache < 0:
            raise InvalidStore(f"map {self.table!r} has cache={self.cache!r}, expected a number of rows from 0 on")
        object.__setattr__(self, "spec", self._table())

    def _table(self) -> Table:
        name = check_name(self.table, f"a table of {self.store}")
        if name.lower().startswith(RESERVED) or name.lower().endswith(REMOVED):
            raise InvalidStore(
                f"table {name!r} of {self.store} is named as Stormline's own are; let it not begin with {RESERVED!r}, "
                f"nor end with {REMOVED!r}"
            )
        key = columns_of(self.key, f"the key of {name!r}", keys=True)
        value = columns_of(self.value, f"the value of {name!r}")
        names = [column.name.lower() for column in (*key, *value)]
        for i, column in enumerate(names):
            if column == TXID or column.startswith(PREV) or column in names[:i]:
                raise InvalidStore(
                    f"table {name!r} of {self.store} has a column {column!r} twice, or named as those that the map "
                    f"adds are: {TXID!r}, {PREV!r}…; rename it"
                )
        return Table(name, self.kind, key, value)

    def __hash__(self) -> int:
        return hash((self.store, self.table))

    def __deepcopy__(self, memo: Any) -> StateMap:
        return self

    def begin_commit(self, context: TopologyContext, attempt: TransactionAttempt) -> OpenMap:
        """Return the map as the commit phase of `attempt` sees it; its first use there begins the transaction.

        Args:
            context (TopologyContext): What `prepare` was given.
            attempt (TransactionAttempt): What `prepare` was given.

        Raises:
            NotCommitting: The commit phase of `attempt` does not run here.
            StoreMismatch: The database holds another history than the topology's state.
            TableMismatch: The table has other columns.
            StoreUnavailable: The database does not answer: the batch is replayed.
        """
        transaction = self.store.in_commit(context, attempt)
        return OpenMap(self.spec, transaction, transaction.table(self.spec, self.cache))

    def items(self) -> dict[Any, Any]:
        """Return all that is committed, by key, read by a connection of its own: for tests, reports, small maps.

        Classes that a topology registers are not known here: objects of theirs are `CorruptRow`.
        """
        from stormline.topology.serialization import PLAIN

        connection = self.store.connect()
        try:
            connection.begin(reads=True)
            rows = connection.read_all(self.spec)
            connection.rollback()
        finally:
            connection.close()
        packed = PackedColumns(self.spec, PLAIN)
        one_key, one_value = len(self.spec.key) == 1, len(self.spec.value) == 1
        found = {}
        for key, row in rows.items():
            values = packed.unpacked(key, row.values) if packed else row.values
            found[key[0] if one_key else key] = values[0] if one_value else values
        return found


class TransactionalMap(StateMap):
    """Each value with the transaction that stored it: one that is replayed finds its own, and leaves it alone.

    It is what to take: every batch of a topology is the same in each replay from its first effect on.
    """

    kind = Kind.TRANSACTIONAL


class OpaqueMap(StateMap):
    """Each value with the transaction that stored it, and with the value before.

    A transaction that is replayed sees the map as it was before it, and stores anew: keys that the first attempt
    touched and this one does not are what they were. Twice the columns, and the only map in which a replay reads what
    the first attempt read, where something else than this store depends on that.
    """

    kind = Kind.OPAQUE


class NonTransactionalMap(StateMap):
    """Values alone: the store's fence keeps replays off. For tables of yours that have no txid.

    With commits on the executors a transaction that was cut off in the middle, and is replayed with another
    parallelism, may count twice: there only the txid beside each value tells.
    """

    kind = Kind.NON_TRANSACTIONAL


@dataclass(frozen=True)
class SnapshottableMap:
    """One value of a map: a total, say.

    Args:
        map (StateMap): Where it is stored.
        key (Hashable): The key of its row.

    Raises:
        InvalidStore: `map` is none, or does not take `key`.
    """

    map: StateMap
    key: Hashable = "total"

    def __post_init__(self) -> None:
        if not isinstance(self.map, StateMap):
            raise InvalidStore(f"a SnapshottableMap is one value of {self.map!r}, expected a map of a store")
        spec = self.map.spec
        row = self.key if len(spec.key) > 1 else (self.key,)
        if not isinstance(row, tuple) or len(row) != len(spec.key):
            raise InvalidStore(
                f"a SnapshottableMap of table {spec.name!r} has the key {self.key!r}, expected a tuple of "
                f"{len(spec.key)}: {spec.described()}"
            )
        for column, part in zip(spec.key, row, strict=True):
            problem = column.problem(part)
            if problem is not None:
                raise InvalidStore(
                    f"a SnapshottableMap of table {spec.name!r} has the key {self.key!r}: column {column.name!r} does "
                    f"not take {part!r}, which {problem}; give it another: SnapshottableMap(map, key)"
                )

    def begin_commit(self, context: TopologyContext, attempt: TransactionAttempt) -> OpenValue:
        """Return the value as the commit phase of `attempt` sees it; raises as `StateMap.begin_commit`.

        Args:
            context (TopologyContext): What `prepare` was given.
            attempt (TransactionAttempt): What `prepare` was given.
        """
        return OpenValue(self.map.begin_commit(context, attempt), self.key)
