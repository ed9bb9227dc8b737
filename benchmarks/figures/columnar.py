"""P8: tuples a second of columnar bolts, against pyarrow by hand, and against P1's row bolts."""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.measuring.bare import BareProcesses, columnar_count_loop, columnar_words_loop
from benchmarks.measuring.bench import Bench, alternately
from benchmarks.measuring.recorder import NotAvailable
from benchmarks.measuring.settings import BATCH_TUPLES, PENDING
from benchmarks.topologies import global_count, words

COLUMNAR_BATCH_TUPLES = 1_000_000
WORKS: Mapping[str, tuple[int, int]] = {"count": (256, 512), "words": (64, 64), "before": (256, 256)}
"""By work: transactions that may be pending, and batches a measurement."""
ROW_BATCHES = 128


def run(bench: Bench) -> None:
    """Measure P8."""
    try:
        from benchmarks.topologies.columnar import (
            columnar_global_count,
            columnar_words,
            columnar_words_counted_before,
        )
    except ImportError as error:
        raise NotAvailable(f"columnar bolts: {error}") from error
    pending = {work: most for work, (most, _) in WORKS.items()}
    amounts = {work: bench.amount(batches) for work, (_, batches) in WORKS.items()}
    row_batches = bench.amount(ROW_BATCHES)
    size = COLUMNAR_BATCH_TUPLES
    submit = bench.lab.submit
    with (
        submit(lambda topology_id: global_count.global_count(topology_id, BATCH_TUPLES), PENDING) as rows,
        submit(lambda topology_id: columnar_global_count(topology_id, size), pending["count"]) as counting,
        submit(lambda topology_id: columnar_words(topology_id, size), pending["words"]) as wording,
        submit(lambda topology_id: columnar_words_counted_before(topology_id, size), pending["before"]) as before,
        BareProcesses(count=columnar_count_loop, words=columnar_words_loop) as bare,
    ):
        streams = {"count": counting, "words": wording, "before": before}

        def columnar(name: str) -> float:
            return amounts[name] * size / streams[name].run(amounts[name])

        def by_hand(name: str) -> float:
            return amounts[name] * size / bare.run(name, amounts[name], size)

        def row_bolts() -> float:
            return row_batches * BATCH_TUPLES / rows.run(row_batches)

        bench.say("warming up")
        for name, stream in streams.items():
            stream.run(pending[name])
        for name in ("count", "words"):
            bare.run(name, pending["words"], size)
        rows.run(PENDING)
        for number in range(bench.repeats):
            count, count_by_hand, of_rows, word, words_by_hand, word_before = alternately(
                number,
                lambda: columnar("count"),
                lambda: by_hand("count"),
                row_bolts,
                lambda: columnar("words"),
                lambda: by_hand("words"),
                lambda: columnar("before"),
            )
            bench.recorder.pair("P8a", count, count_by_hand, tuples=amounts["count"] * size)
            bench.recorder.pair("P8b", word, words_by_hand, tuples=amounts["words"] * size)
            bench.recorder.pair("P8c", count, of_rows)
            bench.recorder.pair("P8d", word, of_rows)
            bench.recorder.pair("P8e", word_before, words_by_hand, tuples=amounts["before"] * size)
            bench.recorder.pair("P8f", word_before, of_rows)
        assert global_count.stored(counting.topology_id) == counting.gate.begun * size
        for stream in (wording, before):
            assert words.stored(stream.topology_id) == stream.gate.begun * size
    note = "batches of {:,}, pending {}, {} batches a measurement; a record batch for each partition's share of a batch"
    for key, work in (("P8a", "count"), ("P8b", "words"), ("P8e", "before")):
        bench.recorder.note(key, note.format(size, pending[work], amounts[work]))
    bench.recorder.note("P8c", f"P1 with batches of {BATCH_TUPLES:,}, pending {PENDING}, in the same rounds")
