"""The contract of stores on SQLite, in a file and in memory; and what only files do."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from stormline.errors import CorruptRow, InvalidStore, StoreFailed, StoreUnavailable
from stormline.state import MemoryStore, SQLiteStore, TransactionalMap
from tests.contracts.grouped_commits import GroupedCommitsContract, GroupedSQLContract
from tests.contracts.sql_store import RunSQL, SQLStoreContract
from tests.contracts.store import StoreContract, got, incremented, process, put, successor, words
from tests.contracts.store_fences import StoreFencesContract
from tests.contracts.stored_values import StoredValuesContract
from tests.contracts.unread_puts import UnreadPutsContract, UnreadPutsInSQLContract
from tests.kits.stores import CommitFailed, Process

__all__ = ["process", "successor"]


class TestMemoryStore(
    StoreContract,
    StoreFencesContract,
    StoredValuesContract,
    SQLStoreContract,
    UnreadPutsContract,
    UnreadPutsInSQLContract,
    GroupedCommitsContract,
    GroupedSQLContract,
):
    @pytest.fixture
    def store(self) -> Iterator[MemoryStore]:
        made = MemoryStore("test", timeout_secs=0.05)
        yield made
        made.clear()

    @pytest.fixture
    def sql(self, store: MemoryStore) -> RunSQL:
        return lambda text, *parameters: store.connect().native.execute(text, parameters).fetchall()

    def test_another_transaction_is_waited_for_and_then_the_batch_is_replayed(
        self, store: MemoryStore, process: Process, successor: Process
    ) -> None:
        phase = process.begin(1)
        words(store).begin_commit(phase, phase.attempt)
        with pytest.raises(
            StoreUnavailable, match=r"memory:test has been in another transaction for 0.05 s; the batch is"
        ):
            successor.commit(1, incremented(words(store), {"cat": 1}))
        phase.participants.abort()
        successor.commit(1, incremented(words(store), {"cat": 1}))


class TestSQLiteStore(
    StoreContract,
    StoreFencesContract,
    StoredValuesContract,
    SQLStoreContract,
    UnreadPutsContract,
    UnreadPutsInSQLContract,
    GroupedCommitsContract,
    GroupedSQLContract,
):
    @pytest.fixture
    def store(self, tmp_path: Path) -> SQLiteStore:
        return SQLiteStore(tmp_path / "deep" / "store.sqlite", timeout_secs=0.05)

    @pytest.fixture
    def sql(self, store: SQLiteStore) -> RunSQL:
        def run(text: str, *parameters: Any) -> list[tuple[Any, ...]]:
            store.connect().close()
            with closing(sqlite3.connect(store.path, isolation_level=None)) as db:
                return db.execute(text, parameters).fetchall()

        return run

    def test_nothing_is_seen_from_outside_before_the_commit(
        self, store: SQLiteStore, process: Process, sql: RunSQL
    ) -> None:
        counts = words(store)
        process.commit(1, incremented(counts, {"cat": 1}))
        phase = process.begin(2)
        incremented(counts, {"cat": 1})(phase, phase.attempt)
        participant = phase.participants._joined[store][1]
        participant.prepare()
        assert (sql("SELECT count FROM words"), counts.items()) == ([(1,)], {"cat": 1})
        assert sql("SELECT txid FROM stormline_fence") == [(1,)]
        participant.commit()
        assert (sql("SELECT count FROM words"), sql("SELECT txid FROM stormline_fence")) == ([(2,)], [(2,)])

    def test_what_is_committed_is_on_disk(self, store: SQLiteStore) -> None:
        with closing(store.connect()) as connection:
            assert connection.native.execute("PRAGMA synchronous").fetchone() == (2,)  # FULL
            assert connection.native.execute("PRAGMA journal_mode").fetchone() == ("wal",)

    def test_a_file_that_others_write_keeps_commits_waiting_and_then_they_are_replayed(
        self, store: SQLiteStore, process: Process
    ) -> None:
        counts = words(store)
        process.commit(1, incremented(counts, {"cat": 1}))
        with closing(sqlite3.connect(store.path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(
                StoreUnavailable, match=r"^sqlite:.* is not available: database is locked; the batch is"
            ):
                process.commit(2, incremented(counts, {"cat": 1}))
            other.execute("ROLLBACK")
        assert process.commit(2, incremented(counts, {"cat": 1})) == {"cat": 2}

    def test_a_full_disk_is_a_replay(self, store: SQLiteStore, process: Process) -> None:
        kept = TransactionalMap(store, "kept", key={"n": int}, value={"x": bytes})
        process.commit(1, put(kept, {1: b""}))

        def small(context: Any, attempt: Any) -> None:
            with store.transaction(context, attempt) as db:
                db.execute("PRAGMA max_page_count = 20")
            kept.begin_commit(context, attempt).put(2, bytes(1 << 20))

        with pytest.raises(CommitFailed, match=r"StoreUnavailable in prepare of 'sqlite:.*database or disk is full"):
            process.commit(2, small)
        process.commit(2, put(kept, {2: bytes(1 << 20)}))

    def test_a_file_that_is_no_database_is_named(self, store: SQLiteStore, process: Process) -> None:
        path = Path(store.path)
        path.parent.mkdir()
        path.write_text("something else " * 100)
        with pytest.raises(
            StoreFailed, match=r"sqlite:.*store.sqlite fails in opening it: DatabaseError: file is not a d"
        ):
            process.commit(1, incremented(words(store), {"cat": 1}))

    def test_a_folder_that_cannot_be_made_is_named(self, tmp_path: Path, process: Process) -> None:
        (tmp_path / "file").touch()
        with pytest.raises(StoreFailed, match=r"fails in opening it: (NotADirectory|FileExists)Error"):
            process.commit(1, incremented(words(SQLiteStore(tmp_path / "file" / "x" / "y.sqlite")), {"cat": 1}))

    @pytest.mark.parametrize(
        ("change", "why"),
        [
            ("UPDATE words SET count = 'many'", r"column 'count' is 'many', expected int"),
            ("UPDATE words SET count = x'00'", r"column 'count' is b'\\x00', expected int"),
            ("UPDATE words SET txid = 'x'", r"column 'txid' is 'x', expected the number of a transaction"),
        ],
    )
    def test_a_value_of_another_type_than_its_column_is_told_with_table_and_key(
        self, store: SQLiteStore, process: Process, sql: RunSQL, change: str, why: str
    ) -> None:
        process.commit(1, incremented(words(store), {"cat": 1}))
        sql(change)
        with pytest.raises(
            CorruptRow, match=rf"'words' of sqlite:.* holds for key \('cat',\) what .*: {why}; correct the"
        ):
            process.commit(2, incremented(words(store), {"cat": 1}))

    def test_a_text_that_is_not_utf8_is_told_with_table_and_key(
        self, store: SQLiteStore, process: Process, sql: RunSQL
    ) -> None:
        kept = TransactionalMap(store, "kept", key={"n": int}, value={"x": str})
        process.commit(1, put(kept, {1: "a"}))
        sql("UPDATE kept SET x = CAST(x'ff' AS TEXT)")
        with pytest.raises(CorruptRow, match=r"'kept' of sqlite:.* holds for key \(1,\) what .* a text is not UTF-8"):
            process.commit(2, got(kept, [1]))

    def test_a_fence_of_something_else_is_told(self, store: SQLiteStore, process: Process, sql: RunSQL) -> None:
        process.commit(1, incremented(words(store), {"cat": 1}))
        sql("UPDATE stormline_fence SET attempt = 'x'")
        with pytest.raises(
            CorruptRow, match=r"'stormline_fence' of sqlite:.* holds .*'x'.* for topology 'topo', scope ''"
        ):
            process.commit(2, incremented(words(store), {"cat": 1}))


@pytest.mark.parametrize(
    ("made", "why"),
    [
        (lambda: SQLiteStore(""), r"a SQLite store is at '', expected a path"),
        (lambda: SQLiteStore(5), r"a SQLite store is at 5, expected a path"),  # type: ignore[arg-type]
        (lambda: MemoryStore(5), r"a memory store is named 5, expected a text"),  # type: ignore[arg-type]
        (lambda: TransactionalMap("x", "t", {"k": str}, {"v": int}), r"map 't' is in 'x', e"),  # type: ignore[arg-type]
    ],
)
def test_a_store_that_cannot_be_is_refused(made: Any, why: str) -> None:
    with pytest.raises(InvalidStore, match=why):
        made()


@pytest.mark.parametrize(
    ("table", "key", "value", "why"),
    [
        ("", {"k": str}, {"v": int}, r"a table of memory:memory is named '', expected letters, digits and underscores"),
        ("a; DROP TABLE b", {"k": str}, {"v": int}, r"is named 'a; DROP TABLE b', expected letters"),
        ("x" * 49, {"k": str}, {"v": int}, r"at most 48 in all"),
        ("Stormline_x", {"k": str}, {"v": int}, r"named as Stormline's own are; let it not begin with 'stormline_'"),
        ("x_removed", {"k": str}, {"v": int}, r"nor end with '_removed'"),
        ("t", {"k": str}, {"TXID": int}, r"has a column 'txid' twice, or named as those that the map adds"),
        ("t", {"k": str}, {"K": int}, r"has a column 'k' twice"),
        ("t", {"k": str}, {"prev_v": int}, r"has a column 'prev_v' twice, or named"),
        ("t", {}, {"v": int}, r"the key of 't' is {}, expected at least one column, as"),
        ("t", {"k": str}, int, r"the value of 't' is <class 'int'>, expected at least one column"),
        ("t", {'k"': str}, {"v": int}, r"a column of the key of 't' is named 'k\"'"),
        (
            "t",
            {"k": float},
            {"v": int},
            r"column 'k' of the key of 't' is declared as <class 'float'>, expected one of int",
        ),
        (
            "t",
            {"k": str},
            {"v": list},
            r"declared as <class 'list'>, .*; object holds whatever the topology's serializa",
        ),
        ("t", {"k": str}, {"v": "int"}, r"declared as 'int', expected one of int, float"),
    ],
)
def test_a_map_that_cannot_be_is_refused(table: str, key: Any, value: Any, why: str) -> None:
    with pytest.raises(InvalidStore, match=why):
        TransactionalMap(MemoryStore(), table, key=key, value=value)


def test_a_cache_of_less_than_nothing_is_refused() -> None:
    with pytest.raises(InvalidStore, match=r"map 't' has cache=-1, expected a number of rows from 0 on"):
        TransactionalMap(MemoryStore(), "t", key={"k": str}, value={"v": int}, cache=-1)
