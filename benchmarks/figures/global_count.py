"""P1: tuples a second of GlobalCount in large batches, against the bare loop."""

from __future__ import annotations

from benchmarks.measuring.bare import BareProcesses, count_loop
from benchmarks.measuring.bench import Bench, alternately
from benchmarks.measuring.settings import BATCH_TUPLES
from benchmarks.topologies.global_count import global_count, stored

PENDING = 256
BATCHES, BARE_BATCHES, SLOW_BATCHES = 512, 256, 128
"""Batches a measurement. Ours are many: filling and emptying the pipeline costs as long as four of them."""


def run(bench: Bench) -> None:
    """Measure P1."""
    batches, bare_batches, slow_batches = (bench.amount(n) for n in (BATCHES, BARE_BATCHES, SLOW_BATCHES))
    with (
        bench.lab.submit(lambda topology_id: global_count(topology_id, BATCH_TUPLES), PENDING) as stream,
        bench.lab.submit(lambda topology_id: global_count(topology_id, BATCH_TUPLES, one_by_one=True), PENDING) as slow,
        BareProcesses(count=count_loop) as bare,
    ):
        bench.say("warming up")
        stream.run(PENDING)
        slow.run(PENDING)
        bare.run("count", bare_batches, BATCH_TUPLES)

        def rate(batches: int, secs: float) -> float:
            return batches * BATCH_TUPLES / secs

        for number in range(bench.repeats):
            ours, theirs, one_by_one = alternately(
                number,
                lambda: stream.run(batches),
                lambda: bare.run("count", bare_batches, BATCH_TUPLES),
                lambda: slow.run(slow_batches),
            )
            bare_rate = rate(bare_batches, theirs)
            secs = [ours, theirs]
            bench.recorder.pair("P1", rate(batches, ours), bare_rate, batches=[batches, bare_batches], secs=secs)
            secs = [one_by_one, theirs]
            amounts = [slow_batches, bare_batches]
            bench.recorder.pair("P1b", rate(slow_batches, one_by_one), bare_rate, batches=amounts, secs=secs)
        assert stored(stream.topology_id) == stream.gate.begun * BATCH_TUPLES
    bench.recorder.note(
        "P1", f"pending {PENDING}, {batches} batches a measurement against {bare_batches}, 2 tasks a component"
    )
