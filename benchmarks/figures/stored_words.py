"""S5: tuples a second of Words by the ready committer into PostgreSQL, against Structured Streaming doing the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import asdict

from benchmarks.measuring.bench import Bench, alternately
from benchmarks.measuring.lab import Stream
from benchmarks.measuring.settings import BATCH_TUPLES
from benchmarks.peers import measure_all
from benchmarks.peers.protocol import WORDS, word_counts
from benchmarks.topologies.stored import counts, stored_words
from stormline.state import Store

PENDING = 64
BATCHES = {"S5a": 64, "S5b": 256}
"""By figure, batches a measurement; `PENDING` of them may be under way."""
FORMS = {"S5a": "row", "S5b": "sql"}
"""How the peer does it: `sql` is its counterpart of record batches, in which no tuple reaches Python."""
ROUNDS_MAX = 3
"""Each starts the peer twice."""
WARM_UP_BATCHES = 8
PEER = "structured_streaming"


def run(bench: Bench) -> None:
    """Measure S5."""
    databases = bench.lab.databases
    bench.say("starting postgresql")
    stores = {key: databases.postgresql() for key in BATCHES}
    with (
        bench.lab.submit(lambda topology_id: stored_words(topology_id, stores["S5a"], BATCH_TUPLES), PENDING) as rows,
        bench.lab.submit(
            lambda topology_id: stored_words(topology_id, stores["S5b"], BATCH_TUPLES, batches=True), PENDING
        ) as columns,
    ):
        streams = {"S5a": rows, "S5b": columns}
        bench.say("warming up")
        for stream in streams.values():
            stream.run(PENDING)
        for number in range(min(bench.repeats, ROUNDS_MAX)):
            for key, stream in streams.items():
                bench.recorder.pair(key, *alternately(number, *_measures(bench, number, key, stream)))
        for key, stream in streams.items():
            _check(stream, stores[key])
    databases.close()
    bench.recorder.note("S5a", "Structured Streaming's start-up and warm-up are not in its time; 1,000 words in all")


def _measures(bench: Bench, number: int, key: str, stream: Stream) -> tuple[Callable[[], float], Callable[[], float]]:
    return lambda: _our_rate(bench, key, stream), lambda: _their_rate(bench, key, number)


def _our_rate(bench: Bench, key: str, stream: Stream) -> float:
    stream.run(WARM_UP_BATCHES)  # workers that had nothing to do have ended
    batches = bench.amount(BATCHES[key])
    return batches * BATCH_TUPLES / stream.run(batches)


def _their_rate(bench: Bench, key: str, number: int) -> float:
    bench.say(f"round {number + 1} of {bench.repeats}: {PEER}, {FORMS[key]}")
    dsn = bench.lab.databases.postgresql().dsn
    (measured,) = measure_all(PEER, [WORDS], "--form", FORMS[key], "--dsn", dsn)
    bench.recorder.peers.append(asdict(measured))
    if number == 0:
        bench.recorder.versions[PEER] = measured.version
        bench.recorder.note(key, f"{PEER}: {measured.notes}")
    return measured.tuples_per_sec


def _check(stream: Stream, store: Store) -> None:
    """See that each word counts as often as it was emitted."""
    share = BATCH_TUPLES // 2
    batch = Counter(word_counts(0, share)) + Counter(word_counts(share, share))
    assert counts(store).items() == {word: count * stream.gate.begun for word, count in batch.items()}
