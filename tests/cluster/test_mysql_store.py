"""The contract of stores on a real MariaDB, and what only a server does."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pymysql
import pytest

from stormline.errors import InvalidStore, StoreFailed, StoreUnavailable
from stormline.state import MySQLStore, TransactionalMap
from tests.contracts.grouped_commits import GroupedCommitsContract, GroupedSQLContract
from tests.contracts.inspected_store import InspectedStoreContract, OneMomentContract
from tests.contracts.sql_store import RunSQL, SQLStoreContract
from tests.contracts.store import StoreContract, incremented, process, put, successor, words
from tests.contracts.store_fences import StoreFencesContract
from tests.contracts.stored_values import StoredValuesContract
from tests.contracts.unread_puts import UnreadPutsContract, UnreadPutsInSQLContract
from tests.kits.stores import CommitFailed, Process
from tests.services.mariadb import MariaDB

__all__ = ["process", "successor"]

_numbers = itertools.count()


@pytest.fixture
def store(mariadb: MariaDB) -> MySQLStore:
    """A database of the test's own."""
    name = f"store_{next(_numbers)}"
    with mariadb.connected() as db, db.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {name}")
    return MySQLStore(mariadb.url(name), timeout_secs=2)


@pytest.fixture
def sql(store: MySQLStore) -> Iterator[RunSQL]:
    host, _, rest = store.url.partition("@")[2].partition(":")
    port, _, name = rest.partition("/")
    db = pymysql.connect(host=host, port=int(port), user="stormline", database=name, autocommit=True, ssl_disabled=True)

    def run(text: str, *parameters: Any) -> list[tuple[Any, ...]]:
        with db.cursor() as cursor:
            cursor.execute(text, parameters or None)
            return list(cursor.fetchall()) if cursor.description else []

    yield run
    db.close()


class TestMySQLStore(
    StoreContract,
    StoreFencesContract,
    StoredValuesContract,
    SQLStoreContract,
    UnreadPutsContract,
    UnreadPutsInSQLContract,
    GroupedCommitsContract,
    GroupedSQLContract,
):
    parameter = "%s"

    def quoted(self, name: str) -> str:
        return f"`{name}`"

    def test_keys_that_differ_in_case_accents_or_spaces_at_the_end_are_different(
        self, store: MySQLStore, process: Process
    ) -> None:
        different = ["a", "A", "ä", "a ", "a  ", "ａ"]
        process.commit(1, incremented(words(store), dict.fromkeys(different, 1)))
        assert words(store).items() == dict.fromkeys(different, 1)

    def test_a_table_whose_collation_takes_keys_for_one_is_refused(
        self, store: MySQLStore, process: Process, sql: RunSQL
    ) -> None:
        sql(
            "CREATE TABLE mine (word VARCHAR(9) COLLATE utf8mb4_general_ci PRIMARY KEY, seen BIGINT, txid BIGINT) "
            "DEFAULT CHARSET utf8mb4"
        )
        mine = TransactionalMap(store, "mine", key={"word": str}, value={"seen": int})
        with pytest.raises(Exception, match=r"'word' of table 'mine' .* is of type varchar\(9\) COLLATE utf8mb4_gener"):
            process.commit(1, incremented(mine, {"cat": 1}))

    def test_a_connection_that_the_server_closed_meanwhile_is_replaced(
        self, store: MySQLStore, process: Process, sql: RunSQL
    ) -> None:
        process.commit(1, incremented(words(store), {"cat": 1}))
        for (number,) in sql(
            "SELECT id FROM information_schema.processlist WHERE id <> connection_id() AND db = database()"
        ):
            sql(f"KILL {number}")
        process.commit(2, incremented(words(store), {"cat": 1}))
        assert words(store).items() == {"cat": 2}

    def test_a_second_driver_waits_for_the_fence_and_then_finds_what_the_first_has_stored(
        self, store: MySQLStore, process: Process, successor: Process
    ) -> None:
        counts = words(store)
        process.commit(1, incremented(counts, {"cat": 1}))
        phase = process.begin(2)
        incremented(counts, {"cat": 1})(phase, phase.attempt)
        quick = MySQLStore(store.url, timeout_secs=1)
        with pytest.raises(StoreUnavailable, match=r"is not available: .*Lock wait timeout exceeded"):
            successor.commit(2, incremented(words(quick), {"cat": 1}))
        assert phase.participants.commit(lambda: True) is None
        assert successor.commit(2, incremented(words(quick), {"cat": 1})) == {"cat": 2}

    def test_a_server_that_is_away_is_a_replay(self, process: Process) -> None:
        away = MySQLStore("mysql://stormline@127.0.0.1:1/x")
        with pytest.raises(StoreUnavailable, match=r"mysql://stormline@127.0.0.1:1/x is not available: OperationalErr"):
            process.commit(1, incremented(words(away), {"cat": 1}))

    def test_a_user_or_a_database_that_does_not_exist_stops_the_topology(
        self, mariadb: MariaDB, process: Process
    ) -> None:
        for wrong in (mariadb.url("nowhere"), mariadb.url("mysql").replace("stormline", "nobody")):
            with pytest.raises(StoreFailed, match=r"fails in connecting: OperationalError: .*"):
                process.commit(1, incremented(words(MySQLStore(wrong)), {"cat": 1}))

    def test_a_key_longer_than_its_column_stops_the_topology_and_stores_nothing(
        self, store: MySQLStore, process: Process
    ) -> None:
        with pytest.raises(CommitFailed, match=r"fails in writing table 'words': DataError: .*Data too long for colum"):
            process.commit(1, incremented(words(store), {"cat": 1, "x" * 256: 1}))
        assert words(store).items() == {}

    def test_a_decimal_that_would_be_rounded_is_refused(self, store: MySQLStore, process: Process) -> None:
        kept = TransactionalMap(store, "kept", key={"n": int}, value={"x": Decimal})
        with pytest.raises(CommitFailed, match=r"35 digits before the point and 30 after it, and 1E-31 has more; use"):
            process.commit(1, put(kept, {1: Decimal("1e-31")}))
        with pytest.raises(CommitFailed, match=r"RefusedValue"):
            process.commit(1, put(kept, {1: Decimal("1e35")}))
        assert kept.items() == {}


@pytest.mark.parametrize(
    "made",
    [
        lambda: MySQLStore("mysql://me:hunter22@db/x"),
        lambda: MySQLStore("mysql://me@db/x", password="hunter22"),
        lambda: MySQLStore("postgresql://me@db/x"),
        lambda: MySQLStore("mysql://me@db:port/x"),
        lambda: MySQLStore("mysql://db"),
        lambda: MySQLStore(5),  # type: ignore[arg-type]
    ],
)
def test_a_url_that_is_none_or_holds_a_password_is_refused_and_not_shown(made: Any) -> None:
    with pytest.raises(InvalidStore, match=r"not shown here, expected mysql://user@host:port/database") as caught:
        made()
    assert "hunter22" not in str(caught.value)


class TestInspectedMySQLStore(InspectedStoreContract, OneMomentContract):
    pass
