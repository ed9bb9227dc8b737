"""K4: Kafka to Kafka, exactly once: how long a record takes at 10,000 records a second, beside Structured Streaming."""

from __future__ import annotations

import tempfile
from importlib.metadata import version

from benchmarks.figure import percentile, plain
from benchmarks.measuring.bench import Bench, alternately
from benchmarks.measuring.kafka_probe import RATE, RECORD_BYTES, Plan, latencies_ms
from benchmarks.measuring.lab import Stream
from benchmarks.measuring.peer_rates import prepare_peer
from benchmarks.peers import PeerFailed
from benchmarks.peers.running import running
from benchmarks.topologies.kafka import marked_records
from benchmarks.topologies.kafka_records import PARTITIONS

PENDING = 4
WARM_UP_SECS, SECS = 8.0, 12.0
ROUNDS_MAX = 3
"""Each starts the peer once."""
PEER = "kafka_streaming"
STARTED = "the query has started"
MICRO_BATCH, REAL_TIME = "micro-batch", "real-time"


def run(bench: Bench) -> None:
    """Measure K4."""
    prepare_peer(bench, PEER)
    bench.recorder.versions[PEER] = version("pyspark")
    bench.say("starting Kafka")
    source, target = (bench.lab.brokers.topic(PARTITIONS) for _ in range(2))
    servers = bench.lab.brokers.servers
    bench.recorder.note(
        "K4a",
        f"{RATE:,} records of {RECORD_BYTES:,} bytes a second for {SECS:g} s after {WARM_UP_SECS:g} s of warm-up, from "
        "their sending until a reader of committed records has them; Structured Streaming at least once, each "
        "micro-batch right after the last one",
    )
    rounds = min(bench.repeats, ROUNDS_MAX)
    with bench.lab.submit(lambda topology_id: marked_records(topology_id, servers, source, target), PENDING) as stream:
        for number in range(rounds):
            ours, theirs = alternately(
                number,
                lambda: _ours(bench, stream, Plan(servers, source, target, PARTITIONS, WARM_UP_SECS, SECS)),
                lambda: _theirs(bench, MICRO_BATCH),
            )
            our_p50, our_p99, their_p50, their_p99 = (percentile(ms, p) for ms in (ours, theirs) for p in (50, 99))
            bench.recorder.pair("K4a", our_p50, their_p50)
            bench.recorder.pair("K4b", our_p99, their_p50, their_p99=their_p99)
    _note_real_time(bench)
    bench.lab.brokers.close()


def _ours(bench: Bench, stream: Stream, plan: Plan) -> list[float]:
    found = latencies_ms(plan)
    if not stream.handle.running:
        raise RuntimeError("the topology has ended")
    return _told(bench, "Stormline", found)


def _theirs(bench: Bench, trigger: str) -> list[float]:
    brokers = bench.lab.brokers
    source, target = (brokers.topic(PARTITIONS) for _ in range(2))
    bench.say(f"{PEER}, {trigger}: starting")
    with tempfile.TemporaryDirectory(prefix="stormline-bench-", ignore_cleanup_errors=True) as checkpoint:
        arguments = ("copy", brokers.servers, source, target, checkpoint, trigger)
        with running(PEER, arguments, STARTED):
            found = latencies_ms(Plan(brokers.servers, source, target, PARTITIONS, WARM_UP_SECS, SECS))
    return _told(bench, f"{PEER}, {trigger}", found)


def _told(bench: Bench, who: str, found: list[float]) -> list[float]:
    bench.say(f"{who}: p50 {plain(percentile(found, 50))} ms, p99 {plain(percentile(found, 99))} ms")
    return found


def _note_real_time(bench: Bench) -> None:
    """Say what its real-time mode gives, or why it does not run here."""
    try:
        found = _theirs(bench, REAL_TIME)
    except (PeerFailed, RuntimeError) as error:
        bench.recorder.note("K4a", f"its real-time mode did not run: {str(error)[-300:]}")
        return
    p50, p99 = (plain(percentile(found, percent)) for percent in (50, 99))
    bench.recorder.note("K4a", f"its real-time mode, at least once as well: p50 {p50} ms, p99 {p99} ms")
