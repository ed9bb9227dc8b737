"""A spout whose emitters remember where they are: each of two tasks goes through its own rows, batch after batch.

A batch that is asked for again is the one that was remembered. Rows are numbered by the emitter as it goes.
"""

from stormline import (
    BaseTransactionalBolt,
    Fields,
    ICommitter,
    ITransactionalSpout,
    TransactionalTopologyBuilder,
    Values,
)

BATCHES = 12
TAKE = 3
ROWS = []


class Cursor:
    """Goes from row to row, and never back."""

    def __init__(self, task):
        self.task = task
        self.row = 0

    def next(self):
        self.row += 1
        return f"task {self.task}, row {self.row}"


class NumberedRowsSpout(ITransactionalSpout):
    class Coordinator:
        def __init__(self):
            self.begun = 0

        def is_ready(self):
            return self.begun < BATCHES

        def initialize_transaction(self, txid, prev_metadata):
            self.begun = txid

        def close(self):
            pass

    class Emitter:
        def __init__(self, context):
            self.cursor = Cursor(context.this_task_index)
            self.remembered = {}

        def emit_batch(self, tx, metadata, collector):
            if tx.transaction_id not in self.remembered:
                self.remembered[tx.transaction_id] = [self.cursor.next() for _ in range(TAKE)]
            for row in self.remembered[tx.transaction_id]:
                collector.emit(Values(tx, row))

        def cleanup_before(self, txid):
            for old in [old for old in self.remembered if old < txid]:
                del self.remembered[old]

        def close(self):
            pass

    def get_coordinator(self, conf, context):
        return self.Coordinator()

    def get_emitter(self, conf, context):
        return self.Emitter(context)

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("tx", "row"))


class AppendRows(BaseTransactionalBolt, ICommitter):
    """Appends the rows of a transaction, once, to a list with their txid."""

    def prepare(self, conf, context, collector, id):
        self.id = id
        self.rows = []

    def execute(self, tup):
        self.rows.append(tup.get_string(1))

    def finish_batch(self):
        if not ROWS or ROWS[-1][0] != self.id.transaction_id:
            ROWS.append((self.id.transaction_id, self.rows))


def topology():
    builder = TransactionalTopologyBuilder("numbered-rows", "spout", NumberedRowsSpout(), 2)
    builder.set_bolt("append", AppendRows()).global_grouping("spout")
    return builder.build_topology()
