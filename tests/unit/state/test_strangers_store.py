"""Stores in code as strangers write it: what comes out is right, whatever fails, or a sentence says what to change."""

from __future__ import annotations

import copy
import pickle
import threading
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from stormline import (
    BaseBasicBolt,
    BaseTransactionalBolt,
    FailedException,
    ICommitter,
    MemoryTransactionalSpout,
    TransactionalTopologyBuilder,
)
from stormline.errors import InvalidStore, TopologyFailed
from stormline.state import MemoryStore, NonTransactionalMap, OpaqueMap, SnapshottableMap, StateMap, TransactionalMap
from stormline.state.sqlite_connection import SQLiteConnection
from stormline.testing import InProcessCluster
from stormline.topology.config import MAX_SPOUT_PENDING
from tests.kits.components import eventually

STORE = MemoryStore("strangers", timeout_secs=0.2)
WORDS = TransactionalMap(STORE, "words", key={"word": str}, value={"count": int})
REMEMBERED = TransactionalMap(STORE, "words", key={"word": str}, value={"count": int}, cache=100)
OPAQUE = OpaqueMap(STORE, "opaque", key={"word": str}, value={"count": int})
PLAIN = NonTransactionalMap(STORE, "plain", key={"word": str}, value={"count": int})
LISTS = TransactionalMap(STORE, "lists", key={"word": str}, value={"txids": object})
DATA = {0: ["cat", "dog", "owl"] * 6, 1: ["dog", "cat"] * 9}
EXPECTED = dict(Counter(word for words in DATA.values() for word in words))
BATCHES = 6


@pytest.fixture(autouse=True)
def _clear() -> Iterator[None]:
    STORE.clear()
    yield
    STORE.clear()


class Stranger(BaseTransactionalBolt, ICommitter):
    """Executes at the commit, where it declares no gathers."""

    def prepare(self, conf: Any, context: Any, collector: Any, attempt: Any) -> None:
        self.context, self.attempt, self.collector = context, attempt, collector
        self.seen: Counter[str] = Counter()

    def execute(self, tup: Any) -> None:
        self.seen[tup[1]] += 1

    def finish_batch(self) -> None:
        WORDS.begin_commit(self.context, self.attempt).increment(self.seen)

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(["tx", "word"])


def run(*bolts: Any, parallelism: int = 1) -> None:
    """Run a topology of committers, or of bolts that are none, side by side."""
    builder = TransactionalTopologyBuilder("strange", "spout", MemoryTransactionalSpout(DATA, ["word"], 3), 2)
    for i, bolt in enumerate(bolts):
        builder.set_bolt(f"bolt-{i}", bolt, parallelism).fields_grouping("spout", ["word"])
    with InProcessCluster() as cluster, cluster.submit(builder.build_topology(), {MAX_SPOUT_PENDING: 2}) as handle:
        handle.await_drained(60)


@pytest.fixture(params=["no answer", "no commit", "nothing"])
def _failing(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let some commits of the database not happen, or happen without an answer."""
    commit, calls = SQLiteConnection.commit, iter(range(1, 1000))

    def broken(self: SQLiteConnection) -> None:
        fails = request.param != "nothing" and next(calls) in {1, 4, 5, 8}
        if not fails or request.param == "no answer":
            commit(self)
        if fails:
            raise FailedException("on order")

    monkeypatch.setattr(SQLiteConnection, "commit", broken)


# ------------------------------------------------------------------------------------ what is right


class InExecute(Stranger):
    """Stores tuple by tuple, in execute."""

    def prepare(self, conf: Any, context: Any, collector: Any, attempt: Any) -> None:
        self.words = WORDS.begin_commit(context, attempt)

    def execute(self, tup: Any) -> None:
        self.words.update(tup[1], lambda count: (count or 0) + 1)

    def finish_batch(self) -> None:
        pass


class PutsWhatItGot(Stranger):
    """Reads, adds, and puts, as with a dict."""

    def finish_batch(self) -> None:
        words = WORDS.begin_commit(self.context, self.attempt)
        for word, count in self.seen.items():
            words.put(word, (words.get(word) or 0) + count)


class ByThreads(Stranger):
    """Stores from threads of its own, and waits for them."""

    def finish_batch(self) -> None:
        words = WORDS.begin_commit(self.context, self.attempt)
        threads = [threading.Thread(target=words.increment, args=({w: n},)) for w, n in self.seen.items()]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


class CopiesTheMap(Stranger):
    """Holds a map that has been pickled and copied with it, into the executors, too."""

    gathers = ("seen",)

    def __init__(self) -> None:
        self.words: StateMap = pickle.loads(pickle.dumps(copy.copy(WORDS)))

    def finish_batch(self) -> None:
        self.words.begin_commit(self.context, self.attempt).increment(self.seen)


class Nested(Stranger):
    """Own SQL within own SQL, maps used within it, and savepoints of its own."""

    def finish_batch(self) -> None:
        with STORE.transaction(self.context, self.attempt) as outer:
            outer.execute("CREATE TABLE IF NOT EXISTS log (txid INTEGER PRIMARY KEY)")
            with STORE.transaction(self.context, self.attempt) as inner:
                inner.execute("INSERT INTO log VALUES (?)", [self.attempt.transaction_id])
                WORDS.begin_commit(self.context, self.attempt).increment(self.seen)
            outer.execute("SAVEPOINT mine")
            outer.execute("DELETE FROM log")
            outer.execute("ROLLBACK TO mine")
            (count,) = outer.execute("SELECT count(*) FROM log").fetchone()
            assert count == self.attempt.transaction_id


class SwallowsErrorsOfItsOwnSQL(Stranger):
    """Catches within the block what its SQL raises, and goes on."""

    def finish_batch(self) -> None:
        super().finish_batch()
        with STORE.transaction(self.context, self.attempt) as db:
            db.execute("CREATE TABLE IF NOT EXISTS one (n INTEGER PRIMARY KEY)")
            for _ in range(2):
                try:
                    db.execute("INSERT INTO one VALUES (1)")
                except Exception as error:
                    assert "UNIQUE" in str(error)  # noqa: PT017


class SwallowsRefusals(Stranger):
    """Catches what a map refuses: nothing of that call is stored."""

    def finish_batch(self) -> None:
        words = WORDS.begin_commit(self.context, self.attempt)
        try:
            words.multi_put({"cat": 0, "dog": "none"})
        except TypeError:
            words.increment(self.seen)


class MutatesWhatItGot(Stranger):
    """Changes a list that it got, and returns it."""

    def finish_batch(self) -> None:
        super().finish_batch()
        lists = LISTS.begin_commit(self.context, self.attempt)

        def append(txids: list[int] | None) -> list[int]:
            txids = txids if txids is not None else []
            txids.append(self.attempt.transaction_id)
            return txids

        got = lists.update("all", append)
        lists.get("all").append("never stored")
        got.append("never stored")


class Remembering(Stranger):
    """Opens the same map now with a cache, now without."""

    def finish_batch(self) -> None:
        found = REMEMBERED if self.attempt.transaction_id % 2 else WORDS
        found.begin_commit(self.context, self.attempt).increment(self.seen)


@pytest.mark.usefixtures("_failing")
@pytest.mark.parametrize(
    "bolt",
    [
        Stranger,
        InExecute,
        PutsWhatItGot,
        ByThreads,
        CopiesTheMap,
        Nested,
        SwallowsErrorsOfItsOwnSQL,
        SwallowsRefusals,
        MutatesWhatItGot,
        Remembering,
    ],
)
def test_each_word_counts_once(bolt: type[Stranger]) -> None:
    run(bolt())
    assert WORDS.items() == EXPECTED
    if bolt is MutatesWhatItGot:
        assert LISTS.items() == {"all": list(range(1, BATCHES + 1))}


class IntoAll(Stranger):
    """The same words into a map of each kind."""

    def finish_batch(self) -> None:
        for counts in (WORDS, OPAQUE, PLAIN):
            counts.begin_commit(self.context, self.attempt).increment(self.seen)


@pytest.mark.usefixtures("_failing")
def test_maps_that_two_bolts_share_hold_what_both_have_counted() -> None:
    run(IntoAll(), IntoAll(), parallelism=2)
    twice = {word: 2 * count for word, count in EXPECTED.items()}
    assert [counts.items() for counts in (WORDS, OPAQUE, PLAIN)] == [twice] * 3


@pytest.mark.usefixtures("_failing")
def test_two_topologies_count_in_one_store_in_tables_of_their_own() -> None:
    run(Stranger())
    builder = TransactionalTopologyBuilder("other", "spout", MemoryTransactionalSpout(DATA, ["word"], 5))
    builder.set_bolt("count", IntoOther()).global_grouping("spout")
    with InProcessCluster() as cluster, cluster.submit(builder.build_topology()) as handle:
        handle.await_drained(60)
    assert WORDS.items() == OPAQUE.items() == EXPECTED


class IntoOther(Stranger):
    def finish_batch(self) -> None:
        OPAQUE.begin_commit(self.context, self.attempt).increment(self.seen)


# ------------------------------------------------------------------------------------ what is said

OPENED: list[Any] = []


class OpensOnce(Stranger):
    """Keeps an open map in its module."""

    def finish_batch(self) -> None:
        if not OPENED:
            OPENED.append(WORDS.begin_commit(self.context, self.attempt))
        OPENED[0].increment(self.seen)


class OpensInInit(Stranger):
    def __init__(self) -> None:
        self.words = None

    def finish_batch(self) -> None:
        WORDS.begin_commit(self.words, self.attempt)  # type: ignore[arg-type]


class OpensTheOtherWayRound(Stranger):
    def finish_batch(self) -> None:
        WORDS.begin_commit(self.attempt, self.context)


class GathersAndOpensInPrepare(Stranger):
    gathers = ("seen",)

    def prepare(self, conf: Any, context: Any, collector: Any, attempt: Any) -> None:
        super().prepare(conf, context, collector, attempt)
        self.words = WORDS.begin_commit(context, attempt)


class GathersAndOpensInExecute(Stranger):
    gathers = ("seen",)

    def execute(self, tup: Any) -> None:
        with STORE.transaction(self.context, self.attempt):
            pass


class NoCommitter(BaseBasicBolt):
    def prepare(self, conf: Any, context: Any) -> None:
        self.context = context

    def execute(self, tup: Any, collector: Any) -> None:
        WORDS.begin_commit(self.context, tup[0]).increment({tup[1]: 1})


class Swallows(Stranger):
    """Catches what the store says of itself."""

    def finish_batch(self) -> None:
        super().finish_batch()
        try:
            with STORE.transaction(self.context, self.attempt) as db:
                db.execute("INSERT INTO missing VALUES (1)")
        except Exception as error:
            assert "missing" in str(error)  # noqa: PT017


class Commits(Stranger):
    def finish_batch(self) -> None:
        super().finish_batch()
        with STORE.transaction(self.context, self.attempt) as db:
            db.execute("INSERT INTO words VALUES ('x', 1, 1)")
            db.commit()


class WithConnection(Stranger):
    def finish_batch(self) -> None:
        super().finish_batch()
        with STORE.transaction(self.context, self.attempt) as db, db:
            db.execute("INSERT INTO words VALUES ('x', 1, 1)")


class RunsAScript(Stranger):
    def finish_batch(self) -> None:
        super().finish_batch()
        with STORE.transaction(self.context, self.attempt) as db:
            db.executescript("INSERT INTO words VALUES ('x', 1, 1)")


class RollsBackByConflict(Stranger):
    """SQLite rolls the whole transaction back, and the user catches it."""

    def finish_batch(self) -> None:
        super().finish_batch()
        with STORE.transaction(self.context, self.attempt) as db:
            for _ in range(2):
                try:
                    db.execute("INSERT OR ROLLBACK INTO words VALUES ('x', 1, 1)")
                except Exception as error:
                    assert "UNIQUE" in str(error)  # noqa: PT017


def gives(method: str, *args: Any) -> type[Stranger]:
    """Return a bolt that calls a map like this."""

    class Gives(Stranger):
        def finish_batch(self) -> None:
            getattr(WORDS.begin_commit(self.context, self.attempt), method)(*args)

    return Gives


class Numpy:
    """A number that is none of Python's."""

    def __repr__(self) -> str:
        return "int64(5)"


@pytest.mark.parametrize(
    ("bolt", "why"),
    [
        (
            OpensOnce,
            r"StoreFailed .*used after the commit of 1:1 had ended; open its maps anew in each finish_batch\(\)",
        ),
        (
            OpensInInit,
            r"RefusedValue .*memory:strangers is asked for the commit of .* in context NoneType, expected the",
        ),
        (OpensTheOtherWayRound, r"in context TransactionAttempt, expected the context and the attempt that prepare"),
        (
            GathersAndOpensInPrepare,
            r"NotCommitting in prepare of 'bolt-0'.* where a bolt declares gathers, its prepare",
        ),
        (GathersAndOpensInExecute, r"NotCommitting in execute of 'bolt-0'.* use a store in finish_batch\(\) of a comm"),
        (
            NoCommitter,
            r"NotCommitting in execute of 'bolt-0'.* use a store in finish_batch\(\) of a committer, or of a",
        ),
        (Swallows, r"in prepare of 'memory:strangers'.*no such table: missing"),
        (Commits, r"own SQL in transaction\(\) of memory:strangers tries to end the transaction, by commit\(\), rollb"),
        (WithConnection, r"own SQL in transaction\(\) of memory:strangers tries to end the transaction, .*'with conn"),
        (RunsAScript, r"own SQL in transaction\(\) of memory:strangers tries to end the transaction, .*by itself; le"),
        (RollsBackByConflict, r"own SQL in transaction\(\) of memory:strangers has ended the transaction"),
        (
            gives("put", "cat", Numpy()),
            r"column 'count' does not take int64\(5\), which is a Numpy, expected exactly int; convert it",
        ),
        (
            gives("put", "cat", None),
            r"column 'count' does not take None, which is no int; leave it out, or call remove",
        ),
        (gives("put", "cat", True), r"column 'count' does not take True, which is a bool, expected exactly int"),
        (
            gives("update", "cat", lambda _: None),
            r"column 'count' does not take None, which is no int; leave it out, or call remove",
        ),
        (gives("put", b"cat", 1), r"column 'word' does not take b'cat', which is a bytes, expected exactly str"),
        (
            gives("put", ("cat", 1), 1),
            r"column 'word' does not take \('cat', 1\), which is a tuple, expected exactly str",
        ),
        (gives("get", ["cat"]), r"column 'word' does not take \['cat'\], which is a list, expected exactly str"),
        (gives("remove", "cat"), r"'words' is given 'cat' as keys, expected a collection of them: \['cat'\]"),
        (gives("multi_get", 5), r"'words' is given 5 as keys, expected a collection of them: \[5\]"),
        (
            gives("multi_put", [("cat", 1)]),
            r"'words' is given \[\('cat', 1\)\], expected a mapping, key by key; make it",
        ),
        (gives("increment", ["cat"]), r"'words' is given \['cat'\], expected a mapping, key by key; make it a dict"),
    ],
)
def test_one_sentence_says_what_to_change(bolt: type[Any], why: str) -> None:
    OPENED.clear()
    with pytest.raises(TopologyFailed, match=why):
        run(bolt())
    assert WORDS.items() in ({}, {"cat": 2, "dog": 3, "owl": 1})  # a whole transaction, or none


class LeavesAThreadBehind(Stranger):
    """Stores from a thread that goes on after the commit; nobody hears what it is told."""

    left: list[threading.Thread]

    def finish_batch(self) -> None:
        words = WORDS.begin_commit(self.context, self.attempt)
        words.increment(self.seen)
        if self.attempt.transaction_id == 1:
            mine = threading.Thread(target=self._late, args=(words, self.attempt), daemon=True)
            mine.start()
            self.left.append(mine)
        elif self.attempt.transaction_id == 3:
            eventually(lambda: not self.left[0].is_alive())

    @staticmethod
    def _late(words: Any, attempt: Any) -> None:
        eventually(lambda: bool(WORDS.items()))  # its transaction is committed
        try:
            words.increment({"cat": 1})
        except Exception as error:
            assert "used after the commit" in str(error)  # noqa: PT017


def test_a_thread_that_stores_too_late_stops_the_topology() -> None:
    LeavesAThreadBehind.left = []
    with pytest.raises(
        TopologyFailed, match=r"used after the commit of 1:1 had ended; .* let a thread of your own that"
    ):
        run(LeavesAThreadBehind())


class TestDeclaring:
    @pytest.mark.parametrize(
        ("made", "why"),
        [
            (lambda: SnapshottableMap("words"), r"is one value of 'words', expected a map of a store"),  # type: ignore[arg-type]
            (
                lambda: SnapshottableMap(WORDS, 5),
                r"'words' has the key 5: column 'word' does not take 5, which .*; give it another: Snapsho",
            ),
            (
                lambda: SnapshottableMap(
                    TransactionalMap(STORE, "t", key={"a": str, "b": str}, value={"v": int}), "total"
                ),
                r"'t' has the key 'total', expected a tuple of 2: transactional map \(a str, b str\)",
            ),
        ],
    )
    def test_one_value_of_a_map_has_a_key_that_the_map_takes(self, made: Any, why: str) -> None:
        with pytest.raises(InvalidStore, match=why):
            made()
