"""`stormline state`: what a store's maps hold, for a terminal and for programs."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from stormline.cli.main import main
from stormline.state import NonTransactionalMap, OpaqueMap, SQLiteStore, TransactionalMap
from stormline.topology.registration import Registration
from stormline.topology.serialization import Registry
from tests.contracts.store import incremented, put
from tests.kits.stores import Process


@dataclass
class Point:
    """A class of the user's."""

    x: int


@pytest.fixture
def url(tmp_path: Path) -> str:
    """A store with three maps in it."""
    store = SQLiteStore(tmp_path / "store.sqlite")
    words = OpaqueMap(store, "words", key={"word": str}, value={"count": int})
    rates = NonTransactionalMap(store, "rates", key={"day": date, "n": int}, value={"rate": Decimal, "seen": datetime})
    process = Process(registry=Registry([Registration.of(Point)]))
    things = TransactionalMap(store, "things", key={"id": int}, value={"thing": object, "raw": bytes})
    process.commit(1, incremented(words, {"cat": 1, "dog": 2}))
    process.commit(
        2,
        incremented(words, {"cat": 4}),
        put(rates, {(date(2013, 1, 31), 7): (Decimal("1.50"), datetime(2013, 1, 31, 12, tzinfo=UTC))}),
        put(things, {1: (Point(3), b"\x00\xff"), 2: ({"a": {1, 2}}, None)}),
    )
    process.end()
    return f"sqlite:{store.path}"


def call(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["state", *arguments], prog_name="stormline")


def shown(*arguments: str) -> list[str]:
    done = call(*arguments)
    assert (done.exit_code, done.stderr) == (0, ""), done.output
    return done.stdout.splitlines()


def parsed(*arguments: str) -> Any:
    return json.loads("\n".join(shown(*arguments, "--format", "json")))


def refused(*arguments: str) -> str:
    done = call(*arguments)
    assert (done.exit_code, done.stdout) == (1, ""), done.output
    return done.stderr


def test_tables_are_named_with_their_maps_and_topologies(url: str) -> None:
    assert shown("tables", url) == [
        "table   rows  topology  map",
        "rates      1  topo      non-transactional map (day date, n int) -> (rate Decimal, seen datetime)",
        "things     2  topo      transactional map (id int) -> (thing object, raw bytes)",
        "words      2  topo      opaque map (word str) -> (count int)",
        "topology  scope  txid  epoch",
        "topo                2      1",
    ]
    said = parsed("tables", url)
    assert said["stored"] == [{"topology": "topo", "scope": "", "txid": 2, "epoch": 1}]
    assert [table["table"] for table in said["tables"]] == ["rates", "things", "words"]


def test_rows_are_listed_by_key_with_the_transaction_that_stored_them(url: str) -> None:
    assert shown("list", url, "words") == [
        "word  count  txid  prev_count  prev_txid",
        "cat       5     2           1          1",
        "dog       2     1           –          –",
    ]
    assert shown("list", url, "words", "--rows", "1")[-1] == "the first 1 of 2 rows; --rows shows more"
    assert parsed("list", url, "words")[1] == {"word": "dog", "count": 2, "txid": 1}


def test_a_table_without_rows_shows_its_columns(url: str) -> None:
    with closing(sqlite3.connect(url.removeprefix("sqlite:"))) as db, db:
        db.execute("DELETE FROM words")
    assert shown("list", url, "words") == ["word  count"]


def test_a_row_is_got_by_its_key(url: str) -> None:
    assert shown("get", url, "rates", "2013-01-31", "7") == [
        "day   2013-01-31",
        "n     7",
        "rate  1.50",
        "seen  2013-01-31T12:00:00+00:00",
    ]
    assert parsed("get", url, "words", "cat") == {"word": "cat", "count": 5, "txid": 2, "prev_count": 1, "prev_txid": 1}


def test_objects_are_shown_and_those_of_classes_that_only_the_topology_knows_as_they_are_stored(url: str) -> None:
    assert parsed("get", url, "things", "2") == {"id": 2, "thing": {"a": [1, 2]}, "raw": None, "txid": 2}
    found = parsed("get", url, "things", "1")
    assert found["thing"].startswith("msgpack ")
    assert found["raw"] == "00ff"


def test_what_a_terminal_would_obey_is_shown_as_its_escape(url: str) -> None:
    with closing(sqlite3.connect(url.removeprefix("sqlite:"))) as db, db:
        db.execute("INSERT INTO words (word, count, txid) VALUES (?, 1, 1)", ["\x1b[2J" + "x" * 60])
    (line,) = [line for line in shown("list", url, "words") if line.startswith("\\x1b")]
    assert line.split()[0] == "\\x1b[2J" + "x" * 32 + "…"


def test_what_is_not_there_is_told_with_what_is(url: str) -> None:
    assert "has no table 'wrods'; it holds ['rates', 'things', 'words']; did you mean 'words'?" in refused(
        "list", url, "wrods"
    )
    assert "table 'words' of" in refused("get", url, "words", "ct")
    assert "holds nothing under key 'ct'" in refused("get", url, "words", "ct")
    assert "key column 'id' of int, and 'x' is no int" in refused("get", url, "things", "x")


def test_a_database_that_is_not_there_is_told_and_none_is_made(tmp_path: Path) -> None:
    path = tmp_path / "none.sqlite"
    assert refused("tables", f"sqlite:{path}") == (
        f"error: there is no database at sqlite:{path}; nothing was made: check the path\n"
    )
    assert not path.exists()
    path.write_text("no database at all, but a text that is long enough for SQLite to look at its beginning")
    assert "file is not a database" in refused("tables", f"sqlite:{path}")


def test_a_database_that_no_map_stores_in_says_so(tmp_path: Path) -> None:
    path = tmp_path / "other.sqlite"
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("CREATE TABLE mine (x INTEGER)")
    assert shown("tables", f"sqlite:{path}") == ["no map has stored here"]
    assert "it holds no map's table" in refused("list", f"sqlite:{path}", "mine")


def test_a_server_that_is_away_is_told_in_one_sentence() -> None:
    said = refused("tables", "redis://127.0.0.1:1/0")
    assert said.startswith("error: redis://127.0.0.1:1/0 is not available: ")
    assert "replayed" not in said
    assert said.count("\n") == 1


def test_a_declaration_that_no_map_writes_is_corrupt(url: str) -> None:
    with closing(sqlite3.connect(url.removeprefix("sqlite:"))) as db, db:
        db.execute("UPDATE stormline_maps SET declared = 'a map' WHERE name = 'words'")
    assert "says of table 'words' that its map is 'a map', which is no map's declaration" in refused("tables", url)


def test_a_command_that_is_none_is_told_with_the_nearest() -> None:
    done = call("tabels", "sqlite:x")
    assert done.exit_code == 2
    assert (
        done.stderr
        == "error: there is no command 'tabels'; did you mean 'tables'? (all of them: stormline state --help)\n"
    )
