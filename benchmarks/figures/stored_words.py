"""S5: tuples a second of Words by the ready committer into PostgreSQL, against Structured Streaming doing the same."""

from __future__ import annotations

from collections import Counter
from functools import partial

from benchmarks.measuring.bench import Bench, alternately
from benchmarks.measuring.lab import Stream
from benchmarks.measuring.peer_rates import our_rate, their_rate
from benchmarks.measuring.settings import BATCH_TUPLES
from benchmarks.peers.protocol import word_counts
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
        rounds = min(bench.repeats, ROUNDS_MAX)
        for number in range(rounds):
            for key, stream in streams.items():
                bench.say(f"round {number + 1} of {rounds}: {key}")
                ours = partial(our_rate, stream, WARM_UP_BATCHES, bench.amount(BATCHES[key]))
                options = ("--form", FORMS[key], "--dsn", databases.postgresql().dsn)
                theirs = partial(their_rate, bench, PEER, key, number, *options)
                bench.recorder.pair(key, *alternately(number, ours, theirs))
        for key, stream in streams.items():
            _check(stream, stores[key])
    databases.close()
    bench.recorder.note("S5a", "Structured Streaming's start-up and warm-up are not in its time; 1,000 words in all")


def _check(stream: Stream, store: Store) -> None:
    """See that each word counts as often as it was emitted."""
    share = BATCH_TUPLES // 2
    batch = Counter(word_counts(0, share)) + Counter(word_counts(share, share))
    assert counts(store).items() == {word: count * stream.gate.begun for word, count in batch.items()}
