"""P2: tuples a second of Words in large batches, against the bare loop."""

from __future__ import annotations

from benchmarks.measuring.bare import BareProcesses, words_loop
from benchmarks.measuring.bench import Bench, alternately
from benchmarks.measuring.settings import BATCH_TUPLES, PENDING
from benchmarks.topologies.words import stored, words

BATCHES = 128


def run(bench: Bench) -> None:
    """Measure P2."""
    batches = bench.amount(BATCHES)
    tuples = batches * BATCH_TUPLES
    with (
        bench.lab.submit(lambda topology_id: words(topology_id, BATCH_TUPLES), PENDING) as stream,
        BareProcesses(words=words_loop) as bare,
    ):
        bench.say("warming up")
        stream.run(PENDING)
        bare.run("words", PENDING, BATCH_TUPLES)
        for number in range(bench.repeats):
            ours, theirs = alternately(
                number, lambda: stream.run(batches), lambda: bare.run("words", batches, BATCH_TUPLES)
            )
            bench.recorder.pair("P2", tuples / ours, tuples / theirs, tuples=tuples, secs=[ours, theirs])
        assert stored(stream.topology_id) == stream.gate.begun * BATCH_TUPLES
    bench.recorder.note("P2", f"pending {PENDING}, {batches} batches a measurement, 1,000 distinct words")
