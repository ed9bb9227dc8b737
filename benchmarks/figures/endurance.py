"""P9: what a transaction costs at txid 20,000 against txid 200, and whether memory stays flat.

One topology is driven to txid 20,000 and kept running. From there on its next 2,000 transactions take turns with
those after the 200th of a fresh topology, so that noise of the machine favours neither. What the process as a whole
may have lost on the way (Spark's books, the JVM's heap) is in the note: the old topology's own first window.
"""

from __future__ import annotations

from benchmarks.measuring.bench import Bench, alternately
from benchmarks.measuring.lab import Stream
from benchmarks.measuring.memory import Memory, slopes
from benchmarks.measuring.settings import PENDING_SMALL
from benchmarks.topologies.global_count import small_batches, stored

EARLY, LATE = 200, 20_000
WINDOW = 2_000


def run(bench: Bench) -> None:
    """Measure P9."""
    late, window = bench.amount(LATE), bench.amount(WINDOW)
    bench.say("warming up")
    with bench.lab.submit(small_batches, PENDING_SMALL) as stream:
        stream.run(2 * window)
    with bench.lab.submit(small_batches, PENDING_SMALL) as old:
        old.run(EARLY)
        own_first_ms = _window_ms(old, window)
        looks = [(old.gate.begun, Memory.now())]
        while old.gate.begun < late:
            bench.say(f"txid {old.gate.begun:,} of {late:,}")
            old.run(min(window // 2, late - old.gate.begun))
            looks.append((old.gate.begun, Memory.now()))
        for number in range(bench.repeats):
            with bench.lab.submit(small_batches, PENDING_SMALL) as fresh:
                fresh.run(EARLY)
                ours, theirs = alternately(number, lambda: _window_ms(old, window), lambda: _window_ms(fresh, window))
            bench.recorder.pair("P9", ours, theirs, txid=old.gate.begun - window, transactions=window)
        assert stored(old.topology_id) == old.gate.begun * 9
    half = [look for look in looks if look[0] >= late / 2]
    grown, later = slopes(looks), slopes(half)
    bench.recorder.note(
        "P9",
        f"windows of {window:,} transactions, pending {PENDING_SMALL}; the old topology's own window after txid "
        f"{EARLY}: {own_first_ms:.2f} ms a transaction",
    )
    bench.recorder.note(
        "P9",
        f"memory grew by MB per 1,000 transactions, to txid {late:,} (in the second half of it): driver "
        f"{grown['driver']:.2f} ({later['driver']:.2f}), Python workers {grown['workers']:.2f} "
        f"({later['workers']:.2f}), JVM {grown['jvm']:.2f} ({later['jvm']:.2f}); they held "
        f"{looks[-1][1].driver:.0f}, {looks[-1][1].workers:.0f} and {looks[-1][1].jvm:.0f} MB at the end",
    )


def _window_ms(stream: Stream, window: int) -> float:
    return 1_000 * stream.run(window) / window
