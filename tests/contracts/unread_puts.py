"""What every store keeps to where values are put under keys that nobody reads. A test module subclasses this too."""

from __future__ import annotations

from typing import Any

import pytest

from stormline.errors import CorruptRow, StoreMismatch
from stormline.state import NonTransactionalMap, OpaqueMap, StateMap, Store, TransactionalMap
from tests.contracts.sql_store import RunSQL
from tests.contracts.store import KINDS, incremented, put, words
from tests.kits.stores import CommitFailed, Process


class UnreadPutsContract:
    @pytest.mark.parametrize("count", [1, 1500])
    @pytest.mark.parametrize("kind", [TransactionalMap, NonTransactionalMap])
    def test_what_is_put_is_not_read(
        self,
        store: Store,
        process: Process,
        successor: Process,
        kind: type[StateMap],
        count: int,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        kept = kind(store, "kept", key={"s": str, "n": int}, value={"x": int, "y": object})
        connection = store.connect()
        connection.close()
        rows = {(f"{'ÿ' * (i % 3)}'\\ {i * 7919 % count}", -i): (i, [i]) for i in range(count)}
        with monkeypatch.context() as patched:
            patched.setattr(type(connection), "read", None)
            for txid in (1, 2, 3):
                process.commit(txid, put(kept, {key: (x + txid, y) for key, (x, y) in rows.items()}))
            successor.commit(3, put(kept, dict.fromkeys(rows, (0, None))))  # it is stored already
        assert kept.items() == {key: (x + 3, y) for key, (x, y) in rows.items()}

    @pytest.mark.parametrize("kind", KINDS)
    def test_what_is_put_is_there_for_all_that_comes_later_in_the_transaction(
        self, store: Store, process: Process, kind: type[StateMap]
    ) -> None:
        counts = words(store, kind)

        def work(context: Any, attempt: Any) -> Any:
            opened = counts.begin_commit(context, attempt)
            opened.multi_put({"a": 1, "b": 1, "c": 1})
            opened.multi_put({"b": 2, "d": 2})
            got = opened.multi_get(["a", "b", "c", "d", "e"])
            opened.put("e", 5)
            return got, opened.increment({"a": 10, "e": 10}), opened.get("old")

        process.commit(1, put(counts, {"a": 7, "old": 7}), put(counts, {"a": 8}))
        assert process.commit(2, work) == ([1, 2, 1, 2, None], {"a": 11, "e": 15}, 7)
        assert counts.items() == {"a": 11, "b": 2, "c": 1, "d": 2, "e": 15, "old": 7}

    def test_with_another_parallelism_what_is_stored_already_is_left_alone(
        self, store: Store, process: Process, successor: Process
    ) -> None:
        counts = words(store)
        process.commit(1, put(counts, {"a": 1, "b": 1}), scope="count:0/1")
        process.commit(2, put(counts, {"a": 2}), scope="count:0/2")
        # Task 1 of 2 has not stored b when the driver ends; then there are three, whose keys are others.
        successor.commit(2, put(counts, {"a": 99, "b": 2, "c": 2}), scope="count:0/3")
        assert counts.items() == {"a": 2, "b": 2, "c": 2}

    @pytest.mark.parametrize("kind", [TransactionalMap, OpaqueMap])
    def test_a_cache_knows_what_was_put(self, store: Store, process: Process, kind: type[StateMap]) -> None:
        counts = words(store, kind, cache=10)
        process.commit(1, put(counts, {"a": 1}))
        process.commit(2, put(counts, {"a": 2, "b": 2}))
        assert process.commit(3, incremented(counts, {"a": 1, "b": 1, "c": 1})) == {"a": 3, "b": 3, "c": 1}


class UnreadPutsInSQLContract:
    parameter: str

    @pytest.mark.parametrize("count", [2, 1500])
    @pytest.mark.parametrize(
        ("txid", "error", "why"),
        [
            ("9", StoreMismatch, r"StoreMismatch .*'mine' holds key \('k1',\) as stored by transaction 9, .* is trans"),
            ("-1", CorruptRow, r"CorruptRow .*'mine' .*-1 as txid of key \('k1',\)"),
            ("NULL", CorruptRow, r"CorruptRow .*'mine' .*key \('k1',\)"),
        ],
    )
    def test_a_row_that_no_earlier_transaction_has_stored_stops_the_topology_and_nothing_is_stored(
        self, store: Store, process: Process, sql: RunSQL, txid: str, error: type[Exception], why: str, count: int
    ) -> None:
        sql("CREATE TABLE mine (word VARCHAR(50) PRIMARY KEY, seen BIGINT, txid BIGINT)")
        mine = TransactionalMap(store, "mine", key={"word": str}, value={"seen": int})
        process.commit(1, put(mine, {"k0": 1, "k1": 1}))
        sql(f"UPDATE mine SET txid = {txid} WHERE word = 'k1'")
        before = sql("SELECT word, seen, txid FROM mine ORDER BY word")
        with pytest.raises(CommitFailed, match=why):
            process.commit(2, put(mine, {f"k{i}": 2 for i in range(count)}))
        assert sql("SELECT word, seen, txid FROM mine ORDER BY word") == before

    def test_own_sql_sees_what_was_put_and_it_may_be_put_again(
        self, store: Store, process: Process, sql: RunSQL
    ) -> None:
        counts = words(store)
        seen = []

        def work(context: Any, attempt: Any) -> None:
            opened = counts.begin_commit(context, attempt)
            for value in (2, 3):
                opened.multi_put({"a": value, f"new-{value}": value})
                with store.transaction(context, attempt) as connection:
                    cursor = connection.cursor()
                    cursor.execute("SELECT count(*) FROM words")
                    seen.append(cursor.fetchone()[0])
            opened.multi_put({"a": 4})

        process.commit(1, put(counts, {"a": 1}))
        process.commit(2, work)
        assert seen == [2, 3]
        assert counts.items() == {"a": 4, "new-2": 2, "new-3": 3}
