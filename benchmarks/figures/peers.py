"""P4, P5, P6: the same work on other engines. In each round ours is measured once, and then every peer.

A peer that fails costs its own figures only.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Mapping
from typing import Any

from benchmarks.figure import Status
from benchmarks.measuring.bench import Bench, alternately
from benchmarks.measuring.lab import Stream
from benchmarks.measuring.recorder import NotAvailable
from benchmarks.measuring.settings import BATCH_TUPLES, PENDING, PENDING_SMALL
from benchmarks.topologies.global_count import global_count, small_batches
from benchmarks.topologies.words import words

COUNT, WORDS, SMALL = "global_count", "words", "small_batches"
BATCHES: Mapping[str, int] = {COUNT: 128, WORDS: 128, SMALL: 6 * PENDING_SMALL}

WARM_UP_BATCHES = 8
"""Run before each measurement of ours: Spark ends Python workers that have had nothing to do for a minute, as while a
peer is measured, and start-up is nobody's figure here."""

FIGURES: Mapping[str, tuple[str, str]] = {
    "P4a": ("structured_streaming", COUNT),
    "P4b": ("structured_streaming", SMALL),
    "P5a": ("bytewax", COUNT),
    "P5b": ("bytewax", WORDS),
    "P5c": ("pyflink", COUNT),
    "P5d": ("pyflink", WORDS),
    "P6a": ("storm", COUNT),
    "P6b": ("storm", WORDS),
    "P6c": ("storm", SMALL),
}
"""By figure: the peer, and the work."""


def rate(work: str, tuples: int, batches: int, secs: float) -> float:
    """Return what a work's figure is: batches a second of small batches, else tuples a second."""
    return (batches if work == SMALL else tuples) / secs


def run(bench: Bench) -> None:
    """Measure those of P4, P5 and P6 that are asked for."""
    try:
        peers = importlib.import_module("benchmarks.peers")
    except ImportError as error:
        raise NotAvailable(f"benchmarks.peers: {error}") from error
    for peer in dict.fromkeys(peer for key, (peer, _) in FIGURES.items() if bench.recorder.wants(key)):
        bench.say(f"preparing {peer}")
        try:
            peers.prepare(peer)
        except Exception as error:
            _give_up(bench, peer, None, error)
    if not _wanted(bench):
        return
    submit = bench.lab.submit
    with (
        submit(lambda topology_id: global_count(topology_id, BATCH_TUPLES), PENDING) as counting,
        submit(lambda topology_id: words(topology_id, BATCH_TUPLES), PENDING) as wording,
        submit(small_batches, PENDING_SMALL) as small,
    ):
        streams = {COUNT: counting, WORDS: wording, SMALL: small}
        bench.say("warming up")
        counting.run(PENDING)
        wording.run(PENDING)
        small.run(4 * PENDING_SMALL)
        took: dict[str, list[float]] = {}
        for number in range(bench.repeats):
            _round(bench, number, streams, peers, took)
    for peer, secs in took.items():
        _note_time(bench, peer, secs)


def _wanted(bench: Bench) -> dict[str, tuple[str, str]]:
    return {key: what for key, what in FIGURES.items() if bench.recorder.wants(key)}


def _round(bench: Bench, number: int, streams: Mapping[str, Stream], peers: Any, took: dict[str, list[float]]) -> None:
    wanted = _wanted(bench)
    works = list(dict.fromkeys(work for _, work in wanted.values()))
    taken: dict[str, Any] = {}

    def ours() -> dict[str, float]:
        return {work: _our_rate(bench, work, streams[work]) for work in works}

    def theirs() -> None:
        for peer in dict.fromkeys(peer for peer, _ in wanted.values()):
            keys = {work: key for key, (its_peer, work) in wanted.items() if its_peer == peer}
            bench.say(f"round {number + 1} of {bench.repeats}: {peer}, {', '.join(keys)}")
            begun = time.monotonic()
            try:
                for measurement in peers.measure_all(peer, list(keys)):
                    taken[keys[measurement.work]] = measurement
            except Exception as error:
                for work in keys.keys() - {taken[key].work for key in keys.values() if key in taken}:
                    _give_up(bench, peer, work, error)
            took.setdefault(peer, []).append(time.monotonic() - begun)

    rates, _ = alternately(number, ours, theirs)
    assert rates is not None
    for key, measurement in taken.items():
        _, work = wanted[key]
        bench.recorder.told_by(measurement, key, number == 0)
        theirs_rate = rate(work, measurement.tuples, measurement.batches, measurement.secs)
        bench.recorder.pair(key, rates[work], theirs_rate, tuples=measurement.tuples, batches=measurement.batches)


def _note_time(bench: Bench, peer: str, secs: list[float]) -> None:
    """Say with a peer's first figure how long all its starts took."""
    figures = bench.recorder.figures
    for key in [key for key, (its_peer, _) in FIGURES.items() if its_peer == peer and figures[key].pairs][:1]:
        bench.recorder.note(key, f"{peer}: {len(secs)} starts took {sum(secs):.0f} s, start-up and warm-up included")


def _our_rate(bench: Bench, work: str, stream: Stream) -> float:
    stream.run(WARM_UP_BATCHES)
    batches = bench.amount(BATCHES[work])
    return rate(work, batches * BATCH_TUPLES, batches, stream.run(batches))


def _give_up(bench: Bench, peer: str, work: str | None, error: Exception) -> None:
    for key, (its_peer, its_work) in FIGURES.items():
        if its_peer == peer and work in (None, its_work):
            bench.recorder.give_up(key, Status.FAILED, f"{peer}: {type(error).__name__}: {error}")
