"""A committer as strangers write it, and the maps of the store that it uses."""

from __future__ import annotations

from collections import Counter
from typing import Any

from stormline import BaseTransactionalBolt, ICommitter, MemoryTransactionalSpout, TransactionalTopologyBuilder
from stormline.state import MemoryStore, NonTransactionalMap, OpaqueMap, TransactionalMap
from stormline.testing import InProcessCluster
from stormline.topology.config import MAX_SPOUT_PENDING

STORE = MemoryStore("strangers", timeout_secs=0.2)
WORDS = TransactionalMap(STORE, "words", key={"word": str}, value={"count": int})
REMEMBERED = TransactionalMap(STORE, "words", key={"word": str}, value={"count": int}, cache=100)
OPAQUE = OpaqueMap(STORE, "opaque", key={"word": str}, value={"count": int})
PLAIN = NonTransactionalMap(STORE, "plain", key={"word": str}, value={"count": int})
LISTS = TransactionalMap(STORE, "lists", key={"word": str}, value={"txids": object})
DATA = {0: ["cat", "dog", "owl"] * 6, 1: ["dog", "cat"] * 9}
EXPECTED = dict(Counter(word for words in DATA.values() for word in words))
BATCHES = 6


class Stranger(BaseTransactionalBolt, ICommitter):
    """Executes at the commit, where it declares no gathers."""

    def prepare(self, conf: Any, context: Any, collector: Any, attempt: Any) -> None:
        self.context, self.attempt, self.collector = context, attempt, collector
        self.seen: Counter[str] = Counter()

    def execute(self, tup: Any) -> None:
        self.seen[tup[1]] += 1

    def finish_batch(self) -> None:
        WORDS.begin_commit(self.context, self.attempt).increment(self.seen)

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(["tx", "word"])


def run(*bolts: Any, parallelism: int = 1) -> None:
    """Run a topology of committers, or of bolts that are none, side by side."""
    builder = TransactionalTopologyBuilder("strange", "spout", MemoryTransactionalSpout(DATA, ["word"], 3), 2)
    for i, bolt in enumerate(bolts):
        builder.set_bolt(f"bolt-{i}", bolt, parallelism).fields_grouping("spout", ["word"])
    with InProcessCluster() as cluster, cluster.submit(builder.build_topology(), {MAX_SPOUT_PENDING: 2}) as handle:
        handle.await_drained(60)
