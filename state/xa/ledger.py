"""The ledger: a row inside each prepared transaction, by which "unknown" can be decided afterwards.

A database that is asked to commit what it does not know says only that. Whether it was committed before, and the answer
got lost, or was rolled back by somebody, the row tells: it is there if and only if its transaction was committed. Each
transaction has a row of its own, so no two of them ever wait for one.

One row more, of no transaction, holds the database's own id, which each handle bears: another database has not the row
either, and that proves nothing. It is in the same table, so whoever empties the table loses the id as well.
"""

from __future__ import annotations

import secrets

from stormline.state.sql_text import statement

LEDGER = "stormline_xa"
KEPT_TXIDS = 1000
"""So many transactions of a component keep their rows after the newest one that is committed."""
FORGET_EVERY = 100
"""After so many transactions those before are removed."""

_CREATE = (
    "CREATE TABLE IF NOT EXISTS $ledger (scope $text NOT NULL, txid bigint NOT NULL, number $text NOT NULL, "
    "database_id $text NOT NULL, prepared_at $time NOT NULL, PRIMARY KEY (scope, txid, number))$options"
)


def create(text: str, time: str, options: str = "") -> str:
    """Return the statement that makes the table, given the types of a short text and of a point in time."""
    return statement(_CREATE, ledger=LEDGER, text=text, time=time, options=options)


def insert(time: str, otherwise: str) -> str:
    """Return the statement that inserts a row of four parameters: scope, txid, number, database_id.

    Args:
        time: what stands for the present time.
        otherwise: what stands before the end, as a condition.
    """
    return statement(
        "INSERT INTO $ledger (scope, txid, number, database_id, prepared_at) SELECT %s, %s, %s, %s, $time $otherwise",
        ledger=LEDGER,
        time=time,
        otherwise=otherwise,
    )


DATABASE_ID = statement("SELECT database_id FROM $ledger WHERE scope = ''", ledger=LEDGER)
STORED = statement("SELECT 1 FROM $ledger WHERE scope = %s AND txid = %s AND number = %s", ledger=LEDGER)
FORGET = statement("DELETE FROM $ledger WHERE scope = %s AND txid < %s", ledger=LEDGER)


def own_row() -> tuple[str, int, str, str]:
    """Return the parameters of the row that holds a new database's id: of two, the first one stays."""
    return ("", 0, "", secrets.token_hex(8))
