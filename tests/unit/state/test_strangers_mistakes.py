"""Stores in code as strangers write it by mistake: a sentence says what to change, and nothing half is stored."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from stormline import BaseBasicBolt
from stormline.errors import InvalidStore, TopologyFailed
from stormline.state import SnapshottableMap, TransactionalMap
from tests.kits.strangers import STORE, WORDS, Stranger, run


@pytest.fixture(autouse=True)
def _clear() -> Iterator[None]:
    STORE.clear()
    yield
    STORE.clear()


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

    next_begun: threading.Event
    left: list[threading.Thread]

    def finish_batch(self) -> None:
        words = WORDS.begin_commit(self.context, self.attempt)
        words.increment(self.seen)
        if self.attempt.transaction_id == 1:
            self.left.append(threading.Thread(target=self._late, args=(words,), daemon=True))
            self.left[0].start()
        elif self.attempt.transaction_id == 2:
            self.next_begun.set()
            self.left[0].join()

    def _late(self, words: Any) -> None:
        self.next_begun.wait(60)
        try:
            words.increment({"cat": 1})
        except Exception as error:
            assert "used after the commit" in str(error)  # noqa: PT017


def test_a_thread_that_stores_too_late_stops_the_topology() -> None:
    LeavesAThreadBehind.left, LeavesAThreadBehind.next_begun = [], threading.Event()
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
