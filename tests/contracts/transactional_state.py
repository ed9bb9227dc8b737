"""What state of user code keeps to, in every state store. A test module subclasses this and gives a `backend`."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from stormline import RotatingTransactionalState, TransactionalState, TransactionAttempt
from stormline.runtime.errors import Fenced, InvalidPath, NotNext, SessionLost, StateCorrupt, StateTooLarge
from stormline.runtime.state.state_store import Put, StateStore
from stormline.runtime.state.transactional_state import offer_state
from stormline.topology.config import TRANSACTIONAL_ID
from stormline.topology.errors import UnregisteredClass
from stormline.topology.registration import Registration
from stormline.topology.serialization import Registry
from tests.contracts.state_store import Backend, Position


def user_state(store: StateStore) -> TransactionalState:
    """Return the state that a component in the driver of topology "topo" gets."""
    return TransactionalState.new_user_state({TRANSACTIONAL_ID: "topo", **offer_state(store)}, "topo", {})


def gives(value: Any) -> Any:
    return lambda txid, previous: value


class TransactionalStateContract:
    def test_a_value_is_there_until_it_is_deleted(self, backend: Backend) -> None:
        state = user_state(backend.open())
        assert state.get_data("a/b") is None
        state.set_data("a/b", {"x": (1, [2])})
        state.get_data("a/b")["x"][1].append(3)
        assert state.get_data("a/b") == {"x": (1, [2])}
        state.set_data("a/b", None)
        assert (state.get_data("a/b"), state.get_data("a"), state.list("a")) == (None, None, ["b"])
        state.delete("a/b")
        state.delete("a/b")
        assert (state.list("a"), state.list("nowhere")) == ([], [])

    def test_a_directory_is_there_until_it_is_deleted(self, backend: Backend) -> None:
        state = user_state(backend.open())
        state.mkdir("d")
        state.set_data("d/e", 1)
        state.mkdir("d")
        assert (state.list(), state.list(""), state.list("d")) == (["d"], ["d"], ["e"])
        with pytest.raises(InvalidPath, match=r"path 'd' .* cannot be deleted, .* below it: \['e'\]; delete these fir"):
            state.delete("d")
        state.delete("d/e")
        assert (state.list(), state.list("d"), state.get_data("d")) == (["d"], [], None)
        state.delete("d")
        assert state.list() == []
        state.set_data("later/e", 1)
        state.mkdir("later")
        state.delete("later/e")
        assert state.list() == ["later"]
        state.set_data("d", 1)
        with pytest.raises(InvalidPath, match=r"/user/d would hold a value and have others below it; give"):
            state.mkdir("d")

    def test_the_next_owner_finds_everything(self, backend: Backend) -> None:
        store = backend.open(registry=Registry([Registration.of(Position)]))
        user_state(store).set_data("a/b", Position(7))
        user_state(store).mkdir("c")
        store.close()
        state = user_state(backend.open(registry=Registry([Registration.of(Position)])))
        assert (state.list(), state.get_data("a/b")) == (["a", "c"], Position(7))

    def test_the_engine_the_users_and_the_coordinators_state_are_apart(self, backend: Backend) -> None:
        store = backend.open()
        conf = {TRANSACTIONAL_ID: "topo", **offer_state(store)}
        store.write([Put("committed", 1), Put("batches/000000000001", 1)])
        user = TransactionalState.new_user_state(conf, "topo")
        coordinator = TransactionalState.new_coordinator_state(dict(conf), "topo", None)
        for n, state in enumerate((user, coordinator)):
            state.set_data("committed", n)
            state.set_data("batches/000000000001", n)
            state.close()
        assert [state.get_data("committed") for state in (user, coordinator)] == [0, 1]
        assert (store.children(""), store.get("committed")) == (["batches", "committed", "coordinator", "user"], 1)

    @pytest.mark.parametrize("path", ["/a", "a/", "a//b", "..", "../committed", "a b", "h:9092", "ä", "x" * 129])
    def test_a_path_that_cannot_name_a_znode_is_refused(self, backend: Backend, path: str) -> None:
        state = user_state(backend.open())
        for call in (state.get_data, state.list, state.mkdir, state.delete, lambda path: state.set_data(path, 1)):
            with pytest.raises(InvalidPath, match=r"expected 1 to 128 characters out of A-Z a-z 0-9"):
                call(path)

    def test_a_path_is_text_and_no_name_of_stormlines(self, backend: Backend) -> None:
        state = user_state(backend.open())
        with pytest.raises(InvalidPath, match=r"path 5 of the user's state is int, expected text"):
            state.set_data(5, 1)  # type: ignore[arg-type]
        with pytest.raises(InvalidPath, match=r"path 'a/__dir__' .* __dir__ is Stormline's own; take another name"):
            state.set_data("a/__dir__", 1)

    def test_a_value_that_is_too_large_is_not_sent(self, backend: Backend) -> None:
        state = user_state(backend.open())
        with pytest.raises(StateTooLarge, match=r"value for .*/user/big has 1,000,015 bytes, at most 1,000,000 fit"):
            state.set_data("big", b"x" * 1_000_000)
        state.set_data("big", b"x" * 999_000)
        assert state.list() == ["big"]

    def test_a_value_of_an_unregistered_class_is_not_written(self, backend: Backend) -> None:
        state = user_state(backend.open())
        with pytest.raises(UnregisteredClass, match=r"value for path 'a' of the user's state: .*Position is not"):
            state.set_data("a", Position(5))
        assert state.list() == []

    def test_the_write_of_a_zombie_is_refused_after_a_take_over(self, backend: Backend) -> None:
        zombie = user_state(backend.open())
        rotating = RotatingTransactionalState(zombie, "r")
        assert rotating.get_state(1, gives("a")) == "a"
        backend.make_zombie("topo")
        owner = user_state(backend.open())
        assert owner.get_data("r/1") == "a"
        owner.set_data("r/1", "b")
        writes = (
            lambda: zombie.set_data("r/1", "zombie"),
            lambda: zombie.mkdir("zombie"),
            lambda: zombie.delete("r/1"),
            lambda: rotating.get_state(2, gives("zombie")),
            lambda: rotating.override_state(1, "zombie"),
            lambda: rotating.remove_state(1),
            lambda: rotating.cleanup_before(2),
        )
        for write in writes:
            with pytest.raises(Fenced, match=r"epoch 1.*epoch 2 owns.*must stop"):
                write()
        assert (owner.list(), owner.list("r"), owner.get_data("r/1")) == (["r"], ["1"], "b")
        owner.set_data("r/1", "c")

    def test_nothing_is_written_after_the_end(self, backend: Backend) -> None:
        store = backend.open()
        state = user_state(store)
        store.close()
        with pytest.raises(SessionLost, match=r"topo.* is closed"):
            state.set_data("a", 1)


class ThreadsContract:
    def test_several_threads_may_write_and_delete_the_same(self, backend: Backend) -> None:
        state = user_state(backend.open())
        errors: list[BaseException] = []

        def work() -> None:
            try:
                for n in range(20):
                    state.set_data(f"d/{n}", n)
                    state.delete(f"d/{n}")
                    state.mkdir("e")
                    state.delete("e")
            except BaseException as error:
                errors.append(error)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert errors == []
        assert state.list() == []


class RotatingTransactionalStateContract:
    def test_a_strict_map_takes_each_txid_after_the_one_before(self, backend: Backend) -> None:
        user = user_state(backend.open())
        state = RotatingTransactionalState(user, "batches", True)
        assert state.get_state(1, gives(10)) == 10
        assert state.get_state(2, gives(10)) == 10
        assert state.get_state(3, gives(20)) == 20
        assert state.get_state(1, gives(20)) == 10
        with pytest.raises(
            NotNext, match=r"transaction 5 has no value in batches and is not the next one, 4; it holds 1 to 3"
        ):
            state.get_state(5, gives(20))
        assert state.get_state(4, gives(20)) == 20
        assert user.list("batches") == ["1", "2", "3", "4"]
        state.cleanup_before(3)
        assert user.list("batches") == ["3", "4"]
        with pytest.raises(NotNext, match=r"transaction 2 .* is not the next one, 5; it holds 3 to 4"):
            state.get_state(2, gives(20))

    def test_a_map_that_is_not_strict_takes_any_later_txid(self, backend: Backend) -> None:
        state = RotatingTransactionalState(user_state(backend.open()), "batches")
        assert state.get_state(10, gives(20)) == 20
        assert state.get_state(20, gives(20)) == 20
        assert state.get_state(12, gives(20)) is None
        assert state.get_state(21, gives(20)) == 20
        assert state.get_state(12, gives(20)) is None

    def test_the_first_txid_is_1(self, backend: Backend) -> None:
        state = RotatingTransactionalState(user_state(backend.open()), "batches", strict_order=True)
        with pytest.raises(NotNext, match=r"transaction 2 .* is not the next one, 1; it holds none"):
            state.get_state(2, gives(10))

    def test_the_initializer_sees_the_txid_and_the_value_before_it(self, backend: Backend) -> None:
        class Append:
            def init(self, txid: int, last_state: Any) -> Any:
                return [*(last_state or []), txid]

        state = RotatingTransactionalState(user_state(backend.open()), "batches")
        for txid in (1, 2, 10, 11):
            state.get_state(txid, Append())
        assert state.get_state(11, gives(0)) == [1, 2, 10, 11]

    def test_what_was_created_is_told_from_what_was_there(self, backend: Backend) -> None:
        store = backend.open()
        state = RotatingTransactionalState(user_state(store), "0")
        assert state.get_last_state() is None
        assert state.get_state_or_create(1, gives("a")) is None
        assert state.get_state_or_create(1, gives("b")) == "a"
        assert state.get_state_or_create(3, gives("c")) is None
        assert state.get_state_or_create(2, gives("skipped")) is None
        assert state.get_state_or_create(2, gives("skipped")) is None
        assert (state.has_cache(2), state.has_cache(4), state.get_last_state()) == (True, False, "c")
        state.override_state(3, "d")
        state.override_state(4, "e")
        state.remove_state(2)
        state.remove_state(2)
        store.close()
        state = RotatingTransactionalState(user_state(backend.open()), "0")
        assert [state.has_cache(txid) for txid in (1, 2, 3, 4)] == [True, False, True, True]
        assert state.get_last_state() == "e"
        assert state.get_state_or_create(3, gives("again")) == "d"

    def test_an_initializer_that_fails_leaves_nothing(self, backend: Backend) -> None:
        state = RotatingTransactionalState(user_state(backend.open()), "0")
        with pytest.raises(ZeroDivisionError):
            state.get_state(1, lambda txid, last: txid // 0)
        assert not state.has_cache(1)

    def test_txids_are_in_the_order_of_numbers_and_any_number_is_cleaned_up(self, backend: Backend) -> None:
        user = user_state(backend.open())
        state = RotatingTransactionalState(user, "r")
        for txid in range(1, 12):
            state.get_state(txid, lambda txid, last: (last or 0) + txid)
        assert state.get_last_state() == sum(range(12))
        for txid in range(100, 1202):
            state.override_state(txid, txid)
        state.cleanup_before(0)
        assert state.has_cache(1)
        state.cleanup_before(1201)
        assert (user.list("r"), state.get_last_state()) == (["1201"], 1201)
        state.cleanup_before(5000)
        assert (user.list("r"), user.list(), state.get_last_state()) == ([], ["r"], None)

    @pytest.mark.parametrize("name", ["notes", "007", "0", str(1 << 63)])
    def test_a_foreign_name_halts(self, backend: Backend, name: str) -> None:
        user = user_state(backend.open())
        user.set_data(f"s/{name}", 1)
        with pytest.raises(StateCorrupt, match=r"s/.* is not named after a transaction, .*directory of its own"):
            RotatingTransactionalState(user, "s")

    @pytest.mark.parametrize("txid", [0, -1, 1 << 63, "1", True, None, TransactionAttempt(1, 1)])
    def test_what_is_no_txid_is_refused(self, backend: Backend, txid: Any) -> None:
        state = RotatingTransactionalState(user_state(backend.open()), "r")
        calls = (
            lambda: state.get_state(txid, gives(1)),
            lambda: state.get_state_or_create(txid, gives(1)),
            lambda: state.has_cache(txid),
            lambda: state.override_state(txid, 1),
            lambda: state.remove_state(txid),
            *([] if txid == 0 else [lambda: state.cleanup_before(txid)]),
        )
        for call in calls:
            with pytest.raises(InvalidPath, match=r"txid .* for r .*: expected a whole number from 1 .*transaction_id"):
                call()
