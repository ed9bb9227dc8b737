"""Evidence: what source, ledger, state and ZooKeeper hold after a round, read by nothing of Stormline's runner."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import psycopg
from kazoo.client import KazooClient
from kazoo.exceptions import KazooException
from kazoo.handlers.threading import KazooTimeoutError

from stormline.runtime.state.stored_value import unseal
from stormline.topology.serialization import PLAIN
from tests.chaos.ledger import Token
from tests.chaos.numbers import Sums


class Entry(NamedTuple):
    """One row of the ledger, in the order in which they were written."""

    txid: int
    task: int
    epoch: int
    attempt: int
    sums: Sums


class Taken(NamedTuple):
    """Rows [first, end) of a partition that one transaction took, of which `count` arrived."""

    txid: int
    partition: int
    first: int
    end: int
    count: int  # type: ignore[assignment]  # hides a method of tuples, which nobody calls


class Stored(NamedTuple):
    """The state of one key: its sums, and the last transaction that changed it."""

    task: int
    sums: Sums
    txid: int


@dataclass(frozen=True)
class Evidence:
    """All that the checker looks at. `source`: the sums of each key as they must be; `told`: what was wrong to see."""

    partitions: int
    rows: int
    tasks: int
    source: Mapping[int, Sums]
    entries: Sequence[Entry]
    taken: Sequence[Taken]
    state: Mapping[int, Stored]
    fence: Mapping[int, Token]
    committed: int
    stores: Mapping[str, Mapping[int, Sums]] = field(default_factory=dict)
    left: Sequence[str] = field(default=())
    told: Sequence[str] = field(default=())


def committed_in_zookeeper(hosts: str, topology: str) -> int:
    """Return the transaction that ZooKeeper holds as committed."""
    return int(_in_zookeeper(hosts, f"/transactional/{topology}/state/committed")["txid"])


def owner_in_zookeeper(hosts: str, topology: str) -> int | None:
    """Return the process id of the driver that ZooKeeper holds for the owner; None: nobody, or it does not say now."""
    try:
        return int(_in_zookeeper(hosts, f"/transactional/{topology}/live")["pid"])
    except (KazooException, KazooTimeoutError):
        return None


def _in_zookeeper(hosts: str, node: str) -> Any:
    client = KazooClient(hosts, timeout=20)
    try:
        client.start(timeout=30)
        return unseal(client.get(node)[0], PLAIN, node)
    finally:
        client.stop()
        client.close()


def collect(
    dsn: str,
    topology: str,
    partitions: int,
    rows: int,
    tasks: int,
    source: Mapping[int, Sums],
    committed: int,
    stores: Mapping[str, Mapping[int, Sums]] | None = None,
) -> Evidence:
    """Read what the database holds of a topology."""
    with psycopg.connect(dsn) as db:
        entries = [
            Entry(txid, task, epoch, attempt, Sums(int(count), int(total), int(squares)))
            for txid, task, epoch, attempt, count, total, squares in db.execute(
                "SELECT txid, task, epoch, attempt, count, total, squares FROM ledger WHERE topology = %s"
                " ORDER BY serial",
                (topology,),
            )
        ]
        taken = [
            Taken(*row)
            for row in db.execute(
                "SELECT txid, partition, first, end_row, count FROM ranges WHERE topology = %s", (topology,)
            )
        ]
        state = {
            key: Stored(task, Sums(int(count), int(total), int(squares)), txid)
            for key, task, count, total, squares, txid in db.execute(
                "SELECT key, task, count, total, squares, txid FROM state WHERE topology = %s", (topology,)
            )
        }
        fence = {
            task: Token(*token)
            for task, *token in db.execute(
                "SELECT task, epoch, txid, attempt FROM fence WHERE topology = %s", (topology,)
            )
        }
    return Evidence(partitions, rows, tasks, source, entries, taken, state, fence, committed, stores or {})
