"""A BasicBolt downstream of a committer works in the commit phase, and in the processing phase on what reaches it."""

from __future__ import annotations

from stormline import (
    BaseBasicBolt,
    BaseTransactionalBolt,
    Fields,
    MemoryTransactionalSpout,
    TopologyContext,
    TransactionalTopologyBuilder,
    TransactionAttempt,
    Tuple,
)
from stormline.runtime.cluster.in_process_cluster import InProcessCluster
from stormline.topology.contracts import Collector, Conf
from stormline.topology.streams import OutputFieldsDeclarer

SEEN: dict[int, list[tuple[str, str]]] = {}


class Gather(BaseTransactionalBolt):
    def prepare(self, conf: Conf, context: TopologyContext, collector: Collector, batch_id: TransactionAttempt) -> None:
        self.collector = collector
        self.attempt = batch_id
        self.seen: list[tuple[str, str]] = []

    def execute(self, tup: Tuple) -> None:
        self.seen.append((tup["word"], tup["by"] if tup.contains("by") else ""))

    def finish_batch(self) -> None:
        for word, by in self.seen:
            self.collector.emit([self.attempt, word, f"{by}gathered"])

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("tx", "word", "by"))


class Shout(BaseBasicBolt):
    def prepare(self, conf: Conf, context: TopologyContext) -> None:
        self.mark = "!"

    def execute(self, tup: Tuple, collector: Collector) -> None:
        by = tup["by"] if tup.contains("by") else "early"
        collector.emit([tup[0], tup["word"].upper() + self.mark, by])

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("tx", "word", "by"))


class Store(Gather):
    def finish_batch(self) -> None:
        SEEN[self.attempt.transaction_id] = self.seen


def test_a_basic_bolt_between_two_committers_takes_part_in_both_phases() -> None:
    SEEN.clear()
    spout = MemoryTransactionalSpout({0: ["a", "b", "c"]}, ["word"], 2)
    builder = TransactionalTopologyBuilder("t", "spout", spout)
    builder.set_committer_bolt("gather", Gather()).global_grouping("spout")
    builder.set_bolt("shout", Shout(), 2).shuffle_grouping("gather").shuffle_grouping("spout")
    builder.set_committer_bolt("store", Store()).global_grouping("shout")
    with InProcessCluster() as cluster:
        cluster.submit_topology("t", {}, builder.build_topology()).await_drained(20)
    early, late = [{(word, by) for word in ("A!", "B!")} for by in ("early", "gathered")]
    assert (len(SEEN[1]), set(SEEN[1])) == (4, early | late)
    assert sorted(SEEN[2]) == [("C!", "early"), ("C!", "gathered")]
