"""State that bolts write, and which each Python worker has for itself."""

import heapq
import itertools
import logging
from collections import Counter, defaultdict
from types import SimpleNamespace

from shoplib import CACHE

from stormline import BaseBasicBolt, BaseBatchBolt, Fields, TransactionalTopologyBuilder, Values
from tests.checked import spouts
from tests.checked.wrong import helpers
from tests.checked.wrong.helpers import SEEN, Tally, count_word

log = logging.getLogger(__name__)
TOTAL = 0
COUNTS = defaultdict(int)
BY_LENGTH = defaultdict(list)
STATE = SimpleNamespace(last=None)
TALLY = Tally()
TOP = []
IDS = itertools.count(1)
LONGEST = {}


class Forwarding(BaseBasicBolt):
    def declare_output_fields(self, declarer):
        declarer.declare(Fields("id", "word"))


class GlobalStatement(Forwarding):
    def execute(self, tup, collector):
        global TOTAL
        TOTAL += 1  # ! static-state
        collector.emit(Values(tup[0], TOTAL))


class Containers(Forwarding):
    def execute(self, tup, collector):
        word = tup.get_string(1)
        COUNTS[word] += 1  # ! static-state
        BY_LENGTH[len(word)].append(word)  # ! static-state
        STATE.last = word  # ! static-state
        heapq.heappush(TOP, word)  # ! static-state
        helpers.LATEST = word  # ! static-state
        LONGEST[tup["user_id"]] = tup["id"]  # ! static-state
        if word in COUNTS:
            COUNTS[word] = COUNTS[word] + 1  # ! static-state
        LONGEST[word[0]] = max(word, LONGEST.get(word[0], ""))  # ! static-state
        CACHE.setdefault("words", []).append(word)  # ! static-state
        log.debug("took %s", word)
        collector.emit(Values(tup[0], f"{word}-{next(IDS)}"))  # ! static-state


class ByHelper(Forwarding):
    def execute(self, tup, collector):
        count_word(tup.get_string(1))
        helpers.remember(tup.get_string(1))
        TALLY.add(tup.get_string(1))
        if tup.get_string(1) not in SEEN:
            SEEN.add(tup.get_string(1))  # ! static-state
            collector.emit(list(tup))


class OfClass(Forwarding):
    totals = Counter()
    count = 0
    instances = 0

    def prepare(self, conf, context):
        OfClass.instances += 1  # ! static-state
        self.mine = 0

    def execute(self, tup, collector):
        self.totals[tup[1]] += 1  # ! static-state
        self.count += 1
        self.mine += 1
        type(self).count += 1  # ! static-state
        self.__class__.count = self.count + 1  # ! static-state
        OfClass.totals.update([tup[1]])  # ! static-state
        self._note(tup[1])
        collector.emit(list(tup))

    @classmethod
    def _note(cls, word):
        cls.last = word  # ! static-state


class Outer:
    class Nested(BaseBatchBolt):
        def prepare(self, conf, context, collector, batch_id):
            self.collector, self.id = collector, batch_id
            self.counts = COUNTS

        def execute(self, tup):
            self.counts[tup[1]] += 1  # ! static-state

        def finish_batch(self):
            self.collector.emit(Values(self.id, len(self.counts)))
            setattr(STATE, "last", self.id)  # ! static-state

        def declare_output_fields(self, declarer):
            declarer.declare(Fields("id", "count"))


def made_here():
    seen = []

    class Closed(Forwarding):
        def execute(self, tup, collector, gathered=[]):
            seen.append(tup[1])  # ! static-state
            gathered.append(tup[1])  # ! static-state
            collector.emit(list(tup))

    return Closed()


class ByLambda(Forwarding):
    execute = lambda self, tup, collector: TOP.append(tup[1])  # ! static-state


def topology():
    builder = TransactionalTopologyBuilder("state-of-modules", "words", spouts.words(), 1)
    bolts = [GlobalStatement(), Containers(), ByHelper(), OfClass(), Outer.Nested(), made_here(), ByLambda()]
    for index, bolt in enumerate(bolts):
        builder.set_bolt(f"bolt-{index}", bolt).shuffle_grouping("words")
    return builder
