"""A committer spout on a queue that hands each message out once: the emitter remembers its batches and acks them.

What was taken and not acknowledged is nobody else's, so a replay comes from the emitter's memory, and only `commit`
lets the queue forget.
"""

import threading
from collections import deque

from stormline import (
    BaseTransactionalBolt,
    Fields,
    ICommitter,
    ICommitterTransactionalSpout,
    ITransactionalSpout,
    TransactionalTopologyBuilder,
    Values,
)

TAKE = 6
RECEIVED = []


class Queue:
    """A message broker's queue; its channel is for one client."""

    def __init__(self):
        self.lock = threading.Lock()
        self.waiting = deque()
        self.unacked = {}
        self.acked = []

    def publish(self, messages):
        self.waiting.extend(enumerate(messages))

    def take(self, most):
        with self.lock:
            taken = [self.waiting.popleft() for _ in range(min(most, len(self.waiting)))]
            self.unacked.update(taken)
            return taken

    def ack(self, tag):
        with self.lock:
            self.acked.append(self.unacked.pop(tag))


QUEUE = Queue()


class QueueSpout(ITransactionalSpout, ICommitterTransactionalSpout):
    class Coordinator:
        def initialize_transaction(self, txid, prev_metadata):
            return None

        def is_ready(self):
            return bool(QUEUE.waiting)

        def close(self):
            pass

    class Emitter:
        def __init__(self):
            self.queue = QUEUE
            self.batches = {}
            self.acked = set()

        def emit_batch(self, tx, metadata, collector):
            if tx.transaction_id not in self.batches:
                self.batches[tx.transaction_id] = self.queue.take(TAKE)
            for _, message in self.batches[tx.transaction_id]:
                collector.emit(Values(tx, message))

        def commit(self, attempt):
            for tag, _ in self.batches[attempt.transaction_id]:
                if tag not in self.acked:
                    self.queue.ack(tag)
                    self.acked.add(tag)

        def cleanup_before(self, txid):
            for old in [old for old in self.batches if old < txid]:
                self.acked.difference_update(tag for tag, _ in self.batches.pop(old))

        def close(self):
            pass

    def get_coordinator(self, conf, context):
        return self.Coordinator()

    def get_emitter(self, conf, context):
        return self.Emitter()

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("tx", "message"))


class Receive(BaseTransactionalBolt, ICommitter):
    def prepare(self, conf, context, collector, id):
        self.id = id
        self.messages = []

    def execute(self, tup):
        self.messages.append(tup.get_string(1))

    def finish_batch(self):
        if not RECEIVED or RECEIVED[-1][0] != self.id.transaction_id:
            RECEIVED.append((self.id.transaction_id, self.messages))


def topology():
    builder = TransactionalTopologyBuilder("queue", "spout", QueueSpout(), 2)
    builder.set_bolt("receive", Receive()).global_grouping("spout")
    return builder.build_topology()
