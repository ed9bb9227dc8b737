"""What every store keeps to where transactions become durable together: a group is one step, or it never was.

A test module subclasses this and gives a fixture `store`: an empty database.
"""

from __future__ import annotations

from typing import Any

import pytest

from stormline.errors import FailedException, StoreFailed, StoreMismatch
from stormline.state import NonTransactionalMap, OpaqueMap, StateMap, Store, TransactionalMap
from tests.contracts.store import KINDS, got, incremented, put, removed, words
from tests.kits.stores import Process, Work


def both(*works: Work) -> Work:
    """Let several bolts work in one transaction; return what the last one does."""
    return lambda context, attempt: [work(context, attempt) for work in works][-1]


def fails(context: Any, attempt: Any) -> None:
    raise FailedException("on order")


def is_stored(store: Store) -> Work:
    return lambda context, attempt: store.is_stored(context, attempt)


def before(counts: StateMap, keys: list[Any]) -> Work:
    return lambda context, attempt: counts.begin_commit(context, attempt).multi_get_before(keys)


class GroupedCommitsContract:
    @pytest.mark.parametrize("kind", KINDS)
    def test_each_transaction_of_a_group_sees_what_those_before_it_stored(
        self, store: Store, process: Process, kind: type[StateMap]
    ) -> None:
        counts = words(store, kind)
        process.commit(1, incremented(counts, {"kept": 1, "cat": 1, "gone": 1}))
        found = process.commit_group(
            store,
            2,
            incremented(counts, {"cat": 5, "new": 1}),
            both(removed(counts, ["gone"]), got(counts, ["cat", "new", "gone", "kept"])),
            both(incremented(counts, {"cat": 10, "gone": 3}), got(counts, ["cat", "gone", "kept"])),
        )
        assert found == [{"cat": 6, "new": 1}, [6, 1, None, 1], [16, 3, 1]]
        assert counts.items() == {"kept": 1, "cat": 16, "new": 1, "gone": 3}
        assert process.commit(5, got(counts, ["cat", "gone"])) == [16, 3]

    def test_nothing_of_a_group_is_seen_before_all_of_it_is(
        self, store: Store, process: Process, successor: Process
    ) -> None:
        counts = words(store)
        process.commit(1, incremented(counts, {"cat": 1}))
        last, _ = process.hold(store, 2, *[incremented(counts, {"cat": 1})] * 3)
        last.prepare()
        last.abort()  # as where the process ends here
        assert counts.items() == {"cat": 1}
        successor.commit_group(store, 2, *[incremented(counts, {"cat": 1})] * 2)
        assert counts.items() == {"cat": 3}

    @pytest.mark.parametrize("kind", KINDS)
    def test_one_that_fails_in_the_middle_leaves_those_before_it_to_become_durable(
        self, store: Store, process: Process, kind: type[StateMap]
    ) -> None:
        counts = words(store, kind)
        process.commit(1, incremented(counts, {"cat": 1, "dog": 1}))
        process.commit_group(
            store,
            2,
            incremented(counts, {"cat": 1}),
            removed(counts, ["dog"]),
            both(incremented(counts, {"cat": 100, "dog": 100, "owl": 100}), fails),
        )
        assert counts.items() == {"cat": 2}
        process.commit(4, incremented(counts, {"owl": 1}))
        assert counts.items() == {"cat": 2, "owl": 1}

    @pytest.mark.parametrize("kind", KINDS)
    def test_a_group_whose_record_was_lost_counts_once_however_it_is_cut_then(
        self, store: Store, process: Process, successor: Process, kind: type[StateMap]
    ) -> None:
        """The driver ends between the database's commit and the record; the next one has another size of groups."""
        counts = words(store, kind)
        process.commit(1, incremented(counts, {"cat": 1, "gone": 1}))
        works = [
            incremented(counts, {"cat": 1, "new": 1}),
            both(incremented(counts, {"cat": 10}), removed(counts, ["gone"])),
            incremented(counts, {"cat": 100, "gone": 100}),
        ]
        process.commit_group(store, 2, *works)
        left = counts.items()
        assert left == {"cat": 112, "new": 1, "gone": 100}
        successor.commit_group(store, 2, works[0], works[1])
        assert counts.items() == left, "the rest of the group is there, too"
        assert successor.commit(4, both(works[2], is_stored(store))) is True
        assert counts.items() == left, "the last one alone is not put back to what was before the group"
        successor.commit(5, incremented(counts, {"cat": 1000}))
        assert counts.items() == {**left, "cat": 1112}

    @pytest.mark.parametrize("kind", KINDS)
    def test_a_group_whose_record_was_lost_counts_once_one_by_one(
        self, store: Store, process: Process, successor: Process, kind: type[StateMap]
    ) -> None:
        counts = words(store, kind)
        process.commit_group(store, 1, *[incremented(counts, {"cat": 1})] * 3)
        third = Process(epoch=3)
        assert successor.commit(1, both(incremented(counts, {"cat": 1}), is_stored(store))) is True
        for txid in (2, 3):
            assert third.commit(txid, both(incremented(counts, {"cat": 1}), is_stored(store))) is True
        third.end()
        assert counts.items() == {"cat": 3}
        with pytest.raises(StoreMismatch, match=r"another driver has taken over"):
            successor.commit(4, incremented(counts, {"cat": 1}))

    def test_what_is_stored_and_what_is_not_are_no_group(
        self, store: Store, process: Process, successor: Process
    ) -> None:
        counts = words(store)
        process.commit_group(store, 1, *[incremented(counts, {"cat": 1})] * 2)
        resource: Any = successor.resources.get(store, store.open_resource)
        first = resource.begin(successor.begin(1).token(), successor.registry)
        first.hold()
        second = first.follow(successor.begin(2).token())
        second.hold()
        assert (first.stored, second.stored) == (True, True)
        assert second.follow(successor.begin(3).token()) is None, "it has to begin anew"
        second.prepare()
        second.commit()
        successor.commit(3, incremented(counts, {"cat": 1}))
        assert counts.items() == {"cat": 3}

    def test_an_opaque_map_keeps_what_was_before_the_group(
        self, store: Store, process: Process, successor: Process
    ) -> None:
        counts = words(store, OpaqueMap)
        process.commit(1, incremented(counts, {"cat": 1}))
        found = process.commit_group(
            store,
            2,
            both(incremented(counts, {"cat": 5}), before(counts, ["cat", "dog"])),
            both(incremented(counts, {"cat": 5, "dog": 2}), before(counts, ["cat", "dog"])),
        )
        assert found == [[1, None], [6, None]], "each sees what was before it"
        assert successor.commit(2, before(counts, ["cat", "dog"])) == [1, None]
        assert successor.commit(3, before(counts, ["cat", "dog"])) == [1, None], "the group is one step"
        assert counts.items() == {"cat": 11, "dog": 2}
        process = Process(epoch=3)
        process.commit(4, incremented(counts, {"cat": 1}))
        assert process.commit(4, got(counts, ["cat"])) == [11], "alone, it is put back as always"
        process.end()

    def test_a_group_under_another_commit_id_is_of_another_history(
        self, store: Store, process: Process, successor: Process
    ) -> None:
        counts = words(store)
        process.commit_group(store, 1, *[incremented(counts, {"cat": 1})] * 3)
        for txid in (1, 2, 3):
            with pytest.raises(
                StoreMismatch, match=rf"transaction {txid} of topology 'topo' under another commit id: .*older copy"
            ):
                successor.commit(txid, incremented(counts, {"cat": 1}), commit_id=5)
        process.commit(4, incremented(counts, {"cat": 1}))
        with pytest.raises(StoreMismatch, match=r"holds transaction 4 .*, and this is transaction 3"):
            successor.commit(3, incremented(counts, {"cat": 1}))
        assert counts.items() == {"cat": 4}

    def test_a_group_is_known_after_the_commits_have_moved_to_the_executors(
        self, store: Store, process: Process, successor: Process
    ) -> None:
        counts, plain = words(store, OpaqueMap), NonTransactionalMap(store, "n", key={"k": str}, value={"n": int})
        work = both(incremented(counts, {"cat": 1}), incremented(plain, {"cat": 1}))
        process.commit_group(store, 1, work, work, work)
        for txid in (1, 2, 3):
            for task in (0, 1):
                successor.commit(txid, both(work, is_stored(store)), scope=f"count:{task}/2")
        assert (counts.items(), plain.items()) == ({"cat": 3}, {"cat": 3})
        successor.commit(4, work, scope="count:0/2")
        assert (counts.items(), plain.items()) == ({"cat": 4}, {"cat": 4})

    def test_a_transaction_of_a_group_cannot_use_a_map_that_another_one_opened(
        self, store: Store, process: Process
    ) -> None:
        counts = words(store)
        opened: list[Any] = []

        def opens(context: Any, attempt: Any) -> None:
            opened.append(counts.begin_commit(context, attempt))

        _, late = last_and_results = process.hold(store, 1, opens, lambda *_: opened[0].increment({"cat": 1}))
        assert isinstance(late[1], StoreFailed)
        assert "was used after the commit of 1:1 had ended" in str(late[1])
        last_and_results[0].abort()

    def test_what_fails_in_the_database_takes_the_group_with_it(
        self, store: Store, process: Process, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        counts = words(store)
        process.commit(1, incremented(counts, {"cat": 1}))

        def cut_off(*_: Any) -> None:
            raise OSError("cut off")

        def breaks(context: Any, attempt: Any) -> None:
            connection = store.in_commit(context, attempt)._shared.connection
            with monkeypatch.context() as broken:
                broken.setattr(type(connection), "read", cut_off)
                counts.begin_commit(context, attempt).get("dog")

        with pytest.raises(Exception, match="cut off"):
            process.commit_group(store, 2, incremented(counts, {"cat": 1}), breaks)
        assert counts.items() == {"cat": 1}
        process.commit_group(store, 2, *[incremented(counts, {"cat": 1})] * 2)
        assert counts.items() == {"cat": 3}

    def test_the_read_cache_is_right_after_a_group_and_after_one_that_was_lost(
        self, store: Store, process: Process, successor: Process
    ) -> None:
        counts = words(store, OpaqueMap, cache=10)
        process.commit_group(store, 1, *[incremented(counts, {"cat": 1})] * 3)
        assert process.commit(4, incremented(counts, {"cat": 1})) == {"cat": 4}
        successor.commit(4, incremented(counts, {"cat": 5}))
        assert successor.commit(5, incremented(counts, {"cat": 1})) == {"cat": 9}
        last, _ = successor.hold(store, 6, *[incremented(counts, {"cat": 1})] * 2)
        last.abort()
        assert successor.commit_group(store, 6, *[incremented(counts, {"cat": 1})] * 2)[1] == {"cat": 11}

    def test_each_key_is_written_once(self, store: Store, process: Process, monkeypatch: pytest.MonkeyPatch) -> None:
        counts = words(store)
        process.commit(1, put(counts, {"cat": 0}))
        connection = store.connect()
        written: list[Any] = []
        write = type(connection).write
        connection.close()

        def noted(self: Any, table: Any, rows: Any) -> None:
            written.extend(rows[0])
            write(self, table, rows)

        monkeypatch.setattr(type(connection), "write", noted)
        process.commit_group(store, 2, *[incremented(counts, {"cat": 1, f"w{i}": 1}) for i in range(5)])
        assert len(written) == 6
        assert counts.items() == {"cat": 5, **{f"w{i}": 1 for i in range(5)}}


class GroupedSQLContract:
    """Of databases that speak SQL; `counted` counts the rows of a table of the user's own."""

    def test_own_sql_of_one_that_fails_is_undone_and_that_of_those_before_it_is_not(
        self, store: Store, process: Process
    ) -> None:
        counts = TransactionalMap(store, "words", key={"word": str}, value={"count": int})
        log = NonTransactionalMap(store, "log", key={"batch": int}, value={"words": int})
        process.commit(1, incremented(counts, {"cat": 1}), put(log, {1: 1}))

        def logged(context: Any, attempt: Any) -> None:
            with store.transaction(context, attempt) as connection:
                text = f"INSERT INTO log VALUES ({attempt.transaction_id}, 7)"
                (connection if hasattr(connection, "execute") else connection.cursor()).execute(text)

        one = both(incremented(counts, {"cat": 1}), logged)
        process.commit_group(store, 2, one, one, both(one, removed(counts, ["cat"]), logged))
        assert (counts.items(), log.items()) == ({"cat": 3}, {1: 1, 2: 7, 3: 7})
        process.commit_group(store, 4, one, one, both(one, fails))
        assert (counts.items(), log.items()) == ({"cat": 5}, {1: 1, **dict.fromkeys(range(2, 6), 7)})
