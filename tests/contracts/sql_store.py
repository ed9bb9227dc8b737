"""What every store keeps to whose database speaks SQL. A test module subclasses this beside `StoreContract`.

`$table` and the like in a statement are names as the database writes them; see `SQL`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from stormline.errors import CorruptRow, StoreFailed, StoreMismatch, TableMismatch
from stormline.state import NonTransactionalMap, OpaqueMap, Store, TransactionalMap
from tests.contracts.store import got, incremented, put, words
from tests.kits.stores import CommitFailed, Process

RunSQL = Callable[..., list[tuple[Any, ...]]]
"""Runs one statement outside of Stormline, and commits; a test module gives it as the fixture `sql`."""


class SQLStoreContract:
    parameter = "?"

    def own(self, store: Store, text: str, *parameters: Any) -> Any:
        """Return a bolt's work: own SQL in the transaction that the maps store in."""

        def work(context: Any, attempt: Any) -> list[tuple[Any, ...]]:
            with store.transaction(context, attempt) as connection:
                cursor = connection.cursor()
                cursor.execute(text.replace("?", self.parameter), parameters)
                return [tuple(row) for row in cursor.fetchall()] if cursor.description else []

        return work

    # ------------------------------------------------------------------------------------ tables are for people

    def test_any_client_can_read_a_map(self, store: Store, process: Process, sql: RunSQL) -> None:
        counts = OpaqueMap(store, "Words", key={"word": str, "n": int}, value={"count": int, "Rate": float})
        process.commit(1, put(counts, {("cat", 1): (3, 0.5)}))
        process.commit(2, put(counts, {("cat", 1): (4, 0.25), ("dog", 2): (1, 1.0)}))
        q = self.quoted
        columns = ", ".join(map(q, ["word", "n", "count", "Rate", "txid", "prev_count", "prev_Rate", "prev_txid"]))
        found = sql(f"SELECT {columns} FROM {q('Words')} ORDER BY 1")
        assert found == [
            ("cat", 1, 4, 0.25, 2, 3, 0.5, 1),
            ("dog", 2, 1, 1.0, 2, None, None, None),
        ], found
        assert sql(f"SELECT sum({q('count')}) FROM {q('Words')}") == [(5,)]
        assert sql("SELECT topology, scope, epoch, txid, attempt FROM stormline_fence") == [("topo", "", 1, 2, 2)]

    def quoted(self, name: str) -> str:
        """Return a name as the database writes it."""
        return f'"{name}"'

    def test_a_table_of_the_users_is_adopted_where_it_has_the_columns(
        self, store: Store, process: Process, sql: RunSQL
    ) -> None:
        sql("CREATE TABLE mine (word VARCHAR(50) PRIMARY KEY, seen BIGINT, txid BIGINT, note VARCHAR(50) DEFAULT 'x')")
        sql("INSERT INTO mine (word, seen, txid) VALUES ('cat', 41, 0)")
        mine = TransactionalMap(store, "mine", key={"word": str}, value={"seen": int})
        assert process.commit(1, incremented(mine, {"cat": 1, "dog": 1})) == {"cat": 42, "dog": 1}
        assert sql("SELECT word, seen, txid, note FROM mine ORDER BY word") == [("cat", 42, 1, "x"), ("dog", 1, 1, "x")]
        bare = NonTransactionalMap(store, "bare", key={"word": str}, value={"seen": int})
        sql("CREATE TABLE bare (word VARCHAR(50) PRIMARY KEY, seen BIGINT)")
        process.commit(2, incremented(bare, {"cat": 1}))
        assert sql("SELECT word, seen FROM bare") == [("cat", 1)]

    @pytest.mark.parametrize(
        ("create", "why"),
        [
            ("word VARCHAR(9) PRIMARY KEY, seen BIGINT", r"'mine' of .* no column 'txid', .*\['seen', 'word'\]: add"),
            ("word VARCHAR(9) PRIMARY KEY, seen VARCHAR(9), txid BIGINT", r"column 'seen' of table 'mine' .* of type"),
            ("word VARCHAR(9), seen BIGINT, txid BIGINT", r"'mine' of .* has the primary key \[\], expected \['word'"),
            (
                "word VARCHAR(9), n INT, seen BIGINT, txid BIGINT, PRIMARY KEY (word, n)",
                r"'mine' of .* has the primary key \['word', 'n'\], expected \['word'\]",
            ),
        ],
    )
    def test_a_table_of_another_shape_is_told_with_its_remedy(
        self, store: Store, process: Process, sql: RunSQL, create: str, why: str
    ) -> None:
        sql(f"CREATE TABLE mine ({create})")
        mine = TransactionalMap(store, "mine", key={"word": str}, value={"seen": int})
        with pytest.raises(TableMismatch, match=why):
            process.commit(1, incremented(mine, {"cat": 1}))
        assert sql("SELECT word, seen FROM mine") == []

    def test_a_row_that_is_newer_than_the_transaction_stops_the_topology(
        self, store: Store, process: Process, sql: RunSQL
    ) -> None:
        counts = words(store)
        process.commit(1, incremented(counts, {"cat": 1, "dog": 1}))
        sql(f"UPDATE words SET txid = 9 WHERE word = {self.parameter}", "cat")
        assert process.commit(2, incremented(counts, {"dog": 1})) == {"dog": 2}
        with pytest.raises(
            StoreMismatch, match=r"'words' holds key \('cat',\) as stored by transaction 9, .* is transac"
        ):
            process.commit(3, incremented(counts, {"cat": 1}))

    @pytest.mark.parametrize(
        ("kind", "change", "why"),
        [
            (TransactionalMap, "txid = -1", r"holds -1 as txid of key \('cat',\)|key \('cat',\)"),
            (NonTransactionalMap, "{count} = NULL", r"key \('cat',\) .*column 'count' is empty"),
        ],
    )
    def test_a_row_that_no_map_writes_stops_the_topology(
        self, store: Store, process: Process, sql: RunSQL, kind: Any, change: str, why: str
    ) -> None:
        counts = words(store, kind)
        process.commit(1, incremented(counts, {"cat": 1}))
        sql(f"UPDATE words SET {change.format(count=self.quoted('count'))}")
        with pytest.raises(CorruptRow, match=rf"'words'.*{why}"):
            process.commit(2, incremented(counts, {"cat": 1}))

    def test_bytes_that_no_map_writes_stop_the_topology(self, store: Store, process: Process, sql: RunSQL) -> None:
        kept = TransactionalMap(store, "kept", key={"n": int}, value={"x": object})
        process.commit(1, put(kept, {1: [1]}))
        sql(f"UPDATE kept SET x = {self.parameter}", b"\xc1cut")
        with pytest.raises(CorruptRow, match=r"'kept' holds a value of key \(1,\) that the topology cannot read: "):
            process.commit(2, got(kept, [1]))

    # ------------------------------------------------------------------------------------ own SQL

    def test_own_sql_is_in_the_same_transaction_and_sees_what_the_maps_stored(
        self, store: Store, process: Process, sql: RunSQL
    ) -> None:
        counts = words(store)
        sql("CREATE TABLE best (word VARCHAR(50) PRIMARY KEY, seen BIGINT)")
        count = self.quoted("count")
        best = f"INSERT INTO best SELECT word, {count} FROM words ORDER BY {count} DESC LIMIT 1"

        def fails(context: Any, attempt: Any) -> None:
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            process.commit(1, incremented(counts, {"cat": 2, "dog": 1}), self.own(store, best), fails)
        assert (sql("SELECT * FROM best"), counts.items()) == ([], {})
        process.commit(1, incremented(counts, {"cat": 2, "dog": 1}), self.own(store, best))
        assert sql("SELECT * FROM best") == [("cat", 2)]

    def test_own_sql_of_a_transaction_that_is_stored_changes_nothing(
        self, store: Store, process: Process, successor: Process, sql: RunSQL
    ) -> None:
        counts = words(store)
        sql("CREATE TABLE log (txid BIGINT PRIMARY KEY, note VARCHAR(50))")
        sql("CREATE TABLE tally (n BIGINT)")
        sql("INSERT INTO tally VALUES (0)")
        work = (
            incremented(counts, {"cat": 1}),
            self.own(store, "UPDATE tally SET n = n + 1"),
            self.own(store, "INSERT INTO log VALUES (?, ?)", 1, "first"),
            incremented(counts, {"dog": 1}),
        )
        process.commit(1, *work)
        assert successor.commit(1, lambda context, attempt: store.is_stored(context, attempt)) is True
        successor.commit(1, *work)
        assert (sql("SELECT * FROM log"), sql("SELECT * FROM tally")) == ([(1, "first")], [(1,)])
        assert counts.items() == {"cat": 1, "dog": 1}
        assert successor.commit(2, lambda context, attempt: store.is_stored(context, attempt)) is False

    def test_own_sql_that_fails_fails_the_transaction_whoever_catches_it(
        self, store: Store, process: Process, sql: RunSQL
    ) -> None:
        counts = words(store)
        sql("CREATE TABLE log (txid BIGINT PRIMARY KEY)")

        def work(context: Any, attempt: Any) -> None:
            counts.begin_commit(context, attempt).increment({"cat": 1})
            for _ in range(2):
                try:
                    self.own(store, "INSERT INTO log VALUES (1)")(context, attempt)
                except Exception as error:
                    assert re.search("log|PRIMARY", str(error))  # noqa: PT017

        with pytest.raises(CommitFailed, match=r"log|PRIMARY"):
            process.commit(1, work)
        assert (sql("SELECT * FROM log"), counts.items()) == ([], {})

    @pytest.mark.parametrize("ends", ["commit", "rollback", "COMMIT"])
    def test_own_sql_that_ends_the_transaction_stops_the_topology(
        self, store: Store, process: Process, successor: Process, sql: RunSQL, ends: str
    ) -> None:
        counts = words(store)
        sql("CREATE TABLE tally (n BIGINT)")

        def work(context: Any, attempt: Any) -> None:
            counts.begin_commit(context, attempt).increment({"cat": 1})
            with store.transaction(context, attempt) as connection:
                connection.cursor().execute("INSERT INTO tally VALUES (1)")
                if ends.isupper():
                    connection.cursor().execute(ends)
                else:
                    getattr(connection, ends)()

        with pytest.raises(StoreFailed, match=r"own SQL in transaction\(\) of .* the transaction, by .*; leave that"):
            process.commit(1, work)
        if ends.islower():  # as SQL only SQLite lets us refuse it beforehand
            assert (sql("SELECT * FROM tally"), counts.items()) == ([], {})
        successor.commit(1, incremented(counts, {"cat": 1}))
        assert counts.items() == {"cat": 1}
