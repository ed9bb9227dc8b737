"""An audit reads the committed batches again, and names the rows that are not what they should be."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from stormline import (
    BaseTransactionalBolt,
    BaseTransactionalSpout,
    Fields,
    ICommitterTransactionalSpout,
    InProcessCluster,
    ITransactionalCoordinator,
    ITransactionalEmitter,
    MemoryTransactionalSpout,
    OpaqueMemoryTransactionalSpout,
    TransactionalTopologyBuilder,
)
from stormline.errors import NotAuditable
from stormline.runtime.audit import bounded_spout
from stormline.runtime.audit.audit import audit
from stormline.state import (
    Count,
    Distinct,
    Max,
    Mean,
    MemoryStore,
    OpaqueMap,
    SnapshottableMap,
    SQLiteStore,
    StateMap,
    Sum,
    Top,
    TransactionalMap,
    persistent_aggregate,
)
from stormline.state.comparison import Difference
from stormline.testing import MemoryStateServer
from tests.kits.audited import (
    WORDS,
    Declares,
    Partitions,
    Reader,
    Run,
    Stores,
    changed,
    counting,
    counts_in,
    differences,
    stored_by,
)


@pytest.fixture
def store(tmp_path: Path) -> SQLiteStore:
    return SQLiteStore(tmp_path / "store.sqlite")


def test_one_planted_wrong_row_is_found_among_100_000(store: SQLiteStore) -> None:
    rows = {p: [(f"word-{i:06d}", i % 7) for i in range(p, 100_000, 2)] for p in range(2)}
    sums = TransactionalMap(store, "sums", key={"word": str}, value={"seen": int, "total": int})
    builder = TransactionalTopologyBuilder("large", "spout", MemoryTransactionalSpout(rows, ["word", "n"], 10_000), 2)
    persistent_aggregate(builder, "sums", "spout", sums, {"seen": Count(), "total": Sum("n")})
    run = Run(builder.build_topology())
    changed(store, "UPDATE sums SET total = total + 1 WHERE word = 'word-054321'")
    (found,) = run.audit().tables
    assert (found.table, found.rows, found.txid) == ("sums", 100_000, 5)
    assert found.differences == (Difference("word-054321", (1, 2), (1, 1)),)


@pytest.mark.parametrize("kind", [TransactionalMap, OpaqueMap])
def test_a_row_too_many_one_too_few_and_a_wrong_one_are_named(store: SQLiteStore, kind: type[StateMap]) -> None:
    run = Run(counting(counts_in(store, kind)))
    assert run.audit().differ == 0
    changed(store, "UPDATE words SET count = 9 WHERE word = 'cat'")
    changed(store, "DELETE FROM words WHERE word = 'ant'")
    changed(store, "INSERT INTO words (word, count, txid) VALUES ('yak', 1, 1)")
    assert differences(run.audit()) == [
        Difference("ant", None, 1),
        Difference("cat", 9, 3),
        Difference("yak", 1, None),
    ]


def test_an_audit_writes_nowhere(store: SQLiteStore) -> None:
    run = Run(counting(counts_in(store)))
    before = run.nodes(), Path(store.path).read_bytes()
    run.audit()
    assert (run.nodes(), Path(store.path).read_bytes()) == before


def test_a_topology_that_runs_meanwhile_is_compared_at_one_transaction(store: SQLiteStore) -> None:
    words: Partitions = {0: ["cat"], 1: ["dog"]}
    topology = counting(counts_in(store), words)
    server = MemoryStateServer()
    with InProcessCluster(server) as cluster, cluster.submit(topology) as handle:
        handle.await_committed(1, 60)
        report = audit(topology, {}, Reader(server, topology.id))
        assert [(table.txid, table.differences) for table in report.tables] == [(1, ())]
        assert handle.running


def test_all_ready_parts_of_a_topology_are_audited_and_what_comes_after_them(store: SQLiteStore) -> None:
    from examples.words import Bucketize

    total = SnapshottableMap(TransactionalMap(store, "totals", key={"name": str}, value={"count": int}))
    words = OpaqueMap(store, "words", key={"word": str}, value={"count": int})
    buckets = TransactionalMap(MemoryStore("audited-buckets"), "buckets", key={"bucket": int}, value={"words": int})
    builder = TransactionalTopologyBuilder("several", "spout", MemoryTransactionalSpout(WORDS, ["word"], 1), 2)
    persistent_aggregate(builder, "total", "spout", total, {"count": Count()})
    persistent_aggregate(builder, "words", "spout", words, {"count": Count()}, 2)
    builder.set_bolt("bucketize", Bucketize()).none_grouping("words")
    persistent_aggregate(builder, "buckets", "bucketize", buckets, {"words": Sum("delta")})
    run = Run(builder.build_topology())
    report = run.audit()
    assert [(table.table, table.txid, table.differences) for table in report.tables] == [
        ("buckets", 4, ()),
        ("totals", 4, ()),
        ("words", 4, ()),
    ]
    changed(store, "UPDATE totals SET count = 8")
    assert differences(run.audit()) == [Difference("total", 8, 7)]
    MemoryStore("audited-buckets").clear()


def test_floats_may_come_out_a_little_different_and_objects_are_compared_as_what_they_are(store: SQLiteStore) -> None:
    rows: Partitions = {p: [("x", i * 0.1 + p) for i in range(50)] for p in range(3)}
    into = TransactionalMap(
        store,
        "stats",
        key={"word": str},
        value={
            "mean": float,
            "mean_sum": float,
            "mean_count": int,
            "kinds": int,
            "kinds_values": object,
            "most": float,
            "best": object,
        },
    )
    builder = TransactionalTopologyBuilder("stats", "spout", MemoryTransactionalSpout(rows, ["word", "n"], 7), 3)
    aggregates = {"mean": Mean("n"), "kinds": Distinct("n"), "most": Max("n", float), "best": Top(3, "n")}
    persistent_aggregate(builder, "stats", "spout", into, aggregates, 2)
    run = Run(builder.build_topology())
    changed(store, "UPDATE stats SET mean = mean * (1 + 1e-13)")
    assert run.audit().differ == 0
    changed(store, "UPDATE stats SET mean = mean * (1 + 1e-6)")
    assert run.audit().differ == 1


def test_a_committer_of_the_users_is_left_out_unless_it_names_its_maps(store: SQLiteStore) -> None:
    run = Run(stored_by(Stores(counts_in(store))))
    Stores.commits.clear()
    with pytest.raises(
        NotAuditable,
        match=r"'own' stores in no map .*: committer 'own' \(Stores\) may do more than to store in maps, and would do "
        r"it once more; if all its effects .* effects_in = STORE",
    ):
        run.audit()
    assert Stores.commits == []
    declared = stored_by(Declares(counts_in(store)))
    assert run.audit(declared).differ == 0
    changed(store, "UPDATE words SET count = 9 WHERE word = 'cat'")
    assert differences(run.audit(declared)) == [Difference("cat", 9, 3)]


def test_what_is_left_out_beside_what_is_audited_is_said(store: SQLiteStore) -> None:
    builder = TransactionalTopologyBuilder("both", "spout", MemoryTransactionalSpout(WORDS, ["word"], 1), 2)
    persistent_aggregate(builder, "words", "spout", counts_in(store), {"count": Count()})
    other = TransactionalMap(store, "other", key={"word": str}, value={"count": int})
    builder.set_bolt("own", Stores(other)).none_grouping("spout")
    builder.set_bolt("after", Declares(other)).none_grouping("own")
    topology = builder.build_topology()
    run = Run(topology)
    Stores.commits.clear()
    report = run.audit()
    assert [table.table for table in report.tables] == ["words"]
    assert set(report.left_out) == {"own", "after"}
    assert report.left_out["after"] == "committer 'after' comes after ['own'], which is left out"
    assert Stores.commits == []


def test_a_table_that_was_declared_otherwise_is_told(store: SQLiteStore) -> None:
    run = Run(counting(counts_in(store)))
    changed(store, "UPDATE stormline_maps SET declared = 'transactional map (word str) -> (count float)'")
    changed(store, "UPDATE words SET count = 1.5 WHERE word = 'cat'")
    with closing(sqlite3.connect(store.path)) as db, db:
        db.execute("CREATE TABLE other (word TEXT PRIMARY KEY, count REAL, txid INTEGER)")
        db.execute("DROP TABLE words")
        db.execute("ALTER TABLE other RENAME TO words")
    with pytest.raises(NotAuditable, match=r"'words' of .* is that of a transactional map .*float\), and the topology"):
        run.audit()


class TakesPart(BaseTransactionalBolt):
    """A bolt after a committer, which lets a queue take part in the commits."""

    def prepare(self, conf: Any, context: Any, collector: Any, batch_id: Any) -> None:
        self.context, self.collector, self.attempt = context, collector, batch_id

    def execute(self, tup: Any) -> None:
        self.collector.emit(tup.values[:2])

    def finish_batch(self) -> None:
        self.context.take_part(self.attempt, "a queue", Queue)

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("tx", "word"))


class Queue:
    name = "a queue"

    def begin(self, token: Any, registry: Any) -> Any:
        return self

    def prepare(self) -> None: ...
    def commit(self) -> None: ...
    def abort(self) -> None: ...
    def close(self) -> None: ...


def test_nothing_but_stores_takes_part_in_the_commits_of_an_audit(store: SQLiteStore) -> None:
    other = TransactionalMap(store, "other", key={"word": str}, value={"count": int})
    builder = TransactionalTopologyBuilder("parts", "spout", MemoryTransactionalSpout(WORDS, ["word"], 1), 2)
    persistent_aggregate(builder, "words", "spout", counts_in(store), {"count": Count()})
    builder.set_bolt("queue", TakesPart()).none_grouping("words")
    persistent_aggregate(builder, "other", "queue", other, {"count": Count()})
    run = Run(builder.build_topology())
    with pytest.raises(NotAuditable, match=r"lets 'a queue' take part in its commits, which is no store"):
        run.audit()


def test_commits_on_the_executors_are_audited_by_their_tasks_fences(store: SQLiteStore) -> None:
    run = Run(counting(counts_in(store)), {"topology.commit.placement": "executors"})
    assert run.audit().differ == 0
    changed(store, "UPDATE stormline_fence SET txid = txid - 1 WHERE scope = 'words:1/2'")
    with pytest.raises(NotAuditable, match=r"holds transactions \[3, 4\] of tasks that commit by themselves"):
        run.audit()


def test_an_opaque_spout_and_one_that_commits_are_refused(store: SQLiteStore) -> None:
    builder = TransactionalTopologyBuilder("t", "spout", OpaqueMemoryTransactionalSpout(WORDS, ["word"], 1))
    persistent_aggregate(builder, "words", "spout", counts_in(store), {"count": Count()})
    with pytest.raises(NotAuditable, match=r"'spout' \(OpaqueMemoryTransactionalSpout\) is opaque: only what it read"):
        audit(builder.build_topology(), {}, Reader(MemoryStateServer(), "t"))

    class Commits(MemoryTransactionalSpout, ICommitterTransactionalSpout):
        pass

    from stormline.runtime.audit.auditable_part import auditable_part

    builder = TransactionalTopologyBuilder("t", "spout", MemoryTransactionalSpout(WORDS, ["word"], 1))
    persistent_aggregate(builder, "words", "spout", counts_in(store), {"count": Count()})
    topology = builder.build_topology()
    object.__setattr__(topology.spout, "obj", Commits(WORDS, ["word"], 1))
    with pytest.raises(NotAuditable, match=r"\(Commits\) commits: its source would be told of each transaction once"):
        auditable_part(topology)


def test_a_source_that_has_lost_something_is_told(store: SQLiteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded_spout, "ASKED_MAX", 3)
    run = Run(counting(counts_in(store), dict(WORDS)))
    with pytest.raises(
        NotAuditable, match=r"spout 'spout' gives 2 batches now, and gave 4: its source has lost someth"
    ):
        run.audit(counting(counts_in(store), {0: ["cat", "dog"], 1: ["dog"]}))


def test_a_source_that_is_cut_otherwise_now_is_told(store: SQLiteStore) -> None:
    partitions: Partitions = {0: ["cat", "dog", "cat"]}
    run = Run(counting(counts_in(store), partitions, take=2))
    longer: Partitions = {0: [*partitions[0], "owl", "owl"]}
    run.topology = counting(counts_in(store), longer, take=2)
    with pytest.raises(
        NotAuditable, match=r"'spout' gives another batch of transaction 2 than it gave \(2 tuples, 1 then\)"
    ):
        run.audit()


def test_a_store_that_holds_nothing_and_one_that_was_adopted_are_refused(store: SQLiteStore) -> None:
    run = Run(counting(counts_in(store)))
    with closing(sqlite3.connect(store.path)) as db, db:
        db.execute("DELETE FROM stormline_fence")
    with pytest.raises(NotAuditable, match=r"holds nothing of topology 'audited'; run it first"):
        run.audit()
    store.adopt("audited", 2)
    with pytest.raises(NotAuditable, match=r"was adopted by topology 'audited' at transaction 2: what its maps held"):
        run.audit()


def test_a_state_that_is_older_than_the_store_is_told(store: SQLiteStore) -> None:
    run = Run(counting(counts_in(store)))
    changed(store, "UPDATE stormline_fence SET txid = 9")
    with pytest.raises(
        NotAuditable, match=r"holds transaction 9 of topology 'audited', whose own state says that 4 is"
    ):
        run.audit()


def test_a_topology_that_moves_on_faster_than_a_store_is_read_is_told(store: SQLiteStore) -> None:
    run = Run(counting(counts_in(store)))
    changed(store, "UPDATE stormline_fence SET txid = 1")
    del run.server.topologies["audited"].nodes["batches/000000000001"]
    with pytest.raises(
        NotAuditable, match=r"'audited' commits faster than sqlite:.* can be read; stop it for the audit"
    ):
        run.audit()


class Numbers(BaseTransactionalSpout):
    """Numbers by a coordinator that says so when it is ready, now and then."""

    def get_coordinator(self, conf: Any, context: Any) -> ITransactionalCoordinator:
        return Coordinator()

    def get_emitter(self, conf: Any, context: Any) -> ITransactionalEmitter:
        return Emitter()

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("tx", "word"))


class Coordinator(ITransactionalCoordinator):
    def __init__(self) -> None:
        self.asked, self.begun = 0, 0

    def is_ready(self) -> bool:
        self.asked += 1
        return self.asked % 3 == 0 and self.begun < 4

    def initialize_transaction(self, txid: int, prev_metadata: Any) -> Any:
        self.begun += 1
        return {"from": (prev_metadata or {"to": 0})["to"], "to": txid * 2}


class Emitter(ITransactionalEmitter):
    def emit_batch(self, attempt: Any, metadata: Any, collector: Any) -> None:
        for number in range(metadata["from"], metadata["to"]):
            collector.emit([attempt, str(number)])


def test_a_coordinator_that_is_not_always_ready_is_asked_again(store: SQLiteStore) -> None:
    builder = TransactionalTopologyBuilder("numbers", "spout", Numbers())
    persistent_aggregate(builder, "words", "spout", counts_in(store), {"count": Count()})
    run = Run.__new__(Run)
    run.server, run.topology, run.config = MemoryStateServer(), builder.build_topology(), {}
    with InProcessCluster(run.server) as cluster, cluster.submit(run.topology) as handle:
        handle.await_committed(4, 60)
    (table,) = run.audit().tables
    assert (table.rows, table.txid, table.differences) == (8, 4, ())


@pytest.fixture(autouse=True)
def no_copies_left() -> Iterator[None]:
    yield
    from stormline.state import memory

    assert not [name for name in memory._DATABASES if name.startswith("audit-")]
