"""Emitters that give the same tuples again: what is drawn stands in the metadata, or comes of a seed."""

import logging
import random
import tempfile
import time
import uuid

import numpy as np

from stormline import BaseBasicBolt, Fields, IPartitionedTransactionalSpout, ITransactionalSpout
from tests.checked import spouts

log = logging.getLogger(__name__)
RNG = random.Random(1)
ROWS = [RNG.random() for _ in range(100)]


class Drawn(ITransactionalSpout):
    emits_on_executors = True

    class Coordinator:
        def __init__(self):
            self.asked_at = 0.0

        def is_ready(self):
            self.asked_at = time.monotonic()
            return random.random() < 2

        def initialize_transaction(self, txid, prev_metadata):
            time.sleep(0)
            return {"seed": random.getrandbits(64), "at": time.time(), "id": str(uuid.uuid4())}

        def close(self):
            pass

    class Emitter:
        def __init__(self):
            self._rows = None
            self._key = None

        def emit_batch(self, attempt, metadata, collector):
            begun = time.time()
            rng = random.Random(metadata["seed"])
            key = metadata["id"]
            if self._rows is None or self._key != key:
                self._key, self._rows = key, list(ROWS)
            self.batch = []
            for row in self._rows:
                self.batch.append([attempt, row, rng.random(), metadata["at"]])
            collector.emit_all(self.batch)
            log.info("emitted in %.3f s", time.time() - begun)

        def cleanup_before(self, txid):
            pass

        def close(self):
            self._rows = None

    def get_coordinator(self, conf, context):
        return Drawn.Coordinator()

    def get_emitter(self, conf, context):
        return Drawn.Emitter()

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("tx", "row", "drawn", "at"))


class Partitioned(IPartitionedTransactionalSpout):
    """One that draws when a batch is new, and keeps state and a file where it lives: in the driver."""

    def __init__(self, take):
        self.take = take
        self.positions = np.memmap(f"{tempfile.mkdtemp()}/positions", dtype="int64", mode="w+", shape=2)

    def get_coordinator(self, conf, context):
        return self

    def get_emitter(self, conf, context):
        return self

    def num_partitions(self):
        return 1

    def is_ready(self):
        return True

    def emit_partition_batch_new(self, attempt, collector, partition, last_metadata):
        self.calls = getattr(self, "calls", 0) + 1
        at = time.time()
        deadline = time.monotonic() + 1
        numbers = []
        while time.monotonic() < deadline and len(numbers) < self.take:
            numbers.append(random.randrange(10))
        for number in numbers:
            collector.emit([attempt, number, at])
        return {"numbers": numbers, "at": at}

    def emit_partition_batch(self, attempt, collector, partition, metadata):
        for number in metadata["numbers"]:
            collector.emit([attempt, number, metadata["at"]])

    def close(self):
        pass

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("tx", "number", "at"))


class Sink(BaseBasicBolt):
    def execute(self, tup, collector):
        pass


def topology():
    return spouts.chain("emitting", Sink(), spout=Drawn())


def partitioned():
    return spouts.chain("partitioned", Sink(), spout=Partitioned(3))
