"""Transfers between accounts of two banks, on PostgreSQL and on MariaDB: both get each transfer, or neither.

    transfers (2 tasks) → debits (2 tasks: PREPARE TRANSACTION in PostgreSQL)
    transfers           → credits (2 tasks: XA PREPARE in MariaDB)

Entries are only ever inserted, and a balance is a sum of them, so that no two batches touch the same row: what is
prepared holds its locks until it is committed.

The environment says where the databases are: TRANSFERS_POSTGRESQL (a DSN; the server's max_prepared_transactions must
be 16 or more) and TRANSFERS_MARIADB (a URL), with the passwords, if any, in …_PASSWORD. `python -m
examples.transfers_xa` makes the tables and runs; killed on the way and run again, it goes on where it stopped.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterable
from typing import Any

from stormline import Config, Fields, LocalCluster, MemoryTransactionalSpout, Topology, TransactionalTopologyBuilder
from stormline.state import MySQLStore, PostgreSQLStore
from stormline.state.xa import MariaDbXaBolt, PostgresTwoPhaseBolt

TOPOLOGY = "transfers-xa"
PAYERS = ("ann", "bob", "cem")
PAYEES = ("dora", "emil")
OPENING = 10_000
TRANSFERS_PER_PARTITION = 100

_rng = random.Random(1)
DATA: dict[int, list[list[Any]]] = {
    partition: [
        [partition * 1000 + i, _rng.choice(PAYERS), _rng.choice(PAYEES), _rng.randint(1, 20)]
        for i in range(TRANSFERS_PER_PARTITION)
    ]
    for partition in range(2)
}


def _password(name: str) -> str:
    return f"env:{name}_PASSWORD" if os.environ.get(f"{name}_PASSWORD") else ""


def payers_bank() -> PostgreSQLStore:
    """Return where the payers' accounts are."""
    dsn = os.environ.get("TRANSFERS_POSTGRESQL", "host=127.0.0.1 dbname=bank user=stormline")
    return PostgreSQLStore(dsn, _password("TRANSFERS_POSTGRESQL"))


def payees_bank() -> MySQLStore:
    """Return where the payees' accounts are."""
    url = os.environ.get("TRANSFERS_MARIADB", "mysql://stormline@127.0.0.1/bank")
    return MySQLStore(url, _password("TRANSFERS_MARIADB"))


def topology() -> Topology:
    """Declare the topology."""
    spout = MemoryTransactionalSpout(DATA, Fields("transfer", "payer", "payee", "amount"), take_per_batch=2)
    builder = TransactionalTopologyBuilder(TOPOLOGY, "transfers", spout, 2)
    debits = PostgresTwoPhaseBolt(payers_bank(), "debits", ["transfer", "payer", "amount"])
    credits_ = MariaDbXaBolt(payees_bank(), "credits", ["transfer", "payee", "amount"])
    builder.set_bolt("debits", debits, 2).shuffle_grouping("transfers")
    builder.set_bolt("credits", credits_, 2).shuffle_grouping("transfers")
    return builder.build_topology()


config = Config()
config.set_max_spout_pending(4)


def _run(store: PostgreSQLStore | MySQLStore, texts: Iterable[str]) -> list[tuple[Any, ...]]:
    """Run statements, and return the rows of the last."""
    connection = store.connect(reads=True)
    try:
        cursor = connection.native.cursor()
        for text in texts:
            cursor.execute(text)
        return [tuple(row) for row in cursor.fetchall()] if cursor.description else []
    finally:
        connection.close()


def make_tables() -> None:
    """Make both tables where they are not there: a transfer that came twice would violate the primary key."""
    columns = "(transfer bigint PRIMARY KEY, {} varchar(16) NOT NULL, amount bigint NOT NULL)"
    _run(payers_bank(), [f"CREATE TABLE IF NOT EXISTS debits {columns.format('payer')}"])
    _run(payees_bank(), [f"CREATE TABLE IF NOT EXISTS credits {columns.format('payee')} ENGINE=InnoDB"])


def balances() -> dict[str, int]:
    """Return the balance of each account, from what both databases show now."""
    found = dict.fromkeys((*PAYERS, *PAYEES), OPENING)
    for name, amount in _run(payers_bank(), ["SELECT payer, sum(amount) FROM debits GROUP BY payer"]):
        found[name] -= int(amount)
    for name, amount in _run(payees_bank(), ["SELECT payee, sum(amount) FROM credits GROUP BY payee"]):
        found[name] += int(amount)
    return found


def report() -> str:
    """Return the balances, and their sum, which no transfer changes."""
    found = balances()
    lines = [f"{name:<6} {balance:>7}" for name, balance in found.items()]
    return "\n".join([*lines, f"{'in all':<6} {sum(found.values()):>7}"])


def main() -> None:
    """Make the tables, and transfer."""
    make_tables()
    with LocalCluster(state_dir=".stormline/transfers-xa") as cluster:
        cluster.submit_topology(TOPOLOGY, config, topology()).await_drained(timeout_secs=300)
    print(report())


if __name__ == "__main__":
    main()
