"""`stormline audit`: what it prints. What it finds is in tests/unit/runtime/audit, the whole way in tests/spark."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from examples import stored_words
from stormline.cli import audit as audit_module
from stormline.cli.main import main
from tests.kits.audited import Run


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """The example, which has run in memory."""
    monkeypatch.chdir(tmp_path)
    made = Run(stored_words.topology(), stored_words.config)

    @contextmanager
    def state(*_: Any) -> Iterator[Any]:
        yield made.reader()

    monkeypatch.setattr(audit_module, "stored_state", state)
    return made


def call(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["audit", *arguments], prog_name="stormline")


def sql(text: str) -> None:
    with closing(sqlite3.connect(stored_words.STORE.path)) as db, db:
        db.execute(text)


def test_a_store_that_holds_what_it_should_ends_with_0(run: Run) -> None:
    done = call("examples.stored_words")
    assert (done.exit_code, done.stderr) == (0, "")
    where = "of sqlite:.stormline/stored-words.sqlite, at transaction 3"
    assert done.stdout.splitlines() == [
        f"table 'buckets' {where}: all 1 rows are as worked out",
        f"table 'totals' {where}: all 1 rows are as worked out",
        f"table 'words' {where}: all 5 rows are as worked out",
    ]


def test_rows_that_differ_are_named_and_end_with_1(run: Run) -> None:
    sql("UPDATE words SET count = 7 WHERE word = 'cat'")
    sql("DELETE FROM words WHERE word = 'dog'")
    done = call("examples.stored_words")
    assert done.exit_code == 1
    assert done.stdout.splitlines()[2:] == [
        "table 'words' of sqlite:.stormline/stored-words.sqlite, at transaction 3: 2 of 5 rows differ",
        "  key  stored  worked out",
        "  cat       7           8",
        "  dog       –           7",
    ]


def test_no_more_than_some_are_shown_and_json_names_all(run: Run) -> None:
    sql("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 30) "
        "INSERT INTO words (word, count, txid) SELECT 'x' || i, i, 1 FROM n")  # fmt: skip
    done = call("examples.stored_words")
    assert done.stdout.splitlines()[-1] == "  and 10 more; --format json names them all"
    said = json.loads(call("examples.stored_words", "--format", "json").stdout)
    assert [len(table["differences"]) for table in said["tables"]] == [0, 0, 30]
    assert said["tables"][2]["differences"][0] == {"key": "x1", "stored": 1, "worked_out": None}


def test_what_cannot_be_audited_is_told_before_anything_starts() -> None:
    done = call("examples.words")
    assert done.exit_code == 1
    assert done.stderr.startswith("error: topology 'top-n-words' stores in no map that can be worked out again: ")
