"""Stores in code as strangers write it: what comes out is right, whatever fails in a commit."""

from __future__ import annotations

import copy
import pickle
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from stormline import FailedException, MemoryTransactionalSpout, TransactionalTopologyBuilder
from stormline.state import StateMap
from stormline.state.sqlite_connection import SQLiteConnection
from stormline.testing import InProcessCluster
from tests.kits.strangers import BATCHES, DATA, EXPECTED, LISTS, OPAQUE, PLAIN, REMEMBERED, STORE, WORDS, Stranger, run


@pytest.fixture(autouse=True)
def _clear() -> Iterator[None]:
    STORE.clear()
    yield
    STORE.clear()


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
