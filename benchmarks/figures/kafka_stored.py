"""K3: Kafka, counted by key, into PostgreSQL, exactly once, against Structured Streaming with the same promise."""

from __future__ import annotations

from functools import partial

from benchmarks.measuring.bench import Bench, alternately
from benchmarks.measuring.lab import Stream
from benchmarks.measuring.peer_rates import our_rate, prepare_peer, their_rate
from benchmarks.measuring.settings import BATCH_TUPLES, PATIENT
from benchmarks.peers.protocol import word_counts
from benchmarks.topologies.kafka import counted_keys
from benchmarks.topologies.kafka_records import PARTITIONS
from benchmarks.topologies.stored import counts
from stormline.state import Store

PENDING = 16
BATCHES = {"K3a": 24, "K3b": 32}
"""By figure, batches a measurement."""
FORMS = {"K3a": "row", "K3b": "sql"}
"""How the peer does it: in `sql` no record reaches its Python."""
ROUNDS_MAX = 3
"""Each starts the peer twice."""
WARM_UP_BATCHES = 4
PEER = "kafka_streaming"


def run(bench: Bench) -> None:
    """Measure K3."""
    rounds = min(bench.repeats, ROUNDS_MAX)
    batches = {key: bench.amount(number) for key, number in BATCHES.items()}
    prepare_peer(bench, PEER)
    bench.say("starting Kafka and PostgreSQL")
    stores = {key: bench.lab.databases.postgresql() for key in BATCHES}
    servers, topic = bench.lab.brokers.servers, bench.lab.brokers.topic(PARTITIONS)
    needed = (PENDING + rounds * (WARM_UP_BATCHES + max(batches.values()))) * BATCH_TUPLES
    bench.say(f"writing {needed:,} records")
    bench.lab.brokers.fill(topic, needed)

    def submit(key: str) -> Stream:
        return bench.lab.submit(
            lambda topology_id: counted_keys(
                topology_id, servers, topic, BATCH_TUPLES, stores[key], batches=key == "K3b"
            ),
            PENDING,
            PATIENT,
        )

    with submit("K3a") as rows, submit("K3b") as columns:
        streams = {"K3a": rows, "K3b": columns}
        bench.say("warming up")
        for stream in streams.values():
            stream.run(PENDING)
        for number in range(rounds):
            for key, stream in streams.items():
                bench.say(f"round {number + 1} of {rounds}: {key}")
                ours = partial(our_rate, stream, WARM_UP_BATCHES, batches[key])
                dsn = bench.lab.databases.postgresql().dsn
                options = ("--form", FORMS[key], "--dsn", dsn, "--servers", servers, "--topic", topic)
                theirs = partial(their_rate, bench, PEER, key, number, *options)
                bench.recorder.pair(key, *alternately(number, ours, theirs))
        for key, stream in streams.items():
            _check(stream, stores[key])
    bench.lab.brokers.close()
    bench.lab.databases.close()
    bench.recorder.note(
        "K3a",
        f"batches of {BATCH_TUPLES:,} of both; the peer's start-up and warm-up are not in its time; 1,000 keys",
    )


def _check(stream: Stream, store: Store) -> None:
    """See that each key counts as often as it was written."""
    assert counts(store).items() == dict(word_counts(0, stream.gate.begun * BATCH_TUPLES))
