"""K5: transactions a second of the Kafka committer, one by one and in groups, against a bare transactional producer."""

from __future__ import annotations

from statistics import median
from typing import Any

from benchmarks.measuring.bare_transactions import BareTransactions
from benchmarks.measuring.bench import Bench, alternately
from benchmarks.measuring.kafka_records_read import read_to_end
from benchmarks.measuring.settings import PENDING_SMALL
from benchmarks.topologies.kafka import written_words
from benchmarks.topologies.synthetic import words

BATCH_TUPLES = 10
SINGLE, GROUPED, BARE = 2 * PENDING_SMALL, 8 * PENDING_SMALL, 500
"""Transactions a measurement."""
GROUP_MAX = "topology.commit.group.max"


def run(bench: Bench) -> None:
    """Measure K5."""
    single, grouped, alone = (bench.amount(number) for number in (SINGLE, GROUPED, BARE))
    bench.say("starting Kafka")
    servers = bench.lab.brokers.servers
    topics = [bench.lab.brokers.topic(1) for _ in range(5)]

    def submit(topic: str, config: dict[str, Any]) -> Any:
        return bench.lab.submit(
            lambda topology_id: written_words(topology_id, servers, topic, BATCH_TUPLES), PENDING_SMALL, config
        )

    values = [word.encode() for word in words(0, BATCH_TUPLES)]
    bare = BareTransactions(servers, topics[2])
    with_ledger = BareTransactions(servers, topics[3], topics[4])
    ledger_costs: list[float] = []
    with submit(topics[0], {GROUP_MAX: 1}) as one_by_one, submit(topics[1], {}) as in_groups:
        bench.say("warming up")
        one_by_one.run(PENDING_SMALL)
        in_groups.run(2 * PENDING_SMALL)
        bare.run(alone, values)
        with_ledger.run(alone, values)
        for number in range(bench.repeats):
            ours, together, theirs, theirs_with_ledger = alternately(
                number,
                lambda: one_by_one.run(single),
                lambda: in_groups.run(grouped),
                lambda: bare.run(alone, values),
                lambda: with_ledger.run(alone, values),
            )
            rate = alone / theirs
            ledger_costs.append(theirs_with_ledger / theirs)
            bench.recorder.pair("K5a", single / ours, rate, amounts=[single, alone])
            bench.recorder.pair("K5b", grouped / together, rate, amounts=[grouped, alone])
        for topic, stream in ((topics[0], one_by_one), (topics[1], in_groups)):
            written = [message.value() for message in read_to_end(servers, topic)]
            assert sorted(written) == sorted(values * stream.gate.begun), (len(written), stream.gate.begun)
    bench.lab.brokers.close()
    bench.recorder.note(
        "K5a",
        f"pending {PENDING_SMALL}; {BATCH_TUPLES} records a transaction; ours writes its ledger's record besides, the "
        f"bare producer does not: with one it takes {median(ledger_costs):.2f} times as long. Ours also waits for "
        "ZooKeeper's record of each before the next begins",
    )
