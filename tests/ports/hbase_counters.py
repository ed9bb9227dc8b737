"""A contributed HBase committer: increments gathered by row and column, written row by row with the txid beside them.

The handle of the table comes from a registry of the client library. A row whose txid column is this transaction's was
written by an earlier attempt; `check_and_put` writes the others, whatever became of the batch before.
"""

from stormline import (
    BaseBasicBolt,
    BaseTransactionalBolt,
    FailedException,
    Fields,
    ICommitter,
    MemoryTransactionalSpout,
    TransactionalTopologyBuilder,
    Values,
)
from tests.ports.services import hbase

TABLE = "shorturl"
TXID = "txid"
CLICKS = [
    (f"http://short/{number % 7}", f"host{number % 3}", f"2011010{1 + number % 4}") for number in range(120)
]  # url, site of the one who clicked, day
TAKE_PER_BATCH = 11


class ColumnList:
    """The counters of one tuple: by how much each column of its row grows."""

    def __init__(self):
        self.counters = {}

    def add_counter(self, family, qualifier, by):
        column = f"{family}:{qualifier}"
        self.counters[column] = self.counters.get(column, 0) + by
        return self


class SplitClick(BaseBasicBolt):
    def execute(self, tup, collector):
        attempt, url, site, day = tup.values
        collector.emit(Values(attempt, url, site, day))

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("attempt", "row", "site", "day"))


class HBaseCommitter(BaseTransactionalBolt, ICommitter):
    def __init__(self, table_name):
        self.table_name = table_name

    def prepare(self, conf, context, collector, id):
        self.id = id
        self.table = hbase.table(self.table_name)
        self.rows = {}

    def execute(self, tup):
        columns = self.rows.setdefault(tup.get_string_by_field("row"), ColumnList())
        columns.add_counter("daily", tup.get_string_by_field("day"), 1)
        columns.add_counter("site", tup.get_string_by_field("site"), 1)

    def finish_batch(self):
        for key, columns in self.rows.items():
            stored = self.table.get(key)
            if stored.get(TXID) == self.id.transaction_id:
                continue
            put = {column: stored.get(column, 0) + by for column, by in columns.counters.items()}
            put[TXID] = self.id.transaction_id
            if not self.table.check_and_put(key, TXID, stored.get(TXID), put):
                raise FailedException(f"row {key} was changed meanwhile")


def topology():
    clicks = {0: CLICKS[::2], 1: CLICKS[1::2]}
    spout = MemoryTransactionalSpout(clicks, Fields("url", "site", "day"), TAKE_PER_BATCH)
    builder = TransactionalTopologyBuilder("shorturl", "spout", spout, 2)
    builder.set_bolt("split", SplitClick(), 3).shuffle_grouping("spout")
    builder.set_bolt("hbase", HBaseCommitter(TABLE), 3).fields_grouping("split", Fields("row"))
    return builder.build_topology()
