"""The most copied tutorial: lines of a log in a map, a coordinator that sleeps before each batch, and a static map.

The spout's map goes to its emitter, which counts what it has emitted. The coordinator gives ten lines a batch,
whether they are there or not, and is always ready: after a pause, so that the batches do not come too fast.
"""

import time

from stormline import (
    BaseTransactionalBolt,
    Config,
    Fields,
    ICommitter,
    ITransactionalSpout,
    TransactionalTopologyBuilder,
    Values,
)

LINES = 95
BATCH_NUM = 10
PAUSE_SECS = 0.05
GLOBAL_KEY = "GLOBAL_KEY"


class MyTxSpout(ITransactionalSpout):
    def __init__(self):
        hosts = ["www.example.com"]
        self.db_map = {number: f"{hosts[0]}\tsession-{number % 13}\t2014-01-07" for number in range(LINES)}

    def get_coordinator(self, conf, context):
        return MyCoordinator()

    def get_emitter(self, conf, context):
        return MyEmitter(self.db_map)

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("tx", "log"))


class MyCoordinator:
    def initialize_transaction(self, txid, prev_metadata):
        begin_point = 0 if prev_metadata is None else prev_metadata["begin_point"] + prev_metadata["num"]
        return {"begin_point": begin_point, "num": BATCH_NUM}

    def is_ready(self):
        time.sleep(PAUSE_SECS)
        return True

    def close(self):
        pass


class MyEmitter:
    def __init__(self, db_map):
        self.db_map = db_map
        self.emitted = 0

    def emit_batch(self, tx, metadata, collector):
        begin_point = metadata["begin_point"]
        for number in range(begin_point, begin_point + metadata["num"]):
            if self.db_map.get(number) is None:
                continue
            self.emitted += 1
            collector.emit(Values(tx, self.db_map[number]))

    def cleanup_before(self, txid):
        pass

    def close(self):
        pass


class MyTransactionBolt(BaseTransactionalBolt):
    def prepare(self, conf, context, collector, id):
        self.collector = collector
        self.id = id
        self.count = 0

    def execute(self, tup):
        log = tup.get_string_by_field("log")
        if log is not None and len(log.split("\t")) > 1:
            self.count += 1

    def finish_batch(self):
        self.collector.emit(Values(self.id, self.count))

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("tx", "count"))


class MyCommitter(BaseTransactionalBolt, ICommitter):
    db_map = {}

    class DbValue:
        def __init__(self, txid, count, pre_count):
            self.txid = txid
            self.count = count
            self.pre_count = pre_count

    def prepare(self, conf, context, collector, id):
        self.collector = collector
        self.id = id
        self.sum = 0

    def execute(self, tup):
        self.sum += tup.get_integer(1)

    def finish_batch(self):
        value = self.db_map.get(GLOBAL_KEY)
        if value is None or value.txid != self.id.transaction_id:
            before = 0 if value is None else value.count
            self.db_map[GLOBAL_KEY] = self.DbValue(self.id.transaction_id, before + self.sum, before)


def topology():
    builder = TransactionalTopologyBuilder("mytutorial", "spoutid", MyTxSpout(), 1)
    builder.set_bolt("bolt1", MyTransactionBolt(), 3).shuffle_grouping("spoutid")
    builder.set_bolt("committer", MyCommitter(), 1).shuffle_grouping("bolt1")
    return builder.build_topology()


config = Config()
