"""K1, K2: records a second from Kafka, counted as rows and as record batches, against bare loops."""

from __future__ import annotations

from functools import partial

from benchmarks.measuring.bare import BareProcesses
from benchmarks.measuring.bare_kafka import count_columns_loop, count_records_loop
from benchmarks.measuring.bench import Bench, alternately
from benchmarks.measuring.settings import BATCH_TUPLES, PATIENT
from benchmarks.topologies.global_count import stored
from benchmarks.topologies.kafka import counted_records
from benchmarks.topologies.kafka_records import PARTITIONS

PENDING = 16
BATCHES = 32
"""Batches a measurement."""
WARM_UP = 64
"""Batches before the first one, four waves: until then Java compiles."""
LOOPS = {"K1": count_records_loop, "K2": count_columns_loop}


def run(bench: Bench) -> None:
    """Measure those of K1 and K2 that are asked for."""
    bench.say("starting Kafka")
    servers, topic = bench.lab.brokers.servers, bench.lab.brokers.topic(PARTITIONS)
    needed = (bench.amount(WARM_UP) + bench.repeats * bench.amount(BATCHES)) * BATCH_TUPLES
    bench.say(f"writing {needed:,} records")
    bench.lab.brokers.fill(topic, needed)
    with BareProcesses(**{key: partial(loop, servers, topic) for key, loop in LOOPS.items()}) as bare:
        for key in filter(bench.recorder.wants, LOOPS):
            _measure(bench, key, topic, bare)
    bench.lab.brokers.close()


def _measure(bench: Bench, key: str, topic: str, bare: BareProcesses) -> None:
    batches, servers = bench.amount(BATCHES), bench.lab.brokers.servers
    records = batches * BATCH_TUPLES
    with bench.lab.submit(
        lambda topology_id: counted_records(topology_id, servers, topic, BATCH_TUPLES, batches=key == "K2"),
        PENDING,
        PATIENT,
    ) as stream:
        bench.say(f"{key}: warming up")
        stream.run(bench.amount(WARM_UP))
        bare.run(key, bench.amount(WARM_UP), BATCH_TUPLES)
        for number in range(bench.repeats):
            ours, theirs = alternately(
                number, lambda: stream.run(batches), lambda: bare.run(key, batches, BATCH_TUPLES)
            )
            bench.recorder.pair(key, records / ours, records / theirs, records=records, secs=[ours, theirs])
        assert stored(stream.topology_id) == stream.gate.begun * BATCH_TUPLES
    bench.recorder.note(
        key, f"pending {PENDING}, {batches} batches of {BATCH_TUPLES:,} a measurement, {PARTITIONS} partitions"
    )
