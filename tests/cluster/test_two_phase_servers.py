"""What two-phase sinks meet on one kind of server alone, and servers that are killed."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pymysql
import pytest
import trustme

from stormline import CommitOutcome, Semantic
from stormline.errors import InvalidStore, MissingExtra, StoreFailed, StoreUnavailable
from stormline.state import MySQLStore, PostgreSQLStore
from stormline.state.xa import MariaDbXaBolt, MariaDbXaSink, PostgresTwoPhaseBolt, PostgresTwoPhaseSink
from stormline.state.xa.mariadb_connection import PreparingMariaDB
from stormline.state.xa.postgresql_connection import PreparingPostgreSQL
from stormline.topology.transaction_label import TransactionLabel
from tests.cluster.store_databases import MariaDBDatabase, PostgreSQLDatabase
from tests.cluster.two_phase_databases import TwoPhaseDatabase, TwoPhaseMariaDB, TwoPhasePostgreSQL, row
from tests.services.mariadb import MariaDB
from tests.services.postgresql import PostgreSQL

DONE, ALREADY, RETRY, LOST = CommitOutcome.DONE, CommitOutcome.ALREADY, CommitOutcome.RETRY, CommitOutcome.LOST
RESET_CONNECTION = 0x1F


@pytest.fixture
def pg(on_postgresql: PostgreSQLDatabase) -> Iterator[TwoPhasePostgreSQL]:
    made = TwoPhasePostgreSQL(on_postgresql)
    yield made
    made.close()


@pytest.fixture
def maria(on_mariadb: MariaDBDatabase) -> Iterator[TwoPhaseMariaDB]:
    made = TwoPhaseMariaDB(on_mariadb)
    yield made
    made.close()


@pytest.fixture(params=["pg", "maria"])
def base(request: pytest.FixtureRequest) -> TwoPhaseDatabase:
    made: TwoPhaseDatabase = request.getfixturevalue(request.param)
    return made


def test_what_is_prepared_survives_a_server_that_is_killed(base: TwoPhaseDatabase) -> None:
    sink = base.sink()
    first, second, third = (base.prepared(sink, ["ann", txid], txid=txid) for txid in (1, 2, 3))
    assert sink.commit(first) is DONE
    unprepared = sink.begin_transaction(base.label(4))
    sink.invoke(unprepared, row(0, "bob", 4))
    base.database.server.kill()
    with pytest.raises(StoreUnavailable, match="is not available"):
        sink.commit(second)
    with pytest.raises(StoreUnavailable, match="is not available"):
        sink.pre_commit(unprepared)
    sink.roll_back(unprepared)
    base.database.server.start()
    assert sorted(base.left()) == sorted([second[0], third[0]])
    assert [sink.commit(first), sink.commit(second)] == [ALREADY, DONE]
    base.sink().recover_and_abort(third)
    assert base.rows() == [("ann", 1), ("ann", 2)]
    assert base.left() == []


# ---------------------------------------------------------------------------------------- PostgreSQL


def test_a_server_that_prepares_nothing_says_what_to_set(
    needs_postgresql: None, tmp_path_factory: pytest.TempPathFactory
) -> None:
    server = PostgreSQL(tmp_path_factory.mktemp("unprepared") / "log", max_prepared_transactions="0")
    server.create()
    sink = PostgresTwoPhaseSink(PostgreSQLStore(server.dsn()), "entries")
    try:
        with pytest.raises(
            StoreFailed, match=r"its max_prepared_transactions is 0; set it in postgresql.conf, or by AL"
        ):
            sink.begin_transaction(TransactionLabel("a_0-b_0", 1, 1, 1, 1, 1))
    finally:
        sink.close()
        server.stop()


def test_a_place_for_one_more_prepared_transaction_is_waited_for(pg: TwoPhasePostgreSQL) -> None:
    (places,) = pg.sql("SHOW max_prepared_transactions")[0]
    with psycopg.connect(pg.database.dsn(), autocommit=True) as db:
        for i in range(int(places)):
            db.execute(f"BEGIN; INSERT INTO entries VALUES ('x', 1); PREPARE TRANSACTION 'taken-{i}'".encode())
        try:
            with pytest.raises(StoreUnavailable, match=r"maximum number of prepared transactions reached.*replayed"):
                pg.prepared(pg.sink(), ["ann", 1])
        finally:
            for i in range(int(places)):
                db.execute(f"ROLLBACK PREPARED 'taken-{i}'".encode())
    assert pg.sink().commit(pg.prepared(pg.sink(), ["ann", 1])) is DONE


def connected(pg: TwoPhasePostgreSQL) -> PreparingPostgreSQL:
    return PreparingPostgreSQL(*PostgreSQLStore(pg.database.dsn()).connection_arguments(), 1.0)


def test_prepare_of_a_transaction_that_has_failed_is_not_taken_for_prepared(pg: TwoPhasePostgreSQL) -> None:
    with closing(connected(pg)) as connection:
        connection.start(pg.label())
        with pytest.raises(psycopg.errors.DivisionByZero):
            connection.native.execute("SELECT 1 / 0")
        with pytest.raises(StoreFailed, match=r"answered PREPARE TRANSACTION by ROLLBACK: nothing is stored; a statem"):
            connection.prepare_as("some name")


def test_own_sql_that_catches_an_error_of_the_database_is_told(pg: TwoPhasePostgreSQL) -> None:
    def write(db: psycopg.Connection[Any], rows: Any) -> None:
        db.execute("INSERT INTO entries VALUES ('ann', 1)")
        with pytest.raises(psycopg.errors.DivisionByZero):
            db.execute("SELECT 1 / 0")

    with pytest.raises(StoreFailed, match=r"has caught the error of a statement that failed: .*let it raise, or"):
        pg.prepared(pg.sink(None, write=write), ["ann", 1])
    assert pg.left() == []


def test_own_sql_may_write_into_no_temporary_table(pg: TwoPhasePostgreSQL) -> None:
    def write(db: psycopg.Connection[Any], rows: Any) -> None:
        db.execute("CREATE TEMPORARY TABLE given (a int) ON COMMIT DROP")

    with pytest.raises(
        StoreFailed, match=r"preparing transaction .* cannot PREPARE a transaction that has operated on t"
    ):
        pg.prepared(pg.sink(None, write=write), ["ann", 1])


def test_only_the_role_that_has_prepared_may_commit(pg: TwoPhasePostgreSQL) -> None:
    sink = pg.sink()
    handle = pg.prepared(sink, ["ann", 1])
    role = f"other_{pg.database.schema}"
    pg.make_user(role)
    pg.sql(f"GRANT ALL ON ALL TABLES IN SCHEMA {pg.database.schema} TO {role}")
    other = pg.sink(user=role)
    for call in (other.commit, other.abort):
        with pytest.raises(StoreFailed, match=r"permission denied to finish prep.*; let the store connect as the role"):
            call(handle)
    assert sink.commit(handle) is DONE


def test_a_transaction_of_another_schema_is_not_listed(pg: TwoPhasePostgreSQL, postgresql: PostgreSQL) -> None:
    handle = pg.prepared(pg.sink(), ["ann", 1])
    other = TwoPhasePostgreSQL(PostgreSQLDatabase(postgresql))
    try:
        assert list(other.sink().list_prepared(pg.scope)) == []
    finally:
        other.close()
        other.database.close()
    assert pg.left() == [handle[0]]


# ---------------------------------------------------------------------------------------- MariaDB


def prepared_on(connection: PreparingMariaDB, base: TwoPhaseMariaDB) -> Any:
    """Return the handle of what a connection has prepared, which is open still."""
    label = base.label()
    connection.start(label)
    connection.insert("entries", ["who", "amount"], [["ann", 1]])
    assert connection.prepare(label)
    return [label.text, connection.database_id]


def connected_to(base: TwoPhaseMariaDB) -> PreparingMariaDB:
    store = MySQLStore(base.database.mariadb.url(base.database.name))
    return PreparingMariaDB(*store.connection_arguments(), 1.0)


def test_what_an_open_connection_has_prepared_is_asked_for_again_and_never_lost(maria: TwoPhaseMariaDB) -> None:
    connection, sink = connected_to(maria), maria.sink()
    handle = prepared_on(connection, maria)
    assert sink.commit(handle) is RETRY
    sink.abort(handle)
    assert maria.left() == [handle[0]], "the sweep will come again"
    session = connection.session
    assert not connection.release()
    with closing(connected_to(maria)) as other:
        other.wait_for_end(session)
    assert sink.commit(handle) is DONE
    assert maria.rows() == [("ann", 1)]


@pytest.mark.parametrize("call", ["commit", "abort"])
def test_what_mariadb_says_is_ended_and_is_not_is_told_until_the_server_knows_it_again(
    maria: TwoPhaseMariaDB, call: str
) -> None:
    """Resetting a session stays for ever in the moment between the two steps in which a session ends."""
    connection, sink = connected_to(maria), maria.sink()
    handle = prepared_on(connection, maria)
    connection.native._execute_command(RESET_CONNECTION, b"")
    connection.native._read_ok_packet()
    for _ in range(2):
        with pytest.raises(
            StoreUnavailable, match=r"does not know its name any more: .*start the server anew: it finds"
        ):
            sink.commit(handle)
    connection.close()
    maria.database.server.kill()
    maria.database.server.start()
    assert maria.left() == [handle[0]]
    if call == "commit":
        assert sink.commit(handle) is DONE
        assert maria.rows() == [("ann", 1)]
    else:
        sink.abort(handle)
        assert sink.commit(handle) is LOST


@pytest.mark.proof
def test_a_commit_right_after_the_prepare_is_never_acknowledged_in_vain(maria: TwoPhaseMariaDB) -> None:
    sink, writer = maria.sink(), maria.sink()
    for txid in range(1, 151):
        assert sink.commit(maria.prepared(writer, ["ann", txid], txid=txid)) is DONE
    assert len(maria.rows()) == 150


def test_a_session_that_does_not_end_is_told(maria: TwoPhaseMariaDB) -> None:
    store = MySQLStore(maria.database.mariadb.url(maria.database.name), timeout_secs=0.05)
    other = PreparingMariaDB(*store.connection_arguments(), 1.0)
    told = pytest.raises(StoreUnavailable, match=r"has not ended session \d+ in 0.05 s")
    with closing(connected_to(maria)) as open_one, closing(other), told:
        other.wait_for_end(open_one.session)


@pytest.mark.parametrize("number", [1402, 1613, 1614])
def test_a_transaction_that_the_server_has_rolled_back_is_a_replay(maria: TwoPhaseMariaDB, number: int) -> None:
    """XA_RBROLLBACK, XA_RBTIMEOUT, XA_RBDEADLOCK: which of two in a deadlock the server takes, nobody knows before."""
    with closing(connected_to(maria)) as connection:
        meant = connection.translated(pymysql.err.OperationalError(number, "XA_RB"))
    assert isinstance(meant, StoreUnavailable)
    assert f"has rolled the transaction back: ({number}, 'XA_RB'); the batch is replayed" in str(meant)


def test_a_server_that_is_no_mariadb_is_refused(maria: TwoPhaseMariaDB, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pymysql.connections.Connection, "get_server_info", lambda self: "8.4.2")
    with pytest.raises(
        StoreFailed, match=r"is a server of version 8.4.2, expected a MariaDB: MySQL's XA transactions h"
    ):
        maria.sink().begin_transaction(maria.label())


@pytest.fixture
def readable() -> Iterator[Path]:
    """A folder that the server's user may read, too: pytest's own are for whoever runs it."""
    with tempfile.TemporaryDirectory(prefix="stormline-tls-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder


@pytest.mark.proof
def test_a_connection_that_was_encrypted_once_stays_so(readable: Path) -> None:
    certificate, key = readable / "certificate.pem", readable / "key.pem"
    issued = trustme.CA().issue_cert("127.0.0.1")
    certificate.write_bytes(b"".join(blob.bytes() for blob in issued.cert_chain_pems))
    key.write_bytes(issued.private_key_pem.bytes())
    key.chmod(0o644)
    server = MariaDB(readable / "log", None, f"--ssl-cert={certificate}", f"--ssl-key={key}")
    try:
        server.create()
        with server.connected("root") as db, db.cursor() as cursor:
            cursor.execute("CREATE DATABASE d")
        sink = MariaDbXaSink(MySQLStore(server.url("d")), "entries")
        label = TransactionLabel("a_0-b_0", 1, 1, 1, 1, 1)
        for _ in range(2):
            transaction = sink.begin_transaction(label)
            with transaction.connection.own_sql() as db, db.cursor() as cursor:
                cursor.execute("SHOW SESSION STATUS LIKE 'Ssl_cipher'")
                assert cursor.fetchone()[1]
            sink.roll_back(transaction)
        sink.close()
    finally:
        server.stop()


# ---------------------------------------------------------------------------------------- declaring


def insert(db: Any, rows: Any) -> None:
    """Write nothing."""


@pytest.mark.parametrize(
    ("args", "how", "message"),
    [
        ((MySQLStore("mysql://me@db/x"), "entries"), {}, r"is given MySQLStore\(.*expected a PostgreSQLStore"),
        (
            (PostgreSQLStore("host=db"),),
            {},
            r"neither a table and a function.*PostgresTwoPhaseSink\(store, 'payments'\)",
        ),
        ((PostgreSQLStore("host=db"), "entries"), {"write": insert}, "both a table and a function that writes"),
        ((PostgreSQLStore("host=db"), "my entries"), {}, "the table of a PostgresTwoPhaseSink is named 'my entries'"),
        (
            (PostgreSQLStore("host=db"), "entries", "who"),
            {},
            "columns of a PostgresTwoPhaseSink are 'who', expected a l",
        ),
        ((PostgreSQLStore("host=db"), "entries", ["a b"]), {}, "a column of a PostgresTwoPhaseSink is named 'a b'"),
        (
            (PostgreSQLStore("host=db"),),
            {"write": "INSERT"},
            r"write='INSERT', expected a function write\(connection, r",
        ),
        (
            (PostgreSQLStore("host=db"), "entries"),
            {"lock_secs": 0},
            "lock_secs of a PostgresTwoPhaseSink is 0, expected",
        ),
    ],
)
def test_a_sink_that_cannot_be_declared_like_this_says_why(args: Any, how: Any, message: str) -> None:
    with pytest.raises(InvalidStore, match=message):
        PostgresTwoPhaseSink(*args, **how)


def test_the_bolts_declare_their_sinks() -> None:
    for bolt in (
        PostgresTwoPhaseBolt(PostgreSQLStore("host=db"), "entries", ["who"], semantic=Semantic.AT_LEAST_ONCE),
        MariaDbXaBolt(MySQLStore("mysql://me@db/x"), "entries", ["who"], semantic=Semantic.AT_LEAST_ONCE),
    ):
        assert isinstance(bolt.sink, (PostgresTwoPhaseSink, MariaDbXaSink))
        assert (bolt.sink.table, bolt.sink.columns, bolt.semantic) == ("entries", ("who",), Semantic.AT_LEAST_ONCE)


@pytest.mark.parametrize(
    ("sink", "driver", "module"),
    [
        (PostgresTwoPhaseSink(PostgreSQLStore("host=db"), "t"), "psycopg", "postgresql"),
        (MariaDbXaSink(MySQLStore("mysql://me@db/x"), "t"), "pymysql", "mariadb"),
    ],
)
def test_a_driver_that_is_not_installed_is_told_with_its_extra(
    sink: Any, driver: str, module: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    import sys

    for name in (f"stormline.state.xa.{module}_connection", "stormline.state.postgresql_connection"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setitem(sys.modules, driver, None)
    with pytest.raises(MissingExtra, match=rf"needs the package {driver}, which is not installed: .*stormline\["):
        sink.list_prepared("")
