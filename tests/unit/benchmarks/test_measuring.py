"""What is measured counts right: the spout and its gate, the topologies, the bare loops, the peers' rounds."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import pytest

from benchmarks.figure import Status
from benchmarks.figures import peers as peers_row
from benchmarks.goals import GOALS
from benchmarks.measuring.bare import columnar_count_loop, columnar_words_loop, count_loop, words_loop
from benchmarks.measuring.bench import Bench
from benchmarks.measuring.fresh import secs_until
from benchmarks.measuring.lab import Stream
from benchmarks.measuring.memory import Memory, slopes
from benchmarks.measuring.recorder import NotAvailable, Recorder
from benchmarks.reporting.caveats import CAVEATS
from benchmarks.topologies import global_count, words
from benchmarks.topologies.synthetic import GATES, Gate
from benchmarks.topologies.synthetic import words as synthetic_words
from stormline import InProcessCluster, Topology, TransactionAttempt


def test_word_i_is_that_of_the_other_engines() -> None:
    assert synthetic_words(0, 4) == ["word0", "word919", "word838", "word757"]
    assert synthetic_words(999, 2) == ["word81", "word0"]
    assert len(set(synthetic_words(500, 1_000))) == 1_000


def test_a_gate_gives_as_many_batches_as_were_released() -> None:
    gate = Gate()
    assert not gate.is_ready()
    gate.release(2)
    assert [gate.is_ready() for _ in range(3)] == [True, True, False]
    assert len(gate.asked) == 2
    gate.release(1)
    assert gate.asked == []
    assert gate.is_ready()
    assert (len(gate.asked), gate.begun) == (1, 3)


@pytest.mark.parametrize(
    ("build", "stored", "batch_tuples"),
    [
        (lambda topology_id: global_count.global_count(topology_id, 40), global_count.stored, 40),
        (lambda topology_id: global_count.global_count(topology_id, 64, partitions=8), global_count.stored, 64),
        (global_count.small_batches, global_count.stored, 9),
        (lambda topology_id: words.words(topology_id, 3_000), words.stored, 3_000),
    ],
    ids=["global-count", "8 partitions", "small-batches", "words"],
)
def test_a_stream_runs_what_is_released_and_all_is_stored(
    build: Callable[[str], Topology], stored: Callable[[str], int], batch_tuples: int
) -> None:
    runs_and_stores(build, stored, batch_tuples)


def test_columnar_streams_store_the_same() -> None:
    pytest.importorskip("pyarrow", reason="pyarrow is optional")
    from benchmarks.topologies import columnar

    runs_and_stores(lambda topology_id: columnar.columnar_global_count(topology_id, 40), global_count.stored, 40)
    runs_and_stores(lambda topology_id: columnar.columnar_words(topology_id, 3_000), words.stored, 3_000)
    runs_and_stores(lambda topology_id: columnar.columnar_words_counted_before(topology_id, 3_000), words.stored, 3_000)


def runs_and_stores(build: Callable[[str], Topology], stored: Callable[[str], int], batch_tuples: int) -> None:
    """Release batches of a topology, and look at what is stored then."""
    topology = build("bench-test")
    gate = GATES[topology.id] = Gate()
    for database in (global_count.DATABASE, words.DATABASE):
        database.pop(topology.id, None)
    with (
        InProcessCluster() as cluster,
        Stream(topology.id, gate, cluster.submit_topology(topology.id, {}, topology)) as stream,
    ):
        assert stream.run(5) > 0
        assert stored(topology.id) == 5 * batch_tuples
        assert len(stream.latencies(3)) == 3
        assert stored(topology.id) == 8 * batch_tuples
    assert not stream.handle.running


def test_both_sides_load_the_same_numbered_rows() -> None:
    pytest.importorskip("psycopg", reason="stormline[postgresql] is optional")
    from benchmarks.measuring.bare_loads import rows_of
    from benchmarks.topologies.prepared import RowsEmitter, first_row

    class Collected:
        def __init__(self) -> None:
            self.rows: list[list[Any]] = []

        def emit_all(self, rows: list[list[Any]]) -> None:
            self.rows += rows

    emitted: Any = Collected()
    for batch in range(2):
        for task in range(2):
            RowsEmitter(2, 1_500).emit_partition_batch(TransactionAttempt(1, 1), emitted, task, batch + 1)
    bare = [
        row
        for batch in range(2)
        for task in range(2)
        for some in rows_of(first_row(batch, 2, 1_500, task), 1_500)
        for row in some
    ]
    assert [tuple(row[1:]) for row in emitted.rows] == bare
    assert [row[0] for row in bare] == list(range(6_000))


def test_the_bare_loops_count_what_they_make() -> None:
    assert count_loop(1, 3, 10) == 30
    assert words_loop(1, 3, 10) == 30


def test_the_columnar_loops_count_the_same_words() -> None:
    pytest.importorskip("pyarrow", reason="pyarrow is optional")
    assert columnar_count_loop(1, 3, 10) == 30
    assert columnar_words_loop(1, 3, 10) == 30


def test_memory_slopes_are_by_thousand_transactions() -> None:
    looks = [(1_000, Memory(100, 500, 50)), (2_000, Memory(101, 500, 52)), (3_000, Memory(102, 500, 54))]
    assert slopes(looks) == pytest.approx({"driver": 1, "jvm": 0, "workers": 2})


class TestSecsUntil:
    def test_it_waits_for_the_line(self) -> None:
        assert secs_until("here", (sys.executable, "-c", "print('there'); print('here')")) > 0

    def test_a_process_that_ends_without_the_line_is_an_error_with_what_it_said(self) -> None:
        with pytest.raises(RuntimeError, match=r"(?s)exit code 1 of .*ZeroDivisionError"):
            secs_until("here", (sys.executable, "-c", "1 / 0"))

    def test_a_process_that_hangs_is_ended(self) -> None:
        with pytest.raises(TimeoutError, match="did not end within"):
            secs_until("here", (sys.executable, "-c", "import time; time.sleep(60)"), timeout_secs=0.2)


@dataclass
class Measurement:
    """As benchmarks.peers has it."""

    peer: str
    version: str
    work: str
    tuples: int
    batches: int
    secs: float
    notes: str


class FakeStream:
    """Every batch takes a millisecond."""

    def __enter__(self) -> FakeStream:
        return self

    def __exit__(self, *error: object) -> None: ...

    def run(self, batches: int) -> float:
        return batches / 1_000


class FakeLab:
    def submit(self, build: Any, pending: int) -> FakeStream:
        return FakeStream()


class TestPeers:
    @pytest.fixture
    def peers(self, monkeypatch: pytest.MonkeyPatch) -> Any:
        """Peers of which bytewax cannot be prepared, and Storm fails at words."""
        stub: Any = ModuleType("benchmarks.peers")

        def prepare(peer: str) -> None:
            if peer == "bytewax":
                raise RuntimeError("no wheel for this Python")

        def measure_all(peer: str, works: list[str]) -> Iterator[Measurement]:
            for work in sorted(works, key=lambda work: work == "words"):
                if (peer, work) == ("storm", "words"):
                    raise RuntimeError("lost a tuple")
                yield Measurement(peer, "1.0", work, tuples=1_000_000, batches=10, secs=2.0, notes="as documented")

        stub.prepare, stub.measure_all = prepare, measure_all
        monkeypatch.setitem(sys.modules, "benchmarks.peers", stub)
        return stub

    @staticmethod
    def bench(*rows: str) -> Bench:
        return Bench(FakeLab(), Recorder(frozenset(rows)), repeats=5)  # type: ignore[arg-type]

    def test_ours_of_a_round_is_held_against_every_peer(self, peers: Any) -> None:
        bench = self.bench("P4", "P5", "P6")
        peers_row.run(bench)
        bench.recorder.ended(("P4", "P5", "P6"))
        figures = bench.recorder.figures
        # Ours: 1,000 batches a second, of 100,000 tuples where tuples are counted.
        assert figures["P4a"].ratios == pytest.approx([100_000_000 / 500_000] * 5)
        assert figures["P4b"].ratios == pytest.approx([1_000 / 5] * 5)
        noted, took = figures["P4a"].notes
        assert noted == "structured_streaming: as documented"
        assert took.startswith("structured_streaming: 5 starts took 0 s")
        assert bench.recorder.versions["storm"] == "1.0"
        assert len(bench.recorder.peers) == 6 * 5

    def test_a_peer_that_fails_costs_its_own_figures_only(self, peers: Any) -> None:
        bench = self.bench("P4", "P5", "P6")
        peers_row.run(bench)
        bench.recorder.ended(("P4", "P5", "P6"))
        failed = {key: f.reason for key, f in bench.recorder.figures.items() if f.status is Status.FAILED}
        assert failed == {
            "P5a": "bytewax: RuntimeError: no wheel for this Python",
            "P5b": "bytewax: RuntimeError: no wheel for this Python",
            "P6b": "storm: RuntimeError: lost a tuple",
        }

    def test_only_what_is_asked_for_is_measured(self, peers: Any) -> None:
        bench = self.bench("P4")
        peers_row.run(bench)
        assert {measurement["peer"] for measurement in bench.recorder.peers} == {"structured_streaming"}

    def test_without_the_peers_the_rows_are_not_available(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "benchmarks.peers", None)
        with pytest.raises(NotAvailable, match=r"benchmarks\.peers"):
            peers_row.run(self.bench("P4"))

    def test_every_figure_of_the_peers_has_a_peer_and_a_work(self) -> None:
        assert set(peers_row.FIGURES) == {goal.key for goal in GOALS if goal.row in ("P4", "P5", "P6")}


def test_caveats_are_sentences() -> None:
    assert all(caveat.endswith(".") for caveat in CAVEATS)
