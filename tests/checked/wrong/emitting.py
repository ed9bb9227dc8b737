"""A spout whose coordinator sleeps, and whose replays give other tuples."""

import datetime as dt
import random
import time
import uuid
from random import choice as pick
from time import sleep as nap

from stormline import BaseBasicBolt, Fields, IPartitionedTransactionalSpout
from tests.checked import spouts

RNG = random.Random(7)


def now():
    return time.time()  # ! unrepeatable-batch


class Words(IPartitionedTransactionalSpout):
    class Coordinator:
        def is_ready(self):
            nap(1)  # ! sleeping-is-ready
            self._wait()
            return True

        def _wait(self):
            time.sleep(0.5)  # ! sleeping-is-ready

        def num_partitions(self):
            return 2

        def close(self):
            pass

    class Emitter:
        def __init__(self, seed):
            self.rng = random.Random(seed)

        def emit_partition_batch_new(self, attempt, collector, partition, last):
            metadata = {"from": (last or {}).get("from", 0) + 10}
            self.emit_partition_batch(attempt, collector, partition, metadata)
            return metadata

        def emit_partition_batch(self, attempt, collector, partition, metadata):
            rows = []
            for number in range(metadata["from"], metadata["from"] + 10):
                word = pick(["a", "b"])  # ! unrepeatable-batch
                rows.append([attempt, word, now(), number])
            for row in rows:
                collector.emit(row)
            collector.emit([attempt, str(uuid.uuid4()), dt.datetime.now(), 0])  # ! unrepeatable-batch
            collector.emit([attempt, self.rng.random(), 0, 0])  # ! unrepeatable-batch
            collector.emit([attempt, RNG.randint(1, 6), 0, 0])  # ! unrepeatable-batch
            if random.random() < 0.1:  # ! unrepeatable-batch
                collector.emit([attempt, "sampled", 0, 0])

        def close(self):
            pass

    def get_coordinator(self, conf, context):
        return self.Coordinator()

    def get_emitter(self, conf, context):
        emitter = Words.Emitter(conf.get("seed"))
        return emitter

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("tx", "word", "at", "number"))


class Sink(BaseBasicBolt):
    def execute(self, tup, collector):
        pass


def topology():
    return spouts.chain("emitting", Sink(), spout=Words())
