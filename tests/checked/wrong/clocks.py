"""A spout that is its own coordinator, with an emitter that a method defines."""

import random
import threading
import time

from stormline import BaseBasicBolt, Fields, ITransactionalSpout
from tests.checked import spouts


def stamp():
    return time.time()  # ! unrepeatable-batch


class Ticks(ITransactionalSpout):
    def get_coordinator(self, conf, context):
        self.woken = threading.Event()
        return self

    def get_emitter(self, conf, context):
        class Emitter:
            def emit_batch(self, attempt, metadata, collector):
                emit = collector.emit
                for number in range(metadata):
                    emit([attempt, number, stamp()])
                rows = [[attempt, number, 0] for number in range(3)]
                random.shuffle(rows)  # ! unrepeatable-batch
                row = {"number": 1}
                row.update(at=time.monotonic())  # ! unrepeatable-batch
                collector.emit_all([*rows, [attempt, *row.values()]])

            def cleanup_before(self, txid):
                pass

            def close(self):
                pass

        return Emitter()

    def is_ready(self):
        time.sleep(0.1)  # ! sleeping-is-ready
        self.woken.wait(1)  # ! sleeping-is-ready
        return True

    def initialize_transaction(self, txid, prev_metadata):
        return int(time.time()) % 10

    def close(self):
        pass

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("tx", "number", "at"))


class Sink(BaseBasicBolt):
    def execute(self, tup, collector):
        pass


def topology():
    return spouts.chain("clocks", Sink(), spout=Ticks())
