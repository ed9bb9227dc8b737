"""The contract of stores on a real PostgreSQL, and what only a server does."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from typing import Any

import psycopg
import pytest

from stormline.errors import CorruptRow, InvalidStore, SecretMissing, StoreFailed, StoreUnavailable
from stormline.state import OpaqueMap, PostgreSQLStore, StateMap, TransactionalMap
from stormline.state.postgresql_bulk import BulkWrite
from tests.contracts.inspected_store import InspectedStoreContract, OneMomentContract
from tests.contracts.sql_store import RunSQL
from tests.contracts.store import KINDS, got, incremented, process, put, successor, words
from tests.contracts.whole_sql_store import WholeSQLStoreContract
from tests.kits.components import eventually
from tests.kits.stores import CommitFailed, Process
from tests.services.postgresql import PostgreSQL

__all__ = ["process", "successor"]

_numbers = itertools.count()


@pytest.fixture
def dsn(postgresql: PostgreSQL) -> str:
    """A schema of the test's own."""
    schema = f"store_{next(_numbers)}"
    with psycopg.connect(postgresql.dsn(), autocommit=True) as db:
        db.execute(f"CREATE SCHEMA {schema}".encode())
    return f"{postgresql.dsn()} options=-csearch_path={schema}"


@pytest.fixture
def store(dsn: str) -> PostgreSQLStore:
    return PostgreSQLStore(dsn, timeout_secs=3)


@pytest.fixture
def sql(store: PostgreSQLStore) -> Iterator[RunSQL]:
    with psycopg.connect(store.dsn, autocommit=True, client_encoding="UTF8") as db:

        def run(text: str, *parameters: Any) -> list[tuple[Any, ...]]:
            cursor = db.execute(text.encode(), parameters or None)
            return cursor.fetchall() if cursor.description else []

        yield run


@contextmanager
def committing_beside_another(
    dsn: str, counts: StateMap, process: Process, sql: RunSQL, of_another: str
) -> Iterator[Future[None]]:
    """Commit transaction 2, many new rows, while somebody stores the one of its keys in the middle."""
    with psycopg.connect(dsn) as other, ThreadPoolExecutor(1) as pool:
        other.execute(f"INSERT INTO words VALUES {of_another}".encode())
        new = pool.submit(process.commit, 2, put(counts, {f"key-{i}": 2 for i in range(1500)}))
        eventually(lambda: sql("SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query ~ 'COPY'"))
        other.commit()
        yield new


class TestPostgreSQLStore(WholeSQLStoreContract):
    parameter = "%s"

    @pytest.mark.parametrize("count", [999, 1000, 2500])
    def test_many_rows_come_back_as_they_were_whichever_way_they_went(
        self, store: PostgreSQLStore, process: Process, count: int
    ) -> None:
        columns = {"i": int, "f": float, "s": str, "b": bytes, "o": object}
        kept = OpaqueMap(store, "Kept", key={"k": str, "n": int}, value=columns)
        rows: dict[Any, Any] = {
            (f"ключ {i}\t\\", -i): (i, i / 3, f"'{i}'\n\t\\N", bytes([i % 256]), [i, None]) for i in range(count)
        }
        rows["none", 0] = (None, None, None, None, {"x": 1})
        process.commit(1, put(kept, rows))
        assert kept.items() == rows
        process.commit(2, put(kept, dict.fromkeys(rows, (1, 1.0, "1", b"1", 1))))
        before = process.commit(
            3, lambda context, attempt: kept.begin_commit(context, attempt).multi_get_before(list(rows))
        )
        assert set(kept.items().values()) == {(1, 1.0, "1", b"1", 1)}
        assert before == [(1, 1.0, "1", b"1", 1)] * len(rows)

    @pytest.mark.parametrize("kind", KINDS)
    def test_many_new_keys_are_copied_and_merged_only_where_there_are_others_between(
        self, store: PostgreSQLStore, process: Process, kind: type[StateMap], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        kept = kind(store, "kept", key={"n": int, "s": str}, value={"x": int})
        ways = [
            ({(i, "b"): 1 for i in range(0, 4000, 2)}, "copied"),  # into an empty table
            ({(i, "b"): 2 for i in range(4000, 5000)}, "copied"),  # behind all
            ({(i, "b"): 3 for i in range(-1000, 0)}, "copied"),  # before all
            ({(i, "b"): 4 for i in range(1, 4000, 2)}, "merged"),  # new, but between others
            ({(i, "b"): 5 for i in range(4999, 6000)}, "merged"),  # the first one is there
            ({(i, "b"): 6 for i in range(-2000, -999)}, "merged"),  # the last one is there
            ({(-3000 - i, s): 7 for i in range(500) for s in "ab"}, "copied"),
        ]
        rows: dict[Any, int] = {}
        for txid, (changes, way) in enumerate(ways, start=1):
            with monkeypatch.context() as patched:
                patched.setattr(BulkWrite, "_merged" if way == "copied" else "_inserted", None)
                process.commit(txid, put(kept, changes))
            rows |= changes
            assert kept.items() == rows
        process.commit(len(ways) + 1, incremented(kept, dict.fromkeys(rows, 1)))
        assert kept.items() == {key: x + 1 for key, x in rows.items()}

    @pytest.mark.parametrize(
        "columns",
        [
            "word text, n bigint, count bigint, txid bigint NOT NULL, PRIMARY KEY (word, n)",  # collated otherwise
            'word text COLLATE "C", n bigint, count bigint, txid bigint NOT NULL, PRIMARY KEY (n, word)',
            'word text COLLATE "C", n bigint, count integer, txid bigint NOT NULL, PRIMARY KEY (word, n)',
        ],
    )
    def test_a_table_that_is_not_as_we_make_it_is_merged_into(
        self, store: PostgreSQLStore, process: Process, sql: RunSQL, monkeypatch: pytest.MonkeyPatch, columns: str
    ) -> None:
        sql(f"CREATE TABLE mine ({columns})")
        monkeypatch.setattr(BulkWrite, "_inserted", None)
        mine = TransactionalMap(store, "mine", key={"word": str, "n": int}, value={"count": int})
        for txid in (1, 2):
            process.commit(txid, put(mine, {(f"{letter}{i}", i): txid for i in range(600) for letter in "aB"}))
        assert set(sql("SELECT count, txid FROM mine")) == {(2, 2)}

    @pytest.mark.parametrize(("given", "used"), [("4MB", "32MB"), ("64MB", "64MB")])
    def test_many_rows_are_merged_in_32_mb_or_in_what_the_server_gives_if_that_is_more(
        self, dsn: str, process: Process, monkeypatch: pytest.MonkeyPatch, given: str, used: str
    ) -> None:
        merged, seen = BulkWrite._merged, []

        def watched(self: BulkWrite, older: bool) -> int:
            rows = merged(self, older)
            seen.append(self._db.execute("SHOW work_mem").fetchone())
            return rows

        monkeypatch.setattr(BulkWrite, "_merged", watched)
        options = dsn.partition("options=")
        counts = words(PostgreSQLStore(f"{options[0]}options='-cwork_mem={given} {options[2]}'"))
        for txid in (1, 2):
            process.commit(txid, put(counts, {f"key-{i}": txid for i in range(1500)}))
        assert seen == [(used,)]

    def test_a_key_that_somebody_stores_while_many_are_copied_is_merged(
        self, store: PostgreSQLStore, process: Process, sql: RunSQL
    ) -> None:
        counts = words(PostgreSQLStore(store.dsn, timeout_secs=60))
        process.commit(1, put(counts, {"k": 1}))
        with committing_beside_another(store.dsn, counts, process, sql, of_another="('key-700', 70, 1)") as new:
            new.result(60)
        assert counts.items() == {"k": 1} | {f"key-{i}": 2 for i in range(1500)}

    def test_a_newer_row_that_somebody_stores_while_many_are_copied_stops_the_topology(
        self, store: PostgreSQLStore, process: Process, sql: RunSQL
    ) -> None:
        counts = words(PostgreSQLStore(store.dsn, timeout_secs=60))
        process.commit(1, put(counts, {"k": 1}))
        with (
            committing_beside_another(store.dsn, counts, process, sql, of_another="('key-700', 70, 9)") as new,
            pytest.raises(CommitFailed, match=r"holds key \('key-700',\) as stored by transaction 9, and this is t"),
        ):
            new.result(60)
        assert counts.items() == {"k": 1, "key-700": 70}

    def test_one_of_many_new_rows_that_a_constraint_refuses_is_named(
        self, store: PostgreSQLStore, process: Process, sql: RunSQL
    ) -> None:
        counts = words(store)
        process.commit(1, put(counts, {}))
        sql("ALTER TABLE words ADD CHECK (count <> 1234)")
        with pytest.raises(
            CommitFailed, match=r"CheckViolation: .*; it is the row of key \('key-1234',\): correct what"
        ):
            process.commit(2, put(counts, {f"key-{i}": i for i in range(1500)}))
        assert counts.items() == {}

    def test_many_new_rows_go_into_a_table_that_takes_no_copy(
        self, store: PostgreSQLStore, process: Process, sql: RunSQL
    ) -> None:
        process.commit(1, put(words(store), {}))
        schema = sql("SELECT current_schema()")[0][0]
        role = f"copies_{schema}"
        sql(f"CREATE ROLE {role} LOGIN")
        sql(f"GRANT ALL ON SCHEMA {schema} TO {role}")
        sql(f"GRANT ALL ON ALL TABLES IN SCHEMA {schema} TO {role}")
        sql("ALTER TABLE words ENABLE ROW LEVEL SECURITY")
        sql("CREATE POLICY all_rows ON words USING (true)")
        counts = words(PostgreSQLStore(store.dsn.replace("user=chaos", f"user={role}")))
        other = Process(epoch=2)
        other.commit(2, put(counts, {f"key-{i}": i for i in range(1500)}))
        other.end()
        assert words(store).items() == {f"key-{i}": i for i in range(1500)}

    def test_a_connection_that_the_server_closed_meanwhile_is_replaced(
        self, store: PostgreSQLStore, process: Process, sql: RunSQL
    ) -> None:
        process.commit(1, incremented(words(store), {"cat": 1}))
        sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'stormline'")
        process.commit(2, incremented(words(store), {"cat": 1}))
        assert words(store).items() == {"cat": 2}

    def test_a_connection_that_is_cut_in_a_commit_is_a_replay(
        self, store: PostgreSQLStore, process: Process, sql: RunSQL
    ) -> None:
        counts = words(store)

        def cut(context: Any, attempt: Any) -> None:
            incremented(counts, {"cat": 1})(context, attempt)
            with store.transaction(context, attempt) as db:
                pid = db.execute("SELECT pg_backend_pid()").fetchone()[0]
            sql("SELECT pg_terminate_backend(%s, 5000)", pid)

        with pytest.raises(CommitFailed, match=r"StoreUnavailable in prepare of 'postgresql:.* is not available: .*re"):
            process.commit(1, cut)
        process.commit(1, incremented(counts, {"cat": 1}))
        assert counts.items() == {"cat": 1}

    def test_a_server_that_is_away_is_a_replay(self, process: Process) -> None:
        away = PostgreSQLStore("host=127.0.0.1 port=1 dbname=x")
        with pytest.raises(StoreUnavailable, match=r"postgresql:host=127.0.0.1 port=1 dbname=x is not available: .*re"):
            process.commit(1, incremented(words(away), {"cat": 1}))

    def test_a_database_that_does_not_exist_stops_the_topology(self, postgresql: PostgreSQL, process: Process) -> None:
        wrong = PostgreSQLStore(postgresql.dsn().replace("dbname=postgres", "dbname=nowhere"))
        with pytest.raises(StoreFailed, match=r"refuses the connection: .*database \"nowhere\" does not exist"):
            process.commit(1, incremented(words(wrong), {"cat": 1}))

    def test_a_second_driver_waits_for_the_fence_and_then_finds_what_the_first_has_stored(
        self, store: PostgreSQLStore, process: Process, successor: Process
    ) -> None:
        counts = words(store)
        process.commit(1, incremented(counts, {"cat": 1}))
        phase = process.begin(2)
        incremented(counts, {"cat": 1})(phase, phase.attempt)
        quick = PostgreSQLStore(store.dsn, timeout_secs=0.2)
        with pytest.raises(StoreUnavailable, match=r"is not available: (LockNotAvailable|QueryCanceled)"):
            successor.commit(2, incremented(words(quick), {"cat": 1}))
        assert phase.participants.commit(lambda: True) is None
        assert successor.commit(2, incremented(words(quick), {"cat": 1})) == {"cat": 2}
        assert counts.items() == {"cat": 2}

    def test_two_tasks_that_make_a_table_at_the_same_moment_are_one_of_them_a_replay(
        self, store: PostgreSQLStore, process: Process, successor: Process, sql: RunSQL
    ) -> None:
        process.commit(1, put(TransactionalMap(store, "others", key={"word": str}, value={"count": int}), {}))
        counts = words(PostgreSQLStore(store.dsn, timeout_secs=60))
        first = process.begin(2, scope="words:0/2")
        incremented(counts, {"cat": 1})(first, first.attempt)
        with ThreadPoolExecutor(1) as pool:
            second = pool.submit(successor.commit, 2, incremented(counts, {"dog": 1}), scope="words:1/2")
            waits = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%stormline_maps%'"
            eventually(lambda: sql(waits))
            assert first.participants.commit(lambda: True) is None
            with pytest.raises(StoreUnavailable, match=r"table 'words' has been made by somebody else at the same mom"):
                second.result(60)
        successor.commit(2, incremented(counts, {"dog": 1}), scope="words:1/2")
        assert counts.items() == {"cat": 1, "dog": 1}

    def test_a_transaction_that_failed_and_was_caught_is_not_taken_for_committed(
        self, store: PostgreSQLStore, process: Process
    ) -> None:
        with closing(store.connect()) as connection:
            connection.begin()
            with pytest.raises(psycopg.Error):
                connection.native.execute("SELECT 1 / 0")
            with pytest.raises(StoreFailed, match=r"answered COMMIT by ROLLBACK: nothing is stored"):
                connection.commit()

    def test_a_role_without_rights_is_told(self, store: PostgreSQLStore, process: Process, sql: RunSQL) -> None:
        process.commit(1, incremented(words(store), {"cat": 1}))
        schema = sql("SELECT current_schema()")[0][0]
        role = f"role_{schema}"
        sql(f"CREATE ROLE {role} LOGIN")
        sql(f"GRANT USAGE ON SCHEMA {schema} TO {role}")
        sql(f"GRANT ALL ON stormline_fence, stormline_maps TO {role}")
        poor = PostgreSQLStore(store.dsn.replace("user=chaos", f"user={role}"))
        other = Process(epoch=2)
        with pytest.raises(StoreFailed, match=r"fails in reading table 'words': InsufficientPrivilege: permission den"):
            other.commit(2, incremented(words(poor), {"cat": 1}))
        other.end()

    def test_a_key_longer_than_its_column_stops_the_topology_and_stores_nothing(
        self, store: PostgreSQLStore, process: Process, sql: RunSQL
    ) -> None:
        sql("CREATE TABLE mine (word VARCHAR(3) PRIMARY KEY, seen BIGINT, txid BIGINT)")
        mine = TransactionalMap(store, "mine", key={"word": str}, value={"seen": int})
        with pytest.raises(CommitFailed, match=r"fails in writing table 'mine': StringDataRightTruncation: value too"):
            process.commit(1, incremented(mine, {"cat": 1, "mouse": 1}))
        assert mine.items() == {}

    def test_keys_are_in_the_order_of_bytes(self, store: PostgreSQLStore, process: Process, sql: RunSQL) -> None:
        process.commit(1, incremented(words(store), {"a": 1, "B": 1, "ä": 1, "Z": 1}))
        assert [row[0] for row in sql("SELECT word FROM words ORDER BY word")] == ["B", "Z", "a", "ä"]

    def test_a_timestamp_that_no_python_holds_is_told_with_table_and_key(
        self, store: PostgreSQLStore, process: Process, sql: RunSQL
    ) -> None:
        kept = TransactionalMap(store, "kept", key={"n": int}, value={"x": float})
        process.commit(1, put(kept, {1: 1.0}))
        sql("ALTER TABLE kept ALTER x TYPE text")
        with pytest.raises(CorruptRow, match=r"'kept' of postgresql:.* holds for key \(1,\) .*column 'x' is '1', expe"):
            process.commit(2, got(kept, [1]))


@pytest.mark.parametrize(
    "made",
    [
        lambda: PostgreSQLStore("host=db password=hunter22"),
        lambda: PostgreSQLStore("postgresql://me:hunter22@db/x"),
        lambda: PostgreSQLStore("host=db", password="hunter22"),
        lambda: PostgreSQLStore(5),  # type: ignore[arg-type]
    ],
)
def test_a_password_in_the_clear_is_refused_and_not_shown(made: Any) -> None:
    with pytest.raises(InvalidStore, match=r"not shown here.*env:NAME") as caught:
        made()
    assert "hunter22" not in str(caught.value)


def test_a_password_is_read_where_the_connection_is_made(
    dsn: str, process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = PostgreSQLStore(dsn, password="env:STORE_PASSWORD")
    with pytest.raises(SecretMissing, match=r"the password of postgresql:.* refers to env:STORE_PASSWORD, which is no"):
        process.commit(1, incremented(words(store), {"cat": 1}))
    monkeypatch.setenv("STORE_PASSWORD", "hunter22hunter22")
    monkeypatch.setenv("STORE_DSN", f"{dsn} password=hunter22hunter22")
    process.commit(1, incremented(words(store), {"cat": 1}))
    whole = PostgreSQLStore("env:STORE_DSN")
    assert words(whole).items() == {"cat": 1}
    assert str(whole) == "postgresql:env:STORE_DSN"


class TestInspectedPostgreSQLStore(InspectedStoreContract, OneMomentContract):
    pass
