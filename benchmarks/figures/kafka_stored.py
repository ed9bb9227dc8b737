"""K3: Kafka, counted by key, into PostgreSQL, exactly once, against Structured Streaming with the same promise."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial

from benchmarks.measuring.bench import Bench, alternately
from benchmarks.measuring.lab import Stream
from benchmarks.measuring.recorder import NotAvailable
from benchmarks.measuring.settings import BATCH_TUPLES, PATIENT
from benchmarks.peers import measure_all, prepare
from benchmarks.peers.environments import NotPrepared
from benchmarks.peers.protocol import WORDS, word_counts
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
    bench.say(f"preparing {PEER}")
    try:
        prepare(PEER)
    except NotPrepared as error:
        raise NotAvailable(str(error)) from error
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
                ours = partial(_our_rate, stream, batches[key])
                theirs = partial(_their_rate, bench, key, topic, number)
                bench.recorder.pair(key, *alternately(number, ours, theirs))
        for key, stream in streams.items():
            _check(stream, stores[key])
    bench.lab.brokers.close()
    bench.lab.databases.close()
    bench.recorder.note(
        "K3a",
        f"batches of {BATCH_TUPLES:,} of both; the peer's start-up and warm-up are not in its time; 1,000 keys",
    )


def _our_rate(stream: Stream, batches: int) -> float:
    stream.run(WARM_UP_BATCHES)  # workers that had nothing to do have ended
    return batches * BATCH_TUPLES / stream.run(batches)


def _their_rate(bench: Bench, key: str, topic: str, number: int) -> float:
    dsn = bench.lab.databases.postgresql().dsn
    options = ("--form", FORMS[key], "--dsn", dsn, "--servers", bench.lab.brokers.servers, "--topic", topic)
    (measured,) = measure_all(PEER, [WORDS], *options)
    bench.recorder.peers.append(asdict(measured))
    if number == 0:
        bench.recorder.versions[PEER] = measured.version
        bench.recorder.note(key, f"{PEER}: {measured.notes}")
    return measured.tuples_per_sec


def _check(stream: Stream, store: Store) -> None:
    """See that each key counts as often as it was written."""
    assert counts(store).items() == dict(word_counts(0, stream.gate.begun * BATCH_TUPLES))
