"""What no replay mends stops the topology with one sentence: server, table, key and remedy, and no password."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stormline.errors import TopologyFailed
from stormline.runtime.cluster.in_process_cluster import InProcessCluster
from stormline.runtime.state.memory_store import MemoryStateServer
from stormline.state import MySQLStore, PostgreSQLStore, RedisStore, Store
from tests.cluster.store_databases import MariaDBDatabase, PostgreSQLDatabase, RedisDatabase, StoreDatabase
from tests.kits.bad_days import EXPECTED, BadDay, Counts, bad_day, counts_once, run, transactional
from tests.kits.components import eventually
from tests.services.mariadb import MariaDB
from tests.services.postgresql import PostgreSQL
from tests.services.small_disk import small_disk

SECRET = "hunter22hunter22"


def stops(store: Store, why: str, **troubles: Any) -> str:
    """See a topology stop with a message; return it."""
    with pytest.raises(TopologyFailed, match=why) as stopped, bad_day(store, **troubles):
        pass
    return str(stopped.value)


# ---------------------------------------------------------------------------------------- rights


def test_a_role_without_rights_in_postgresql_is_told_with_the_remedy(
    on_postgresql: PostgreSQLDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    role = f"poor_{on_postgresql.schema}"
    on_postgresql.sql(f"CREATE ROLE {role} LOGIN PASSWORD '{SECRET}'")
    on_postgresql.sql(f"GRANT USAGE ON SCHEMA {on_postgresql.schema} TO {role}")
    on_postgresql.direct().connect().close()
    monkeypatch.setenv("STORE_PASSWORD", SECRET)
    store = PostgreSQLStore(on_postgresql.dsn(user=role), password="env:STORE_PASSWORD")
    why = (
        r"postgresql:.* fails in reading the fence: InsufficientPrivilege: permission denied for table stormline_fence"
    )
    assert SECRET not in stops(store, why + "; grant the store's user SELECT, INSERT, UPDATE and DELETE on its tables")
    on_postgresql.sql(f"GRANT ALL ON stormline_fence, stormline_maps TO {role}")
    stops(store, r"fails in making table 'words': InsufficientPrivilege: permission denied for schema .*; grant the st")


def test_a_user_without_rights_in_mariadb_is_told_with_the_remedy(
    on_mariadb: MariaDBDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    user = f"poor_{on_mariadb.name}"
    on_mariadb.sql(f"CREATE USER {user}@'127.0.0.1' IDENTIFIED BY '{SECRET}'")
    on_mariadb.sql(f"GRANT SELECT ON {on_mariadb.name}.* TO {user}@'127.0.0.1'")
    monkeypatch.setenv("STORE_PASSWORD", SECRET)
    store = MySQLStore(on_mariadb.mariadb.url(on_mariadb.name, user=user), password="env:STORE_PASSWORD")
    why = r"mysql://.* fails in making its own tables: OperationalError: .*CREATE command denied .*; grant the store's"
    assert SECRET not in stops(store, why)
    on_mariadb.direct().connect().close()
    stops(
        store, r"fails in reading the fence: OperationalError: .*denied to user .*; grant the store's user SELECT, INS"
    )


def test_a_user_without_rights_in_redis_is_told_with_the_remedy(
    on_redis: RedisDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    with on_redis.client() as client:
        client.execute_command(
            "ACL", "SETUSER", "poor", "on", f">{SECRET}", "~*", "+@all", "-hset", "-hmset"
        )  # it may read
    monkeypatch.setenv("STORE_PASSWORD", SECRET)
    store = RedisStore(on_redis.redis.url(on_redis.number, user="poor"), password="env:STORE_PASSWORD")
    why = r"redis://.* fails in committing: NoPermissionError: .*'?hset'? .*; grant the store's user the commands th"
    assert SECRET not in stops(store, why)
    assert transactional(on_redis.direct()).items() == {}


# ---------------------------------------------------------------------------------------- rows


@pytest.mark.parametrize(
    ("columns", "why"),
    [
        ("word varchar(5) PRIMARY KEY, seen bigint, txid bigint", r"[Tt]oo long .*the row of key \('ant-\d+',\)"),
        ("word varchar(9) PRIMARY KEY, seen smallint, txid bigint", r"[Oo]ut of range.*the row of key \('cat',\)"),
        ("word varchar(9) PRIMARY KEY, seen bigint, txid bigint, n int NOT NULL", r"of key \('\w+',\)"),
    ],
    ids=["key longer than the column", "number larger than the column", "column that nobody fills"],
)
@pytest.mark.parametrize("kind", ["postgresql", "mariadb"])
def test_a_row_that_does_not_fit_is_named_with_table_and_key(
    kind: str, columns: str, why: str, request: pytest.FixtureRequest
) -> None:
    database = request.getfixturevalue(f"on_{kind}")
    database.sql(f"CREATE TABLE words ({columns}) {database.table_options}")

    def large(bolt: Counts) -> None:
        bolt.words.update({f"ant-{i:05}" if "varchar(5)" in columns else f"a{i}": 1 for i in range(1500)})
        bolt.words["cat"] += 100_000

    why = rf"fails in writing table 'words': \w+: .*{why}: correct what the bolt"
    assert str(database.store()) in stops(database.store(), why, begins=large)
    assert set(transactional(database.direct()).items()) <= set(EXPECTED)  # what transaction 1 stored, and no more


def test_a_dsn_that_cannot_be_read_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STORE_DSN", f"host=127.0.0.1 password=a {SECRET}")
    message = stops(
        PostgreSQLStore("env:STORE_DSN"), r"the DSN of postgresql:env:STORE_DSN is none that libpq can read"
    )
    assert SECRET not in message


# ---------------------------------------------------------------------------------------- other copies


@pytest.mark.proof
def test_a_server_that_came_back_as_an_older_copy_stops_the_topology(database: StoreDatabase) -> None:
    """The copy is the server's data, taken while it is down, as an operator would."""
    state = MemoryStateServer()
    with bad_day(database.store(), state) as day:
        pass
    database.server.keep_copy()
    goes_on(database.direct(), state, more=2)
    database.server.bring_back_copy()
    with InProcessCluster(state) as cluster:
        day = BadDay(cluster, database.direct(), {}, more=3)
        with pytest.raises(TopologyFailed, match=r"holds transaction 4 of .*, and the next one .* is 7: .*older copy"):
            day.end()


@pytest.mark.proof
def test_a_server_that_came_back_as_a_copy_of_the_state_it_was_in_goes_on(database: StoreDatabase) -> None:
    """The same restart, and nothing was lost: it is not the restart that stops a topology."""
    state = MemoryStateServer()
    with bad_day(database.store(), state):
        pass
    database.server.keep_copy()
    database.server.bring_back_copy()
    counts_once(database.direct())
    goes_on(database.direct(), state, more=1)
    assert transactional(database.direct()).items()["cat"] == 18


def goes_on(store: Store, state: MemoryStateServer, more: int) -> None:
    """Let the same topology, by its state, commit more."""
    with InProcessCluster(state) as cluster:
        BadDay(cluster, store, {}, more).end()


def test_a_database_that_was_emptied_stops_the_topology(database: StoreDatabase) -> None:
    gone = r"stormline_fence. (does not|doesn.t) exist.*; the database was emptied, or is another one: bring it back"
    behind = r"holds transaction 0 .*\(0: nothing\), and the next one to commit is 3: the database was removed, or is"
    stops(
        database.store(), behind if isinstance(database, RedisDatabase) else gone, ended=lambda bolt: database.empty()
    )
    database.empty()
    stops(database.store(), behind, ended=lambda bolt: (database.empty(), database.close_connections()))
    assert transactional(database.direct()).items() == {}


# ---------------------------------------------------------------------------------------- full


@pytest.fixture
def disk(postgresql: PostgreSQL) -> Iterator[Path]:
    """A file system of 2 MB that PostgreSQL may write."""
    with small_disk(2 << 20) as place:
        shutil.chown(place, postgresql.user)
        yield place


def stores_too_much(bolt: Counts) -> None:
    """Let the first attempt store more than there is room for."""
    bolt.words.update({f"{i:05}" * 50: 1 for i in range(15_000)})


def test_a_postgresql_whose_disk_is_full_is_a_replay_until_there_is_room(
    on_postgresql: PostgreSQLDatabase, disk: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "stormline")
    on_postgresql.sql(f"CREATE TABLESPACE {on_postgresql.schema} LOCATION '{disk}'")
    columns = "word text PRIMARY KEY, seen bigint, txid bigint"
    on_postgresql.sql(f"CREATE TABLE words ({columns}) TABLESPACE {on_postgresql.schema}")
    try:
        with bad_day(on_postgresql.store(), begins=stores_too_much) as day:
            pass
        assert day.replays >= 1
        assert "No space left on device" in caplog.text
        counts_once(on_postgresql.direct())
    finally:
        on_postgresql.sql("DROP TABLE words")
        on_postgresql.sql(f"DROP TABLESPACE {on_postgresql.schema}")


@pytest.fixture
def on_small_mariadb(mariadb: MariaDB, tmp_path: Path) -> Iterator[MariaDBDatabase]:
    """A database on a server of its own, whose shared tablespace may hardly grow. It holds what can be undone, too."""
    server = MariaDB(tmp_path / "log", None, "--innodb-data-file-path=ibdata1:12M:autoextend:max:13M")
    try:
        server.create()
        yield MariaDBDatabase(server)
    finally:
        server.stop()


@pytest.mark.proof
def test_a_mariadb_that_is_full_is_a_replay_until_there_is_room(
    on_small_mariadb: MariaDBDatabase, caplog: pytest.LogCaptureFixture
) -> None:
    on_mariadb = on_small_mariadb
    caplog.set_level("INFO", "stormline")
    columns = "word varchar(255) PRIMARY KEY, seen bigint, txid bigint"
    with on_mariadb.mariadb.connected("root", database=on_mariadb.name) as db:
        run(db, "SET GLOBAL innodb_file_per_table = OFF")
        try:
            run(db, f"CREATE TABLE words ({columns}) {on_mariadb.table_options}")
        finally:
            run(db, "SET GLOBAL innodb_file_per_table = ON")
    with bad_day(on_mariadb.store(), begins=stores_too_much) as day:
        pass
    assert day.replays >= 1
    assert "The table 'words' is full" in caplog.text
    counts_once(on_mariadb.direct())


def test_a_redis_whose_memory_is_full_is_a_replay_until_there_is_room(
    on_redis: RedisDatabase, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "stormline")
    with on_redis.client() as client:

        def full(bolt: Counts) -> None:
            client.config_set("maxmemory", "1")

        try:
            with bad_day(on_redis.store(), stored=full) as day:
                eventually(lambda: day.replays >= 1)
                client.config_set("maxmemory", "0")
        finally:
            client.config_set("maxmemory", "0")
    assert "OutOfMemoryError" in caplog.text
    counts_once(on_redis.direct())


def test_a_redis_that_takes_nothing_because_its_disk_failed_is_a_replay(
    on_redis: RedisDatabase, caplog: pytest.LogCaptureFixture
) -> None:
    """It answers MISCONF after a snapshot could not be saved: here because there is no such folder."""
    caplog.set_level("INFO", "stormline")
    with on_redis.client() as client:
        folder = Path(client.config_get("dir")["dir"])

        def fails(bolt: Counts) -> None:
            client.config_set("save", "3600 1")
            (folder / "dump.rdb").unlink(missing_ok=True)
            (folder / "dump.rdb").mkdir()
            (folder / "dump.rdb" / "full").touch()
            client.bgsave()
            eventually(lambda: client.info("persistence")["rdb_last_bgsave_status"] == "err")

        try:
            with bad_day(on_redis.store(), stored=fails) as day:
                eventually(lambda: day.replays >= 1)
                client.config_set("stop-writes-on-bgsave-error", "no")
        finally:
            client.config_set("stop-writes-on-bgsave-error", "yes")
            client.config_set("save", "")
            (folder / "dump.rdb" / "full").unlink()
            (folder / "dump.rdb").rmdir()
            client.bgsave()
            eventually(lambda: client.info("persistence")["rdb_last_bgsave_status"] == "ok")
    assert "MISCONF" in caplog.text
    counts_once(on_redis.direct())
