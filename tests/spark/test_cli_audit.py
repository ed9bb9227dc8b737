"""`stormline audit` beside a topology that runs, with its state in an embedded ZooKeeper."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from pyspark import SparkContext

from examples import stored_words
from stormline import LocalCluster
from stormline.cli.main import main

TIMEOUT_SECS = 60


def audit(*more: str) -> Result:
    return CliRunner().invoke(main, ["audit", "examples.stored_words", *more], prog_name="stormline")


def test_a_running_topology_is_audited_and_nothing_of_it_changes(
    spark: SparkContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    refused = audit()
    assert refused.exit_code == 1
    assert refused.stderr.startswith("error: there is no state of a topology in .stormline/stored-words; run it first")
    with LocalCluster(state_dir=".stormline/stored-words") as cluster:
        handle = cluster.submit(stored_words.topology(), stored_words.config)
        assert handle.await_drained(TIMEOUT_SECS) == 3
        with closing(sqlite3.connect(stored_words.STORE.path)) as db, db:
            db.execute("UPDATE words SET count = 7 WHERE word = 'cat'")
        found = audit("--format", "json")
        assert found.exit_code == 1, found.output
        said: dict[str, Any] = json.loads(found.stdout)
        assert {table["table"]: (table["txid"], table["rows"]) for table in said["tables"]} == {
            "buckets": (3, 1),
            "totals": (3, 1),
            "words": (3, 5),
        }
        differences = [one for table in said["tables"] for one in table["differences"]]
        assert differences == [{"key": "cat", "stored": 7, "worked_out": 8}]
        assert handle.running
