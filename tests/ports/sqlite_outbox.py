"""A committer spout on an outbox table in SQLite, and a committer into another table of the same file.

Coordinator and emitter each open their connection when they are made, and use it in every call, `commit` and `close`
too; the bolt opens one in `prepare`. SQLite lets only the thread that opened a connection use it.
"""

import sqlite3

from stormline import (
    BaseTransactionalBolt,
    Fields,
    ICommitter,
    ICommitterTransactionalSpout,
    ITransactionalSpout,
    TransactionalTopologyBuilder,
    Values,
)

TAKE = 8
SCHEMA = """
    CREATE TABLE outbox (id INTEGER PRIMARY KEY, account TEXT, amount INTEGER, sent INTEGER NOT NULL DEFAULT 0);
    CREATE TABLE balances (account TEXT PRIMARY KEY, amount INTEGER, txid INTEGER);
"""


class OutboxSpout(ITransactionalSpout, ICommitterTransactionalSpout):
    class Coordinator:
        def __init__(self, path):
            self.db = sqlite3.connect(path, timeout=30)
            self.begun = 0

        def resume(self, prev_metadata):
            self.begun = 0 if prev_metadata is None else prev_metadata[1]

        def is_ready(self):
            return self.db.execute("SELECT count(*) FROM outbox WHERE id > ?", (self.begun,)).fetchone()[0] > 0

        def initialize_transaction(self, txid, prev_metadata):
            start = 0 if prev_metadata is None else prev_metadata[1]
            query = "SELECT max(id) FROM (SELECT id FROM outbox WHERE id > ? ORDER BY id LIMIT ?)"
            self.begun = self.db.execute(query, (start, TAKE)).fetchone()[0]
            return [start, self.begun]

        def close(self):
            self.db.close()

    class Emitter:
        def __init__(self, path, context):
            self.db = sqlite3.connect(path, timeout=30)
            self.share = (len(context.component_tasks(context.this_component_id)), context.this_task_index)
            self.emitted = {}

        def emit_batch(self, tx, metadata, collector):
            query = "SELECT id, account, amount FROM outbox WHERE id > ? AND id <= ? AND id % ? = ?"
            rows = self.db.execute(query, (*metadata, *self.share)).fetchall()
            self.emitted[tx.transaction_id] = [row[0] for row in rows]
            for _, account, amount in rows:
                collector.emit(Values(tx, account, amount))

        def commit(self, attempt):
            with self.db:
                ids = [(row,) for row in self.emitted[attempt.transaction_id]]
                self.db.executemany("UPDATE outbox SET sent = sent + 1 WHERE id = ? AND sent = 0", ids)

        def cleanup_before(self, txid):
            for old in [old for old in self.emitted if old < txid]:
                del self.emitted[old]

        def close(self):
            self.db.execute("SELECT 1")
            self.db.close()

    def __init__(self, path):
        self.path = path

    def get_coordinator(self, conf, context):
        return self.Coordinator(self.path)

    def get_emitter(self, conf, context):
        return self.Emitter(self.path, context)

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("tx", "account", "amount"))


class UpdateBalances(BaseTransactionalBolt, ICommitter):
    def __init__(self, path):
        self.path = path

    def prepare(self, conf, context, collector, id):
        self.id = id
        self.db = sqlite3.connect(self.path, timeout=30)
        self.amounts = {}

    def execute(self, tup):
        account = tup.get_string(1)
        self.amounts[account] = self.amounts.get(account, 0) + tup.get_integer(2)

    def finish_batch(self):
        with self.db:
            for account, amount in self.amounts.items():
                row = self.db.execute("SELECT amount, txid FROM balances WHERE account = ?", (account,)).fetchone()
                stored, txid = row or (0, None)
                if txid != self.id.transaction_id:
                    new = (account, stored + amount, self.id.transaction_id)
                    self.db.execute("INSERT OR REPLACE INTO balances VALUES (?, ?, ?)", new)
        self.db.close()


def topology(path="outbox.sqlite"):
    builder = TransactionalTopologyBuilder("outbox", "spout", OutboxSpout(path), 2)
    builder.set_bolt("balances", UpdateBalances(path), 3).fields_grouping("spout", Fields("account"))
    return builder.build_topology()
