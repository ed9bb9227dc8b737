"""A committer that parses in a thread of its own, which it joins before it writes."""

import json
import queue
import threading

from stormline import (
    BaseTransactionalBolt,
    Fields,
    ICommitter,
    MemoryTransactionalSpout,
    TransactionalTopologyBuilder,
)

EVENTS = [json.dumps({"user": f"user{number % 11}", "seconds": number}) for number in range(130)]
TAKE_PER_BATCH = 8
DATABASE = {}
END = None


class SumSeconds(BaseTransactionalBolt, ICommitter):
    def prepare(self, conf, context, collector, id):
        self.id = id
        self.seconds = {}
        self.lines = queue.Queue()
        self.parser = threading.Thread(target=self.parse, daemon=True)
        self.parser.start()

    def parse(self):
        while (line := self.lines.get()) is not END:
            event = json.loads(line)
            self.seconds[event["user"]] = self.seconds.get(event["user"], 0) + event["seconds"]

    def execute(self, tup):
        self.lines.put(tup.get_string(1))

    def finish_batch(self):
        self.lines.put(END)
        self.parser.join()
        for user, seconds in self.seconds.items():
            stored, txid = DATABASE.get(user, (0, None))
            if txid != self.id.transaction_id:
                DATABASE[user] = (stored + seconds, self.id.transaction_id)


def topology():
    spout = MemoryTransactionalSpout({0: EVENTS[::2], 1: EVENTS[1::2]}, Fields("line"), TAKE_PER_BATCH)
    builder = TransactionalTopologyBuilder("seconds", "spout", spout, 2)
    builder.set_bolt("sum", SumSeconds()).global_grouping("spout")
    return builder.build_topology()
