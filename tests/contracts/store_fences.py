"""What a store's fences let in and refuse, on each store."""

from __future__ import annotations

import pytest

from stormline.errors import InvalidStore, StoreMismatch
from stormline.state import OpaqueMap, StateMap, Store, TransactionalMap
from tests.contracts.store import incremented, removed, words
from tests.kits.stores import Process


class StoreFencesContract:
    """Needs the fixtures of `StoreContract`."""

    def test_a_driver_that_was_taken_over_stores_nothing(
        self, store: Store, process: Process, successor: Process
    ) -> None:
        counts = words(store)
        process.commit(1, incremented(counts, {"cat": 1}))
        successor.commit(2, incremented(counts, {"cat": 1}))
        for txid in (2, 3):
            with pytest.raises(
                StoreMismatch, match=r"stored by epoch 2, attempt 1001, .*another driver has taken over"
            ):
                process.commit(txid, incremented(counts, {"cat": 1}))
        assert counts.items() == {"cat": 2}

    def test_an_older_attempt_that_comes_late_stores_nothing(self, store: Store, process: Process) -> None:
        counts = words(store)
        process.commit(1, incremented(counts, {"cat": 1}), attempt=5)
        with pytest.raises(StoreMismatch, match=r"stored by epoch 1, attempt 5, .* epoch 1, attempt 4, which is older"):
            process.commit(1, incremented(counts, {"cat": 1}), attempt=4)

    def test_state_that_was_set_back_stops_the_topology(
        self, store: Store, process: Process, successor: Process
    ) -> None:
        counts = words(store)
        for txid in (1, 2, 3):
            process.commit(txid, incremented(counts, {"cat": 1}))
        with pytest.raises(StoreMismatch, match=r"holds transaction 3 of topology 'topo', and this is transaction 1"):
            successor.commit(1, incremented(counts, {"cat": 1}))
        with pytest.raises(StoreMismatch, match=r"transaction 3 .* under another commit id: .* older copy"):
            successor.commit(3, incremented(counts, {"cat": 1}), commit_id=1)
        assert counts.items() == {"cat": 3}

    def test_a_database_that_is_behind_stops_the_topology_unless_it_is_adopted(
        self, store: Store, process: Process
    ) -> None:
        counts = words(store)
        with pytest.raises(StoreMismatch, match=r"\(0: nothing\), and the next .* is 5: .*adopt\('topo', 4\)"):
            process.commit(5, incremented(counts, {"cat": 1}))
        store.adopt("topo", 4)
        process.commit(5, incremented(counts, {"cat": 1}))
        with pytest.raises(StoreMismatch, match=r"holds transaction 5 .*, and the next one to commit is 8"):
            process.commit(8, incremented(counts, {"cat": 1}))
        with pytest.raises(InvalidStore, match=r"holds transaction 5 of topology 'topo', and is to be adopted at 9"):
            store.adopt("topo", 9)
        with pytest.raises(InvalidStore, match=r"is to be adopted at transaction -1, expected a number from 0 on"):
            store.adopt("topo", -1)
        assert counts.items() == {"cat": 1}

    def test_each_task_on_the_executors_has_a_fence_of_its_own(
        self, store: Store, process: Process, successor: Process
    ) -> None:
        counts = words(store)
        process.commit(1, incremented(counts, {"cat": 1}), scope="count:0/2")
        process.commit(1, incremented(counts, {"dog": 1}), scope="count:1/2")
        process.commit(2, incremented(counts, {"cat": 1}), scope="count:0/2")
        # The driver ends before task 1 has committed.
        successor.commit(2, incremented(counts, {"cat": 1}), scope="count:0/2")
        successor.commit(2, incremented(counts, {"dog": 1}), scope="count:1/2")
        assert counts.items() == {"cat": 2, "dog": 2}

    def test_a_scope_goes_on_after_others_where_placement_or_parallelism_changes_and_changes_back(
        self, store: Store, process: Process, successor: Process
    ) -> None:
        counts = words(store)
        process.commit(1, incremented(counts, {"cat": 1}))
        for txid in (2, 3, 4):  # on the executors
            process.commit(txid, incremented(counts, {"cat": 1}), scope="count:0/2")
            process.commit(txid, incremented(counts, {"dog": 1}), scope="count:1/2")
        process.commit(5, incremented(counts, {"cat": 1}))  # in the driver again
        process.commit(6, incremented(counts, {"cat": 1}))
        process.commit(7, incremented(counts, {"dog": 1}), scope="count:1/2")
        assert counts.items() == {"cat": 6, "dog": 4}
        with pytest.raises(StoreMismatch, match=r"holds transaction 7 .*, and the next one to commit is 9"):
            successor.commit(9, incremented(counts, {"cat": 1}))
        with pytest.raises(StoreMismatch, match=r"holds transaction 7 .*, and this is transaction 5: .*set back"):
            successor.commit(5, incremented(counts, {"cat": 1}), scope="count:0/3")
        with pytest.raises(StoreMismatch, match=r"transaction 7 .* under another commit id: .* older copy"):
            successor.commit(7, incremented(counts, {"cat": 1}), scope="count:0/2", commit_id=1)
        successor.commit(8, incremented(counts, {"cat": 1}), scope="count:0/2")
        with pytest.raises(StoreMismatch, match=r"another driver has taken over"):
            process.commit(8, incremented(counts, {"cat": 1}))
        assert counts.items() == {"cat": 7, "dog": 4}

    @pytest.mark.parametrize("kind", [TransactionalMap, OpaqueMap])
    def test_with_another_parallelism_each_value_tells_whether_it_is_stored(
        self, store: Store, process: Process, successor: Process, kind: type[StateMap]
    ) -> None:
        counts = words(store, kind)
        process.commit(1, incremented(counts, {"a": 1, "b": 1, "c": 1}), scope="count:0/1")
        process.commit(2, incremented(counts, {"a": 1, "b": 1}), scope="count:0/2")
        # Task 1 of 2 has not stored c when the driver ends; then there are three, whose keys are others.
        successor.commit(2, incremented(counts, {"b": 1}), scope="count:0/3")
        successor.commit(2, incremented(counts, {"c": 1}), scope="count:1/3")
        successor.commit(2, incremented(counts, {"a": 1}), scope="count:2/3")
        assert counts.items() == {"a": 2, "b": 2, "c": 2}

    def test_an_opaque_map_on_the_executors_puts_back_its_tasks_keys(
        self, store: Store, process: Process, successor: Process
    ) -> None:
        counts = words(store, OpaqueMap)
        process.commit(1, incremented(counts, {"a": 1, "b": 1}), scope="count:0/2")
        process.commit(1, incremented(counts, {"z": 1}), scope="count:1/2")
        process.commit(2, incremented(counts, {"a": 5}), removed(counts, ["b"]), scope="count:0/2")
        process.commit(2, incremented(counts, {"z": 5}), scope="count:1/2")
        successor.commit(2, incremented(counts, {"a": 5, "b": 7}), scope="count:0/2")
        assert counts.items() == {"a": 6, "b": 8, "z": 6}
