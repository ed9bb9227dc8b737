"""Bad days of a SQLite file: each ends in a replay, after which every word counts once, or in a sentence."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from stormline.errors import TopologyFailed
from stormline.runtime.cluster.in_process_cluster import InProcessCluster
from stormline.runtime.state.memory_store import MemoryStateServer
from stormline.state import SQLiteStore
from tests.kits.bad_days import BadDay, Counts, bad_day, counts_once, found_stored, run
from tests.kits.components import eventually

HOLDS = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute("BEGIN IMMEDIATE")
print("held", flush=True)
sys.stdin.read()
"""
NOBODY = 65534


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "words.sqlite"


@contextmanager
def other_process(path: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process, which holds the file locked until its input ends."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLDS, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process


def test_a_file_that_another_process_has_locked_is_a_replay_until_it_lets_go(path: Path) -> None:
    store = SQLiteStore(path, timeout_secs=0.01)
    store.connect().close()
    with other_process(path) as process, bad_day(store) as day:
        eventually(lambda: day.replays >= 2)
        process.communicate()
    counts_once(store)


def test_a_disk_that_is_full_is_a_replay_until_there_is_room(path: Path) -> None:
    def fill(bolt: Counts) -> None:
        with bolt.store.transaction(bolt.context, bolt.attempt) as connection:
            ((pages,),) = run(connection, "PRAGMA page_count")
            assert run(connection, f"PRAGMA max_page_count = {pages}") == [(pages,)]
            connection.execute("CREATE TABLE large AS SELECT randomblob(1000000)")

    with bad_day(SQLiteStore(path), stored=fill) as day:
        pass
    assert (day.replays, found_stored(2)) == (1, [False, False])
    counts_once(SQLiteStore(path))


@pytest.mark.parametrize(("point", "next_txid"), [("begins", 2), ("begun", 2), ("ended", 3)])
def test_a_file_that_was_removed_stops_the_topology_as_its_database_is_gone(
    path: Path, point: str, next_txid: int
) -> None:
    """SQLite itself writes a file that was removed as if nothing were."""

    def remove(bolt: Counts) -> None:
        for file in path.parent.glob("words.sqlite*"):
            file.unlink()

    why = rf"holds transaction 0 .*\(0: nothing\), and the next one to commit is {next_txid}: the database was removed"
    with pytest.raises(TopologyFailed, match=why), bad_day(SQLiteStore(path), None, **{point: remove}):
        pass


def test_a_file_that_is_an_older_copy_stops_the_topology(path: Path) -> None:
    state = MemoryStateServer()

    def keep(bolt: Counts) -> None:
        with sqlite3.connect(path) as source, sqlite3.connect(path.with_name("copy")) as copy:
            source.backup(copy)

    with bad_day(SQLiteStore(path), state, begins=keep):
        pass
    for file in path.parent.glob("words.sqlite*"):
        file.unlink()
    shutil.copy(path.with_name("copy"), path)
    with InProcessCluster(state) as cluster:
        day = BadDay(cluster, SQLiteStore(path), {}, more=1)
        with pytest.raises(
            TopologyFailed, match=r"holds transaction 1 of topology 'words', and the next one .* is 5: "
        ):
            day.end()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_a_file_that_this_user_may_not_write_stops_the_topology_with_the_remedy(path: Path) -> None:
    """As root may write all, the topology runs as somebody else, in a process of its own."""
    SQLiteStore(path).connect().close()
    for folder in [*path.parents, path]:
        folder.chmod(folder.stat().st_mode | 0o555)
    program = f"""
import os, sys
sys.path[:0] = {sys.path!r}
from stormline.state import MemoryStore, SQLiteStore
from tests.kits.bad_days import bad_day
with bad_day(MemoryStore()):  # all that is imported is there: nobody may read it
    pass
os.setuid({NOBODY})
with bad_day(SQLiteStore({str(path)!r})):
    pass
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert ended.returncode == 1
    assert f"sqlite:{path} fails in " in ended.stderr
    assert "let this user write the f" in ended.stderr


def test_what_is_no_database_stops_the_topology_with_the_remedy(path: Path) -> None:
    path.write_bytes(b"x" * 10_000)
    why = r"fails in opening it: DatabaseError: file is not a database; name another path, or bring back a whole copy"
    with pytest.raises(TopologyFailed, match=why), bad_day(SQLiteStore(path)):
        pass
    assert path.read_bytes() == b"x" * 10_000


def test_what_own_sql_leaves_in_a_session_is_gone_in_the_next_transaction(path: Path) -> None:
    def untidy(bolt: Counts) -> None:
        with bolt.store.transaction(bolt.context, bolt.attempt) as connection:
            connection.execute("CREATE TEMPORARY TABLE words (word TEXT PRIMARY KEY, seen INTEGER, txid INTEGER)")
            connection.text_factory = bytes

    with bad_day(SQLiteStore(path), stored=untidy) as day:
        pass
    assert day.replays == 0
    counts_once(SQLiteStore(path))


def test_a_row_that_a_table_refuses_is_named_by_its_key(path: Path) -> None:
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE words (word TEXT PRIMARY KEY, seen INT, txid INT, CHECK (word <> 'dog' OR seen < 3))")
    with (
        pytest.raises(
            TopologyFailed, match=r"table 'words': IntegrityError: .*; it is the row of key \('dog',\): corr"
        ),
        bad_day(SQLiteStore(path)),
    ):
        pass
