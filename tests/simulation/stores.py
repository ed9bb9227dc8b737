"""A store's database in the simulated world: real maps and fences store there, over a network, for a server that may
refuse, be slow, lose its answer, or give up on a client that is silent.

Each COMMIT is one message. It arrives later, whatever has become of its sender, unless the server has given up on it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

from stormline.errors import StoreUnavailable
from stormline.state import Store
from stormline.state.fence import Fence
from stormline.state.store_resource import StoreResource
from stormline.state.table import Key, Kind, Row, RowColumns, Table
from tests.simulation.databases import Row as Given
from tests.simulation.faults import STORE_FAULTS
from tests.simulation.scheduler import SimEvent, SimLock
from tests.simulation.world import World, world

SILENT_SECS = 1.5
"""A transaction whose client is silent for so long is rolled back where another one waits for its fence."""

LOCK_SECS = 0.7
"""How long a client waits for a fence that another one has locked."""

LOOK_SECS = 0.02


@dataclass(frozen=True)
class SimStore(Store):
    """The one store of a simulated world."""

    def __str__(self) -> str:
        return "simulated:store"

    def connect(self, reads: bool = False) -> SimConnection:
        """Return a new connection."""
        return SimConnection(world())

    def open_resource(self) -> StoreResource:
        """As any store's; tasks that use a transaction side by side wait in simulated time."""
        here = world()
        return StoreResource(self, lambda: SimLock(here))


STORE = SimStore()


@dataclass
class StoreServer:
    """What is durable, and who has locked the fences."""

    world: World
    tables: dict[str, dict[Key, Row]] = field(default_factory=dict)
    fences: dict[tuple[str, str], Fence] = field(default_factory=dict)
    locks: dict[tuple[str, str], SimConnection] = field(default_factory=dict)

    def commit(self, client: SimConnection) -> None:
        """Let all that a client's transaction has changed be there."""
        if client.given_up or not client.open:
            raise StoreUnavailable("the server has rolled the transaction back")
        before = self.content()
        for table, changed in client.changed.items():
            rows = self.tables.setdefault(table, {})
            for key, row in changed.items():
                if row is None:
                    rows.pop(key, None)
                else:
                    rows[key] = row
        fences_before = dict(self.fences)
        self.fences.update(client.fences_to_set)
        self.end(client)
        self.world.oracle.steps.done(fences_before, self.fences, before, self.content())

    def end(self, client: SimConnection) -> None:
        """Let go of what a client has locked."""
        client.open = False
        for key in [key for key, holder in self.locks.items() if holder is client]:
            del self.locks[key]

    def content(self) -> dict[str, list[Given]]:
        """Return all rows that are stored, by table."""
        from stormline.topology.serialization import PLAIN

        return {
            table: sorted(tuple(one) for row in rows.values() for one in PLAIN.unpack(row.values[0]))
            for table, rows in self.tables.items()
        }


class SimConnection:
    """One connection; see `StoreConnection`."""

    native = None

    def __init__(self, here: World) -> None:
        self._world = here
        self._server = here.store
        self._process = here.task.process
        self.open = False
        self.given_up = False
        self.heard = 0.0
        self.changed: dict[str, dict[Key, Row | None]] = {}
        self.fences_to_set: dict[tuple[str, str], Fence] = {}
        self._process.on_kill.append(lambda: here.after(here.faults.network_secs(), self._broken))

    def _broken(self) -> None:
        """As the server sees it when the client is dead: what it sent before may have come first."""
        if self.open:
            self.given_up = True
            self._server.end(self)

    def _ask(self, fault: str | None, do: Callable[[], Any]) -> Any:
        """Send a request, and wait for the answer."""
        here, faults = self._world, self._world.faults
        slow = fault == "database: slow"
        there_secs = faults.long_secs() if slow else faults.network_secs()
        back_secs = faults.long_secs() if slow else faults.network_secs()
        done, answer = SimEvent(here), []
        process = here.task.process

        def arrive() -> None:
            self.heard = here.now
            try:
                if fault == "database: refused":
                    raise StoreUnavailable("the store is busy")
                answer.append(do())
            except Exception as error:
                answer.append(error)
            if fault == "database: lost COMMIT reply":
                answer[-1] = StoreUnavailable("the connection broke in COMMIT")
            here.after(back_secs, process.deliver, done.set)

        here.after(there_secs, arrive)
        here.expect(there_secs)
        if fault == "driver: killed in a COMMIT":
            here.after(there_secs * 2 * here.random.random(), process.kill)
        done.wait()
        if isinstance(answer[-1], Exception):
            raise answer[-1]
        return answer[-1]

    # ------------------------------------------------------------------------------------ transaction and fence

    def begin(self, reads: bool = False) -> None:
        """Begin with nothing changed."""
        self.changed, self.fences_to_set = {}, {}
        self.open, self.given_up = True, False
        self.heard = self._world.now

    def lock_fence(self, topology: str, scope: str) -> Fence | None:
        """Lock it, or wait for it."""
        key, server, here = (topology, scope), self._server, self._world
        until = here.now + LOCK_SECS

        def lock() -> bool:
            holder = server.locks.get(key)
            if holder is not None and here.now - holder.heard > SILENT_SECS:
                holder._broken()
            if key in server.locks:
                return False
            server.locks[key] = self
            return True

        fault = "database: refused" if here.faults.strikes("database: refused") else None
        while not self._ask(fault, lock):
            if here.now > until:
                raise StoreUnavailable("another transaction has locked the fence")
            here.sleep(LOOK_SECS)
        return server.fences.get(key)

    def fences(self, topology: str) -> Mapping[str, Fence]:
        """Return all of a topology."""
        return {scope: fence for (of, scope), fence in self._server.fences.items() if of == topology}

    def topologies(self) -> list[str]:
        """Nobody looks at what is stored from outside here."""
        raise NotImplementedError

    def claims(self) -> dict[str, tuple[str, str]]:
        """Nobody looks at what is stored from outside here."""
        raise NotImplementedError

    def count(self, table: Table) -> int:
        """Nobody looks at what is stored from outside here."""
        raise NotImplementedError

    def raise_fence(self, topology: str, scope: str, fence: Fence) -> None:
        """Keep it for the commit."""
        self.fences_to_set[topology, scope] = fence

    def commit(self) -> None:
        """Send COMMIT."""
        self._ask(self._world.faults.one_of(STORE_FAULTS), lambda: self._server.commit(self))

    def rollback(self) -> None:
        """Undo all."""
        self._server.end(self)

    def close(self) -> None:
        """Undo what is under way, as the server does when it hears of it."""
        self._broken()

    # ------------------------------------------------------------------------------------ rows

    def make_table(self, table: Table, topology: str) -> None:
        """Do nothing: a table is there when it has rows."""

    def read(self, table: Table, keys: Sequence[Key]) -> dict[Key, Row]:
        """Return rows, with what this transaction has written."""
        rows = {**self._server.tables.get(table.name, {}), **self.changed.get(table.name, {})}
        return {key: row for key in keys if (row := rows.get(key)) is not None}

    def read_all(self, table: Table, rows_max: int | None = None) -> dict[Key, Row]:
        """Return all rows: nobody asks for the first ones here."""
        return self.read(table, list(self._server.tables.get(table.name, {})))

    def write(self, table: Table, columns: RowColumns) -> None:
        """Keep rows for the commit."""
        keys, values = len(table.key), len(table.key) + len(table.value)
        for row in zip(*columns, strict=True):
            rest = list(row[values:])
            txid = rest[0] if rest else None
            prev, prev_txid = (tuple(rest[1:-1]), rest[-1]) if table.kind is Kind.OPAQUE else (None, None)
            made = Row(tuple(row[keys:values]), txid, prev, prev_txid)
            self.changed.setdefault(table.name, {})[tuple(row[:keys])] = made

    def write_unread(self, table: Table, columns: RowColumns) -> bool:
        """Refuse: the simulated bolts read what they write over."""
        raise NotImplementedError

    def delete(self, table: Table, keys: Sequence[Key]) -> None:
        """Keep for the commit that rows go."""
        self.changed.setdefault(table.name, {}).update(dict.fromkeys(keys))

    def keep_removed(self, table: Table, rows: Sequence[tuple[Key, Row]], txid: int) -> None:
        """Nothing is removed by the simulated bolts."""

    def undo(self, table: Table, txid: int, keys: Sequence[Key] | None) -> None:
        """Put rows of an opaque map back."""
        for key, row in self.read_all(table).items():
            if row.txid == txid:
                before = None if row.prev is None or row.prev_txid is None else Row(row.prev, row.prev_txid)
                self.changed.setdefault(table.name, {})[key] = before

    def own_sql(self) -> AbstractContextManager[Any]:
        """No bolt uses SQL of its own here."""
        raise NotImplementedError

    def reset(self) -> None:
        """No bolt uses SQL of its own here."""

    def savepoint(self) -> None:
        """No bolt uses SQL of its own here."""

    def undo_to_savepoint(self) -> None:
        """No bolt uses SQL of its own here."""

    def violates_constraint(self, error: BaseException) -> bool:
        """There are no constraints."""
        return False

    def translated(self, error: BaseException) -> BaseException:
        """What is raised here says what it means."""
        return error
