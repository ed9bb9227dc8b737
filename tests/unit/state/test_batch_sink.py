"""Numbered batches of another engine in a map: each counts once, whatever is replayed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from stormline.errors import InvalidStore, RefusedValue, StoreFailed, StoreMismatch
from stormline.state import MemoryStore, SQLiteStore, TransactionalMap
from stormline.state.batch_sink import INCREMENT, UPSERT, BatchSink
from stormline.state.store_transaction import StoreTransaction


@pytest.fixture
def store(tmp_path: Path) -> SQLiteStore:
    return SQLiteStore(tmp_path / "store.sqlite", timeout_secs=0.05)


def sink_in(store: Any, mode: str = INCREMENT, query: str = "counts") -> BatchSink:
    return BatchSink(query, TransactionalMap(store, "words", key={"word": str}, value={"count": int}), mode)


def test_a_batch_that_comes_again_changes_nothing(store: SQLiteStore) -> None:
    sink = sink_in(store)
    assert sink.store(0, {"cat": 1, "dog": 2}, "query-1")
    assert sink.store(1, {"cat": 10}, "query-1")
    assert not sink.store(1, {"cat": 10}, "query-1")
    assert sink.map.items() == {"cat": 11, "dog": 2}
    assert sink.store(2, {}, "")  # a batch without tasks
    assert not sink.store(2, {}, "")
    assert sink.store(3, {"cat": 100}, "query-1")
    assert sink.map.items() == {"cat": 111, "dog": 2}


def test_a_batch_that_died_before_its_commit_is_stored_by_its_replay(
    store: SQLiteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink = sink_in(store)

    def dies(self: StoreTransaction) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(StoreTransaction, "commit", dies)
        with pytest.raises(KeyboardInterrupt):
            sink.store(0, {"cat": 1}, "query-1")
    assert sink.map.items() == {}
    assert sink.store(0, {"cat": 1}, "query-1")
    assert sink.map.items() == {"cat": 1}


def test_an_upsert_replaces_what_a_key_holds(store: SQLiteStore) -> None:
    sink = sink_in(store, UPSERT)
    sink.store(0, sink.gathered([("cat", 1), ("dog", 2)]), "query-1")
    sink.store(1, sink.gathered([("cat", 5)]), "query-1")
    assert sink.map.items() == {"cat": 5, "dog": 2}


def test_rows_of_one_key_are_added_up_or_refused(store: SQLiteStore) -> None:
    gathered = sink_in(store).gathered([("cat", 1), ("cat", 2), ("dog", None), ("dog", 3)])
    assert gathered == {"cat": 3, "dog": 3}
    several = BatchSink(
        "pairs", TransactionalMap(store, "pairs", key={"k": str}, value={"a": int, "b": float}), INCREMENT
    )
    assert several.gathered([("x", (1, 0.5)), ("x", (2, None))]) == {"x": (3, 0.5)}
    several.store(0, {"x": (3, 0.5)}, "q")
    several.store(1, {"x": (1, 1.0)}, "q")
    assert several.map.items() == {"x": (4, 1.5)}
    with pytest.raises(
        RefusedValue, match=r"'counts' gives two rows of one batch for key 'cat' of table 'words': which one is later"
    ):
        sink_in(store, UPSERT).gathered([("cat", 1), ("cat", 2)])


def test_another_checkpoint_is_told_from_the_one_that_stored(store: SQLiteStore) -> None:
    sink = sink_in(store)
    sink.store(0, {"cat": 1}, "query-1")
    why = r"query 'counts' cannot store batch 0, which is transaction 1 in sqlite:.*: its checkpoint is of another"
    with pytest.raises(StoreMismatch, match=why):
        sink.store(0, {"cat": 1}, "query-2")
    sink.store(1, {"cat": 1}, "query-1")
    for batch in (0, 3):  # the checkpoint was set back, and the database was
        with pytest.raises(StoreMismatch, match=rf"cannot store batch {batch}"):
            sink.store(batch, {"cat": 1}, "query-1")
    assert sink.map.items() == {"cat": 2}


def test_a_query_that_began_elsewhere_is_told_how_to_go_on(store: SQLiteStore) -> None:
    with pytest.raises(StoreMismatch, match=r"store\.adopt\('counts', 7\)"):
        sink_in(store).store(7, {"cat": 1}, "query-1")
    store.adopt("counts", 7)
    assert sink_in(store).store(7, {"cat": 1}, "query-1")


def test_a_database_that_does_not_answer_says_to_start_the_query_again(store: SQLiteStore) -> None:
    sink = sink_in(store)
    sink.store(0, {"cat": 1}, "query-1")
    other = store.connect()
    other.begin()
    try:
        with pytest.raises(
            StoreFailed, match=r"'counts' cannot store batch 1: .* is not available: .*; start it again"
        ):
            sink.store(1, {"cat": 1}, "query-1")
    finally:
        other.close()
    assert sink.store(1, {"cat": 1}, "query-1")


def test_names_and_modes_that_are_none_are_told() -> None:
    with pytest.raises(InvalidStore, match=r"a query that stores in table 'words' is named 'a:b', expected 1 to 128"):
        sink_in(MemoryStore(), query="a:b")
    with pytest.raises(
        InvalidStore, match=r"'counts' stores in mode 'upsrt', expected one of upsert, increment; did y"
    ):
        sink_in(MemoryStore(), "upsrt")
