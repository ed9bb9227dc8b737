"""The databases of users, three kinds of state: value and txid, opaque value, and fenced by the token.

Each request is one database transaction. It arrives later, whatever has become of its sender; its reply may be lost.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from stormline import FailedException
from tests.simulation.faults import DATABASE_FAULTS
from tests.simulation.scheduler import SimEvent
from tests.simulation.world import World, world

Row = tuple[int, int, int]
"""Partition, offset, and edition: what an opaque spout read there may be another text the next time."""


class Token(NamedTuple):
    """Who acts. Tokens are compared as they stand."""

    epoch: int
    txid: int
    attempt: int


NOBODY = Token(0, 0, 0)


class Request(NamedTuple):
    """One database transaction: `rows` are added to the value at `key` of one `table`, by a batch's `commit_id`."""

    table: str
    key: str
    token: Token
    rows: tuple[Row, ...]
    commit_id: int = 0


@dataclass(slots=True)
class Cell:
    """One value with what is kept beside it."""

    value: tuple[Row, ...] = ()
    before: tuple[Row, ...] = ()
    txid: int = 0
    token: Token = NOBODY
    commit_id: int = 0


def by_txid(cell: Cell, token: Token, rows: tuple[Row, ...]) -> None:
    """Value and txid: applied once a txid, in order."""
    if cell.txid < token.txid:
        cell.value, cell.txid = cell.value + rows, token.txid


def opaque(cell: Cell, token: Token, rows: tuple[Row, ...]) -> None:
    """Value, value before and txid: the last txid may be applied again."""
    if cell.txid < token.txid:
        cell.before, cell.txid = cell.value, token.txid
    if cell.txid == token.txid:
        cell.value = cell.before + rows


def fenced(cell: Cell, token: Token, rows: tuple[Row, ...]) -> None:
    """A token that is older than another one's is turned away."""
    if token < cell.token:
        raise StaleToken(f"{token} comes after {cell.token}")
    cell.token = token
    by_txid(cell, token, rows)


def check_history(cell: Cell, request: Request) -> None:
    """Raise `OtherHistory` where a transaction comes again by another commit id than the one that has been applied.

    Most histories that were set back are told by an older txid or token, too. That is left out: what the ids are for is
    to be seen.
    """
    if cell.txid == request.token.txid and cell.commit_id != request.commit_id:
        raise OtherHistory(f"{request.token} comes by {request.commit_id}, and has come by {cell.commit_id}")


class StaleToken(FailedException):
    """The database turned a zombie away."""


class OtherHistory(Exception):
    """The database knows more than the topology's state: that was set back. It stops the topology."""


RULES = {"keyed": by_txid, "total": opaque, "ledger": fenced}


@dataclass
class Databases:
    """All tables."""

    world: World
    cells: dict[tuple[str, str], Cell] = field(default_factory=dict)
    turned_away: int = 0
    set_back: bool = False

    def send(self, request: Request) -> None:
        """Do one database transaction, and wait for its end.

        Raises:
            FailedException: it was refused, or nobody knows.
        """
        faults, here = self.world.faults, self.world
        fault = faults.one_of(DATABASE_FAULTS)
        there_secs, back_secs = faults.network_secs(), faults.network_secs()
        if fault == "database: slow":
            there_secs, back_secs = faults.long_secs(), faults.long_secs()
        process = here.task.process
        done = SimEvent(here)
        answer: list[Exception] = []

        def arrive() -> None:
            if fault == "database: refused":
                answer.append(FailedException("the database is busy"))
            else:
                try:
                    self.apply(request)
                except (FailedException, OtherHistory) as error:
                    answer.append(error)
                if fault == "database: lost COMMIT reply":
                    answer.append(FailedException("the connection broke in COMMIT"))
            here.after(back_secs, process.deliver, done.set)

        here.after(there_secs, arrive)
        here.expect(there_secs)
        done.wait()
        if answer:
            raise answer[-1]

    def apply(self, request: Request) -> None:
        """Do it, on the server."""
        self.world.oracle.effect(request)
        cell = self.cells.setdefault((request.table, request.key), Cell())
        rule = RULES[request.table]
        if self.set_back:  # epochs were, too
            check_history(cell, request)
            rule = by_txid
        try:
            rule(cell, request.token, request.rows)
        except StaleToken:
            self.turned_away += 1
            raise
        if cell.txid == request.token.txid:
            cell.commit_id = request.commit_id

    def rows_of(self, table: str) -> list[Row]:
        """Return all rows of one table."""
        return [row for (name, _), cell in sorted(self.cells.items()) if name == table for row in cell.value]


def token_of(context: Any, attempt: Any) -> Token:
    """Return the token that user code is given."""
    return Token(context.epoch, attempt.transaction_id, attempt.attempt_id)


def send(table: str, key: str, token: Token, rows: list[Row], commit_id: int) -> None:
    """As a client in user code would."""
    world().databases.send(Request(table, key, token, tuple(sorted(rows)), commit_id))
