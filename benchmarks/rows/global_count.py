"""P1: tuples a second of GlobalCount in large batches, against the bare loop."""

from __future__ import annotations

from benchmarks.bare import BareProcesses, count_loop
from benchmarks.bench import Bench, alternately
from benchmarks.settings import BATCH_TUPLES, PENDING
from benchmarks.topologies.global_count import global_count, stored

BATCHES = 256


def run(bench: Bench) -> None:
    """Measure P1."""
    batches = bench.amount(BATCHES)
    tuples = batches * BATCH_TUPLES
    with (
        bench.lab.submit(lambda topology_id: global_count(topology_id, BATCH_TUPLES), PENDING) as stream,
        bench.lab.submit(lambda topology_id: global_count(topology_id, BATCH_TUPLES, one_by_one=True), PENDING) as slow,
        BareProcesses(count=count_loop) as bare,
    ):
        bench.say("warming up")
        stream.run(PENDING)
        slow.run(PENDING)
        bare.run("count", PENDING, BATCH_TUPLES)
        for number in range(bench.repeats):
            ours, theirs, one_by_one = alternately(
                number,
                lambda: stream.run(batches),
                lambda: bare.run("count", batches, BATCH_TUPLES),
                lambda: slow.run(batches),
            )
            bench.recorder.pair("P1", tuples / ours, tuples / theirs, tuples=tuples, secs=[ours, theirs])
            bench.recorder.pair("P1b", tuples / one_by_one, tuples / theirs, tuples=tuples, secs=[one_by_one, theirs])
        assert stored(stream.topology_id) == stream.gate.begun * BATCH_TUPLES
    bench.recorder.note("P1", f"pending {PENDING}, {batches} batches a measurement, 2 tasks a component")
