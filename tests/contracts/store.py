"""What every store keeps to. A test module subclasses this and gives a fixture `store`: an empty database.

What its values keep to is in `stored_values`.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from stormline.errors import (
    InvalidStore,
    NotCommitting,
    RefusedValue,
    StoreFailed,
    TableMismatch,
)
from stormline.state import (
    NonTransactionalMap,
    OpaqueMap,
    SnapshottableMap,
    StateMap,
    Store,
    TransactionalMap,
)
from tests.kits.stores import CommitFailed, Process, Work

KINDS = [TransactionalMap, OpaqueMap, NonTransactionalMap]


def words(store: Store, kind: type[StateMap] = TransactionalMap, **more: Any) -> StateMap:
    return kind(store, "words", key={"word": str}, value={"count": int}, **more)


def incremented(counts: StateMap, by: dict[Any, Any]) -> Work:
    return lambda context, attempt: counts.begin_commit(context, attempt).increment(by)


def got(counts: StateMap, keys: list[Any]) -> Work:
    return lambda context, attempt: counts.begin_commit(context, attempt).multi_get(keys)


def put(counts: StateMap, values: dict[Any, Any]) -> Work:
    return lambda context, attempt: counts.begin_commit(context, attempt).multi_put(values)


def removed(counts: StateMap, keys: list[Any]) -> Work:
    return lambda context, attempt: counts.begin_commit(context, attempt).remove(keys)


@pytest.fixture
def process() -> Iterator[Process]:
    """The driver of epoch 1."""
    made = Process()
    yield made
    made.end()


@pytest.fixture
def successor() -> Iterator[Process]:
    """The driver of epoch 2, which goes on after the first one ended, or while that one does not know of it."""
    made = Process(epoch=2)
    yield made
    made.end()


class StoreContract:
    # ------------------------------------------------------------------------------------ maps

    @pytest.mark.parametrize("kind", KINDS)
    def test_what_a_transaction_stored_is_there_for_the_next(
        self, store: Store, process: Process, kind: type[StateMap]
    ) -> None:
        counts = words(store, kind)
        assert counts.items() == {}
        assert process.commit(1, got(counts, ["cat"])) == [None]
        assert process.commit(2, incremented(counts, {"cat": 3, "dog": 1})) == {"cat": 3, "dog": 1}
        assert process.commit(3, incremented(counts, {"dog": 5, "owl": 2})) == {"dog": 6, "owl": 2}
        assert process.commit(4, got(counts, ["owl", "cat", "none", "cat"])) == [2, 3, None, 3]
        assert counts.items() == {"cat": 3, "dog": 6, "owl": 2}

    @pytest.mark.parametrize("kind", KINDS)
    def test_a_transaction_sees_what_it_has_stored_itself(
        self, store: Store, process: Process, kind: type[StateMap]
    ) -> None:
        counts = words(store, kind)

        def work(context: Any, attempt: Any) -> list[Any]:
            opened = counts.begin_commit(context, attempt)
            opened.multi_put({"a": 1, "b": 2})
            opened.increment({"a": 10})
            opened.remove(["b", "never"])
            assert opened.update("c", lambda old: 7 if old is None else 0) == 7
            opened.put("d", 1)
            opened.remove(["d"])
            opened.put("d", 4)
            return counts.begin_commit(context, attempt).multi_get(["a", "b", "c", "d"])

        assert process.commit(1, work) == [11, None, 7, 4]
        assert counts.items() == {"a": 11, "c": 7, "d": 4}

    @pytest.mark.parametrize("kind", KINDS)
    def test_a_replay_of_what_is_stored_counts_once_and_returns_the_same(
        self, store: Store, process: Process, successor: Process, kind: type[StateMap]
    ) -> None:
        """The first driver ends between the database's commit and the record."""
        counts = words(store, kind)
        process.commit(1, incremented(counts, {"cat": 1, "dog": 1}))
        first = process.commit(2, incremented(counts, {"cat": 5}), removed(counts, ["dog"]), got(counts, ["cat"]))
        again = successor.commit(2, incremented(counts, {"cat": 5}), removed(counts, ["dog"]), got(counts, ["cat"]))
        assert first == again == [6]
        assert successor.commit(2, incremented(counts, {"cat": 5}), removed(counts, ["dog"])) is None
        assert counts.items() == {"cat": 6}
        assert successor.commit(3, incremented(counts, {"cat": 1})) == {"cat": 7}

    @pytest.mark.parametrize("kind", KINDS)
    def test_what_fails_leaves_nothing_and_its_replay_counts_once(
        self, store: Store, process: Process, kind: type[StateMap]
    ) -> None:
        counts, other = words(store, kind), kind(store, "other", key={"n": int}, value={"x": int})

        def fails(context: Any, attempt: Any) -> None:
            raise ZeroDivisionError

        process.commit(1, incremented(counts, {"cat": 1}), incremented(other, {1: 1}))
        with pytest.raises(ZeroDivisionError):
            process.commit(2, incremented(counts, {"cat": 5}), removed(other, [1]), fails)
        assert (counts.items(), other.items()) == ({"cat": 1}, {1: 1})
        process.commit(2, incremented(counts, {"cat": 5}), removed(other, [1]))
        assert (counts.items(), other.items()) == ({"cat": 6}, {})

    def test_two_maps_two_tasks_and_own_threads_are_one_transaction(self, store: Store, process: Process) -> None:
        counts, other = words(store), TransactionalMap(store, "other", key={"n": int}, value={"x": int})

        def work(context: Any, attempt: Any) -> None:
            def task(n: int) -> None:
                for _ in range(20):
                    counts.begin_commit(context, attempt).increment({"cat": 1, f"word-{n}": 1})
                    other.begin_commit(context, attempt).increment({n: 1})

            threads = [threading.Thread(target=task, args=[n]) for n in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()

        process.commit(1, work)
        assert counts.items() == {"cat": 80, **{f"word-{n}": 20 for n in range(4)}}
        assert other.items() == dict.fromkeys(range(4), 20)

    def test_many_keys_are_stored_and_found(self, store: Store, process: Process) -> None:
        counts = words(store, OpaqueMap)
        many = {f"key-{i}": i for i in range(5000)}
        process.commit(1, incremented(counts, many))
        assert process.commit(2, incremented(counts, many))["key-4999"] == 9998
        process.commit(3, removed(counts, [f"key-{i}" for i in range(4000)]))
        assert counts.items() == {f"key-{i}": 2 * i for i in range(4000, 5000)}

    def test_a_single_value(self, store: Store, process: Process, successor: Process) -> None:
        total = SnapshottableMap(words(store), "all")

        def work(context: Any, attempt: Any) -> tuple[Any, ...]:
            opened = total.begin_commit(context, attempt)
            return opened.stored, opened.increment(2), opened.update(lambda old: old * 10), opened.get()

        assert process.commit(1, work) == (False, 2, 20, 20)
        assert successor.commit(1, work) == (True, 20, 20, 20)
        successor.commit(2, lambda context, attempt: total.begin_commit(context, attempt).set(5))
        assert words(store).items() == {"all": 5}
        successor.commit(3, lambda context, attempt: total.begin_commit(context, attempt).remove())
        assert words(store).items() == {}

    # ------------------------------------------------------------------------------------ opaque maps

    def test_an_opaque_map_recomputes_from_what_was_before(
        self, store: Store, process: Process, successor: Process
    ) -> None:
        counts = words(store, OpaqueMap)
        process.commit(1, incremented(counts, {"kept": 1, "touched": 1, "removed": 1, "both": 1}))
        process.commit(2, incremented(counts, {"touched": 5, "new": 5, "both": 5}), removed(counts, ["removed"]))
        assert counts.items() == {"kept": 1, "touched": 6, "new": 5, "both": 6}
        # Another batch in the replay: "touched", "new" and "removed" are what they were before.
        assert successor.commit(2, incremented(counts, {"both": 7, "removed": 7})) == {"both": 8, "removed": 8}
        assert counts.items() == {"kept": 1, "touched": 1, "both": 8, "removed": 8}
        successor.commit(2, incremented(counts, {"touched": 3}))
        assert counts.items() == {"kept": 1, "touched": 4, "both": 1, "removed": 1}
        successor.commit(3, removed(counts, ["kept", "both"]), incremented(counts, {"kept": 9}))
        assert counts.items() == {"kept": 9, "touched": 4, "removed": 1}
        successor.commit(3)
        successor.commit(3, got(counts, []))
        assert counts.items() == {"kept": 1, "touched": 4, "both": 1, "removed": 1}

    def test_an_opaque_map_tells_what_was_before_in_every_attempt(
        self, store: Store, process: Process, successor: Process
    ) -> None:
        counts = words(store, OpaqueMap)

        def work(context: Any, attempt: Any) -> tuple[Any, ...]:
            opened = counts.begin_commit(context, attempt)
            now = opened.increment({"cat": 5, "dog": 1})
            return now, opened.multi_get_before(["cat", "dog"]), opened.multi_get(["cat", "dog"])

        process.commit(1, incremented(counts, {"cat": 1}))
        first = process.commit(2, work)
        assert first == ({"cat": 6, "dog": 1}, [1, None], [6, 1])
        assert successor.commit(2, work) == first

    def test_another_map_does_not_know_what_was_before(self, store: Store, process: Process) -> None:
        counts = words(store)
        with pytest.raises(RefusedValue, match=r"'words' is that of a transactional map, .* declare an OpaqueMap"):
            process.commit(1, lambda context, attempt: counts.begin_commit(context, attempt).multi_get_before(["a"]))

    # ------------------------------------------------------------------------------------ fence

    def test_a_store_is_used_only_within_its_commit(self, store: Store, process: Process) -> None:
        counts = words(store)
        phase = process.begin(1)
        opened = counts.begin_commit(phase, phase.attempt)
        assert phase.participants.commit(lambda: True) is None
        with pytest.raises(StoreFailed, match=r"used after the commit of 1:1 had ended; open its maps anew in each"):
            opened.increment({"cat": 1})
        with pytest.raises(NotCommitting, match=r"'test' asks to take part in the commit of 1:1, .* not run here"):
            counts.begin_commit(phase, phase.attempt)
        assert counts.items() == {}
        with pytest.raises(StoreFailed, match=r"used after the commit of 1:1 had ended"):  # it may have been a thread
            process.commit(2, incremented(counts, {"cat": 1}))

    # ------------------------------------------------------------------------------------ tables

    def test_a_map_that_is_declared_anew_is_noticed(self, store: Store, process: Process) -> None:
        process.commit(1, incremented(words(store), {"cat": 1}))
        for i, other in enumerate(
            [
                words(store, OpaqueMap),
                TransactionalMap(store, "words", key={"word": str}, value={"count": float}),
                TransactionalMap(store, "words", key={"word": str}, value={"count": int, "more": int}),
            ]
        ):
            later = Process(epoch=3 + i)
            with pytest.raises(
                TableMismatch, match=r"'words' .* is that of another map: transactional map .*, and this is"
            ):
                later.commit(2, got(other, ["cat"]))
            later.end()
        with pytest.raises(InvalidStore, match=r"two maps store in table 'words' of .*: transactional map"):
            process.commit(2, got(words(store, OpaqueMap), ["cat"]))

    def test_a_table_belongs_to_one_topology(self, store: Store, process: Process) -> None:
        process.commit(1, incremented(words(store), {"cat": 1}))
        other = Process(topology="other")
        with pytest.raises(TableMismatch, match=r"'words' .* belongs to topology 'topo', and this is 'other'"):
            other.commit(1, incremented(words(store), {"cat": 1}))
        another = TransactionalMap(store, "others", key={"word": str}, value={"count": int})
        assert other.commit(1, incremented(another, {"cat": 1})) == {"cat": 1}
        other.end()

    # ------------------------------------------------------------------------------------ read cache

    @pytest.mark.parametrize("kind", KINDS)
    @pytest.mark.parametrize("rows", [1, 3, 100])
    def test_a_cache_changes_nothing(
        self, store: Store, process: Process, successor: Process, kind: type[StateMap], rows: int
    ) -> None:
        counts = words(store, kind, cache=rows)

        def fails(context: Any, attempt: Any) -> None:
            raise ZeroDivisionError

        process.commit(1, incremented(counts, {"a": 1, "b": 1, "c": 1, "d": 1}))
        with pytest.raises(ZeroDivisionError):
            process.commit(2, incremented(counts, {"a": 10}), removed(counts, ["b"]), got(counts, ["e"]), fails)
        assert process.commit(2, incremented(counts, {"a": 1, "e": 1}), removed(counts, ["b"])) is None
        assert process.commit(2, incremented(counts, {"a": 1, "e": 1}), removed(counts, ["b"])) is None
        assert process.commit(3, got(counts, ["a", "b", "c", "e"])) == [2, None, 1, 1]
        # Another driver, and then this very process again: what it remembers is of long ago.
        successor.commit(4, incremented(counts, {"a": 5, "b": 5, "e": 5}))
        process.epoch = 3
        assert process.commit(5, got(counts, ["a", "b", "c", "e"])) == [7, 5, 1, 6]
        assert process.commit(6, incremented(counts, {"a": 1})) == {"a": 8}
        assert counts.items() == {"a": 8, "b": 5, "c": 1, "d": 1, "e": 6}

    def test_a_cache_forgets_what_an_opaque_map_takes_back(self, store: Store, process: Process) -> None:
        counts = words(store, OpaqueMap, cache=100)
        process.commit(1, incremented(counts, {"a": 1, "b": 1, "c": 1}))
        process.commit(2, removed(counts, ["a"]), incremented(counts, {"b": 1, "new": 1}))
        assert process.commit(2, incremented(counts, {"a": 5})) == {"a": 6}
        assert process.commit(3, got(counts, ["a", "b", "c", "new"])) == [6, 1, 1, None]

    def test_an_error_of_the_database_that_is_caught_fails_the_transaction_all_the_same(
        self, store: Store, process: Process, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        counts = words(store)

        def work(context: Any, attempt: Any) -> None:
            opened = counts.begin_commit(context, attempt)
            opened.increment({"cat": 1})
            transaction = store.in_commit(context, attempt)
            with monkeypatch.context() as broken:
                broken.setattr(type(transaction._shared.connection), "read", cut_off)
                with pytest.raises(StoreFailed):
                    opened.increment({"dog": 1})

        def cut_off(*args: Any) -> Any:
            raise StoreFailed("on order")

        with pytest.raises(CommitFailed, match="on order"):
            process.commit(1, work)
        assert counts.items() == {}
