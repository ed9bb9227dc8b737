"""What other programs, and own SQL, do to a store's transactions and sessions: each word counts once all the same."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest

from stormline.state import PostgreSQLStore
from tests.cluster.store_databases import MariaDBDatabase, PostgreSQLDatabase, RedisDatabase
from tests.kits.bad_days import TOPOLOGY, Counts, bad_day, counts_once, found_stored, run
from tests.kits.components import eventually

FENCE = f"SELECT txid FROM stormline_fence WHERE topology = '{TOPOLOGY}' FOR UPDATE"


# ---------------------------------------------------------------------------------------- other programs


@contextmanager
def other_program(*statements: str, connection: Any) -> Iterator[threading.Thread]:
    """Another program, which runs statements in a thread of its own when that is started, and then gives up."""

    def work() -> None:
        for text in statements:
            run(connection, text)
        connection.rollback()

    thread = threading.Thread(target=work)
    yield thread
    thread.join(60)
    connection.close()


def test_a_commit_that_is_the_victim_of_a_deadlock_in_postgresql_is_replayed(
    on_postgresql: PostgreSQLDatabase, caplog: pytest.LogCaptureFixture
) -> None:
    """The other program holds a row that own SQL wants, and wants the fence that the commit holds."""
    caplog.set_level("INFO", "stormline")
    on_postgresql.sql("CREATE TABLE held (n int PRIMARY KEY)")
    on_postgresql.sql("INSERT INTO held VALUES (1)")
    other = psycopg.connect(on_postgresql.dsn())
    run(other, "SELECT * FROM held FOR UPDATE")
    # So that it is the commit that is ended.
    with other_program("SET LOCAL deadlock_timeout = '60s'", FENCE, connection=other) as program:

        def deadlock(bolt: Counts) -> None:
            program.start()
            waits = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
            eventually(lambda: on_postgresql.sql(waits))  # the server looks for a deadlock once, a second from now
            bolt.own("SELECT * FROM held FOR UPDATE")

        with bad_day(on_postgresql.store(), stored=deadlock) as day:
            pass
    assert day.replays >= 1
    assert "StoreUnavailable" in caplog.text
    assert "DeadlockDetected" in caplog.text
    counts_once(on_postgresql.direct())


def test_a_commit_that_is_the_victim_of_a_deadlock_in_mariadb_is_replayed(
    on_mariadb: MariaDBDatabase, caplog: pytest.LogCaptureFixture
) -> None:
    """The other program has changed more, so that the server ends the commit."""
    caplog.set_level("INFO", "stormline")
    on_mariadb.sql("CREATE TABLE held (n int PRIMARY KEY)")
    on_mariadb.sql(f"INSERT INTO held VALUES {', '.join(f'({n})' for n in range(500))}")
    other = on_mariadb.mariadb.connected(database=on_mariadb.name)
    other.begin()
    run(other, "UPDATE held SET n = n + 1000")
    with other_program(FENCE, connection=other) as program:

        def deadlock(bolt: Counts) -> None:
            program.start()
            waits = "SELECT count(*) FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'"
            eventually(lambda: on_mariadb.sql(waits) == [(1,)])
            bolt.own("SELECT * FROM held FOR UPDATE")

        with bad_day(on_mariadb.store(), stored=deadlock) as day:
            pass
    assert day.replays >= 1
    assert "StoreUnavailable" in caplog.text
    assert "Deadlock found" in caplog.text
    counts_once(on_mariadb.direct())


@pytest.mark.parametrize("isolation", ["repeatable read", "serializable"])
def test_a_commit_that_cannot_be_serialized_is_replayed(
    on_postgresql: PostgreSQLDatabase, isolation: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The role's transactions are isolated, and another program writes a row after the commit has begun."""
    caplog.set_level("INFO", "stormline")
    level = isolation.replace(" ", "\\\\ ")
    dsn = on_postgresql.dsn(on_postgresql.proxy.port, more=f"-cdefault_transaction_isolation={level}")

    def touch(bolt: Counts) -> None:
        on_postgresql.sql("UPDATE words SET seen = seen")

    with bad_day(PostgreSQLStore(dsn), begun=touch) as day:
        pass
    assert day.replays >= 1
    assert "SerializationFailure" in caplog.text
    counts_once(on_postgresql.direct())


def test_a_commit_whose_fence_somebody_else_wrote_in_redis_is_replayed(
    on_redis: RedisDatabase, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "stormline")

    def touch(bolt: Counts) -> None:
        with on_redis.client() as client:
            key = f"stormline_fence:{TOPOLOGY}:"
            client.set(key, client.get(key))

    with bad_day(on_redis.store(), begun=touch) as day:
        pass
    assert day.replays == 1
    assert "WatchError" in caplog.text
    counts_once(on_redis.direct())


# ---------------------------------------------------------------------------------------- sessions


def test_what_own_sql_leaves_in_a_session_of_postgresqls_is_gone_in_the_next_transaction(
    on_postgresql: PostgreSQLDatabase,
) -> None:
    def untidy(bolt: Counts) -> None:
        bolt.own(
            "SET client_encoding = 'SQL_ASCII'",
            "SET TimeZone = 'Asia/Tokyo'",
            "SET search_path = pg_catalog, " + on_postgresql.schema,
            "SELECT pg_advisory_lock(5)",
            "CREATE TEMPORARY TABLE words (word text PRIMARY KEY, seen bigint, txid bigint)",
        )
        with bolt.store.transaction(bolt.context, bolt.attempt) as connection:
            connection.row_factory = psycopg.rows.dict_row

    with bad_day(on_postgresql.store(), stored=untidy) as day:
        pass
    assert (day.replays, found_stored(2)) == (0, [False])
    counts_once(on_postgresql.direct())


def test_what_own_sql_leaves_in_a_session_of_mariadbs_is_gone_in_the_next_transaction(
    on_mariadb: MariaDBDatabase,
) -> None:
    def untidy(bolt: Counts) -> None:
        bolt.own(
            "SET SESSION sql_mode = ''",
            "SET NAMES latin1",
            "SET SESSION autocommit = 0",
            "CREATE TEMPORARY TABLE words (word varchar(255) PRIMARY KEY, seen bigint, txid bigint)",
        )

    with bad_day(on_mariadb.store(), stored=untidy) as day:
        pass
    assert (day.replays, found_stored(2)) == (0, [False])
    counts_once(on_mariadb.direct())


def test_another_database_that_own_commands_select_in_redis_is_theirs_alone(on_redis: RedisDatabase) -> None:
    def untidy(bolt: Counts) -> None:
        with bolt.store.transaction(bolt.context, bolt.attempt) as pipeline:
            pipeline.execute_command("SELECT", 499)

    with bad_day(on_redis.store(), stored=untidy) as day:
        pass
    assert (day.replays, found_stored(2)) == (0, [False])
    counts_once(on_redis.direct())


@pytest.mark.parametrize("kind", ["postgresql", "mariadb"])
def test_a_transaction_that_was_idle_for_longer_than_the_server_allows_is_replayed(
    kind: str, request: pytest.FixtureRequest
) -> None:
    database = request.getfixturevalue(f"on_{kind}")
    setting = "idle_in_transaction_session_timeout = 1" if kind == "postgresql" else "idle_transaction_timeout = 1"

    def idle(bolt: Counts) -> None:
        bolt.own(f"SET SESSION {setting}")
        eventually(lambda: not database.connections())

    with bad_day(database.store(), begun=idle) as day:
        pass
    assert (day.replays, found_stored(2)) == (1, [False, False])
    counts_once(database.direct())
