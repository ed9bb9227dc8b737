"""What every store keeps to under those who only look. A test module subclasses this beside `StoreContract`."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import pytest

from stormline.errors import NoSuchKey, NoSuchTable, RefusedValue
from stormline.state import NonTransactionalMap, OpaqueMap, Store, TransactionalMap
from stormline.state.fence import Fence
from stormline.state.inspection import Inspection
from stormline.state.table import Row
from tests.contracts.store import incremented, put, words
from tests.kits.stores import Process


class InspectedStoreContract:
    def test_who_looks_at_a_store_makes_nothing(self, store: Store, process: Process) -> None:
        process.commit(1, incremented(words(store), {"cat": 1}))
        process.end()
        with Inspection.of(store) as seen:
            before = seen.topologies(), seen.fences("topo"), seen.tables()
            with pytest.raises(NoSuchTable, match=r"no table 'wrods'; it holds \['words'\]; did you mean 'words'\?"):
                seen.table("wrods")
        with Inspection.of(store) as seen:
            assert (seen.topologies(), seen.fences("topo"), seen.tables()) == before
            assert seen.fences("another") == {}

    def test_tables_are_seen_as_their_maps_declared_them(self, store: Store, process: Process) -> None:
        kept = OpaqueMap(store, "kept", key={"n": int, "at": date}, value={"x": object, "y": float})
        bare = NonTransactionalMap(store, "bare", key={"b": bytes}, value={"seen": bool})
        process.commit(1, put(kept, {(1, date(2013, 1, 31)): ([1], 0.5)}), put(bare, {b"\xff": True}))
        with Inspection.of(store) as seen:
            found = seen.tables()
            assert {name: (held.table, held.topology) for name, held in found.items()} == {
                "kept": (kept.spec, "topo"),
                "bare": (bare.spec, "topo"),
            }
            assert seen.topologies() == ["topo"]
            assert seen.fences("topo") == {"": Fence(1, 1, 1, 7001)}
            assert seen.row(bare.spec, ["ff"])[1].values == (True,)
            assert seen.row(kept.spec, ["1", "2013-01-31"])[1].txid == 1

    def test_rows_are_seen_with_what_stored_them(self, store: Store, process: Process) -> None:
        counts = OpaqueMap(store, "words", key={"word": str}, value={"count": int})
        process.commit(1, incremented(counts, {"cat": 1, "dog": 2, "owl": 3}))
        process.commit(2, incremented(counts, {"cat": 4}))
        with Inspection.of(store) as seen:
            assert seen.count(counts.spec) == 3
            assert seen.row(counts.spec, ["cat"]) == (("cat",), Row((5,), 2, (1,), 1))
            assert seen.rows(counts.spec)["dog",] == Row((2,), 1)
            assert len(seen.rows(counts.spec, 2)) == 2
            with pytest.raises(NoSuchKey, match=r"table 'words' of .* holds nothing under key 'ct'"):
                seen.row(counts.spec, ["ct"])

    @pytest.mark.parametrize(
        ("texts", "why"),
        [
            (["1"], r"given a key of 1 values, expected 3: n int, at datetime, yes bool"),
            (["x", "2013-01-31T00:00:00Z", "true"], r"key column 'n' of int, and 'x' is no int; give it as a number"),
            (["1", "2013-01-31T00:00:00", "true"], r"'at' of datetime, and '2013-01-31T00:00:00' has no time zone"),
            (["1", "2013-01-31T00:00:00Z", "1"], r"'yes' of bool, and '1' is no bool; give it as true or false"),
        ],
    )
    def test_a_key_that_is_none_of_the_tables_is_told(
        self, store: Store, process: Process, texts: list[str], why: str
    ) -> None:
        kept = TransactionalMap(store, "kept", key={"n": int, "at": datetime, "yes": bool}, value={"x": int})
        key: Any = (1, datetime(2013, 1, 31, tzinfo=UTC), True)
        process.commit(1, put(kept, {key: 7}))
        with Inspection.of(store) as seen:
            assert seen.row(kept.spec, ["1", "2013-01-31T01:00:00+01:00", "true"])[1].values == (7,)
            with pytest.raises(RefusedValue, match=why):
                seen.row(kept.spec, texts)


class OneMomentContract:
    def test_all_that_one_look_sees_is_of_one_moment(self, store: Store, process: Process) -> None:
        counts = words(store)
        process.commit(1, incremented(counts, {"cat": 1}))
        with Inspection.of(store) as seen:
            assert seen.fences("topo")[""].txid == 1
            process.commit(2, incremented(counts, {"cat": 1}))
            assert seen.rows(counts.spec) == {("cat",): Row((1,), 1)}
            assert seen.fences("topo")[""].txid == 1
