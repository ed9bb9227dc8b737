"""Rates of a stream of ours, and of a peer that does the same in a process of its own, for one figure."""

from __future__ import annotations

from benchmarks.measuring.bench import Bench
from benchmarks.measuring.lab import Stream
from benchmarks.measuring.recorder import NotAvailable
from benchmarks.measuring.settings import BATCH_TUPLES
from benchmarks.peers import measure_all, prepare
from benchmarks.peers.environments import NotPrepared
from benchmarks.peers.protocol import WORDS


def prepare_peer(bench: Bench, peer: str) -> None:
    """Get what a peer needs, if it is not there yet.

    Raises:
        NotAvailable: it cannot be had.
    """
    bench.say(f"preparing {peer}")
    try:
        prepare(peer)
    except NotPrepared as error:
        raise NotAvailable(str(error)) from error


def our_rate(stream: Stream, warm_up_batches: int, batches: int) -> float:
    """Return the tuples a second of so many batches."""
    stream.run(warm_up_batches)  # workers that had nothing to do have ended
    return batches * BATCH_TUPLES / stream.run(batches)


def their_rate(bench: Bench, peer: str, key: str, number: int, *options: str) -> float:
    """Return the tuples a second of a peer's words in the round `number`, and take down what it tells."""
    (measured,) = measure_all(peer, [WORDS], *options)
    bench.recorder.told_by(measured, key, number == 0)
    return measured.tuples_per_sec
