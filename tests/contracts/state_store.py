"""What every state store keeps to. A test module subclasses these and gives a `backend` fixture."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any, Protocol

import pytest

from stormline.runtime.coordination.batch_store import Batches, record_of
from stormline.runtime.errors import (
    AlreadyRunning,
    Fenced,
    InvalidPath,
    NotNext,
    SessionLost,
    StateCorrupt,
    StateTooLarge,
    TopologyChanged,
)
from stormline.runtime.state import state_tree
from stormline.runtime.state.rotating_state import RotatingState
from stormline.runtime.state.state_store import Delete, Put, StateStore
from stormline.topology.attempt import TransactionAttempt
from stormline.topology.errors import StormlineError, UnregisteredClass
from stormline.topology.registration import Registration
from stormline.topology.serialization import Registry
from tests.kits.components import eventually

TRANSACTIONAL = "transactional spout"
PARTITIONED = "partitioned transactional spout"
OPAQUE = "opaque partitioned transactional spout"
OTHER_KINDS = list(itertools.permutations([TRANSACTIONAL, PARTITIONED, OPAQUE], 2))
DESCRIPTION = {"bolts": {"count": {"parallelism": 2}}}


@dataclasses.dataclass
class Position:
    """A value that has to be registered."""

    offset: int


class Backend(Protocol):
    """One place where state outlives stores; gives a fresh one per test."""

    def open(self, topology_id: str = "topo", **options: Any) -> StateStore:
        """Open a store that is closed after the test."""

    def make_zombie(self, topology_id: str) -> None:
        """Take the claim away from the present owner, which does not get to know."""

    def expire(self, topology_id: str) -> None:
        """End the session of the present owner."""


class StateStoreContract:
    def test_a_written_value_is_there_until_it_is_deleted(self, backend: Backend) -> None:
        store = backend.open()
        store.write([Put("a", 1), Put("b/c/d", {"x": (1, [2])})])
        assert store.get("a") == 1
        assert store.get("b/c/d") == {"x": (1, [2])}
        store.write([Put("a", 2), Delete("b/c/d")])
        assert store.get("a") == 2
        with pytest.raises(KeyError, match=r"no value at .*b/c/d"):
            store.get("b/c/d")

    def test_children_are_sorted_and_lead_to_values(self, backend: Backend) -> None:
        store = backend.open()
        assert store.children("b") == []
        store.write([Put("b/2", 0), Put("b/10", 0), Put("b/1/x", 0), Put("a", 0)])
        assert store.children("") == ["a", "b"]
        assert store.children("b") == ["1", "10", "2"]
        store.write([Delete("b/1/x"), Delete("a")])
        assert store.children("b") == ["10", "2"]
        assert store.children("") == ["b"]
        store.write([Put("b/1/y", 0)])
        assert store.children("b/1") == ["y"]

    def test_a_folder_goes_with_the_last_value_below_it(self, backend: Backend) -> None:
        store = backend.open()
        store.write([Put("a/b/c", 1), Put("a/b/d", 1), Put("a/e", 1), Put("f/g/h", 1)])
        store.write([Delete("a/b/c"), Delete("f/g/h")])
        store.write([Put("f", 1)])
        with pytest.raises(InvalidPath, match=r"/a/b would hold a value and have others below it"):
            store.write([Put("a/b", 1)])
        store.write([Delete("a/b/d"), Put("a/b/i", 1)])
        store.write([Delete("a/b/i"), Delete("a/e"), Put("a/j", 1)])
        store.write([Put("a/b", 1), Put("a/k/l", 1)])
        store.close()
        store = backend.open()
        assert (store.children(""), store.children("a")) == (["a", "f"], ["b", "j", "k"])
        store.write([Delete("a/b"), Delete("a/j"), Delete("a/k/l")])
        store.write([Put("a", 1)])

    def test_a_value_got_is_a_copy(self, backend: Backend) -> None:
        store = backend.open()
        value = [1]
        store.write([Put("a", value)])
        value.append(2)
        store.get("a").append(3)
        assert store.get("a") == [1]

    def test_the_next_owner_finds_everything_and_has_the_next_epoch(self, backend: Backend) -> None:
        for epoch in (1, 2, 3):
            store = backend.open()
            assert store.epoch == epoch
            assert [store.get(f"n/{n}") for n in store.children("n")] == list(range(1, epoch))
            for round_ in range(3):
                store.write([Put(f"n/{epoch}", epoch), Put("again", round_)])
            store.write([Delete("again"), Put(f"gone/{epoch}", 0)])
            store.write([Delete(f"gone/{epoch}")])
            store.close()

    def test_topologies_do_not_see_each_other(self, backend: Backend) -> None:
        one, two = backend.open("one"), backend.open("two")
        one.write([Put("a", 1)])
        assert two.children("") == []
        assert (one.epoch, two.epoch) == (1, 1)

    def test_values_keep_their_registered_type(self, backend: Backend) -> None:
        registry = Registry([Registration.of(Position)])
        store = backend.open(registry=registry)
        store.write([Put("a", Position(5))])
        store.close()
        assert backend.open(registry=registry).get("a") == Position(5)

    def test_a_value_of_an_unregistered_class_is_not_written(self, backend: Backend) -> None:
        store = backend.open()
        with pytest.raises(UnregisteredClass, match=r"Position is not registered"):
            store.write([Put("a", 1), Put("b", Position(5))])
        assert store.children("") == []
        store.write([Put("a", 1)])

    def test_a_value_whose_class_is_registered_no_more_halts(self, backend: Backend) -> None:
        store = backend.open(registry=Registry([Registration.of(Position)]))
        store.write([Put("meta/a", Position(5))])
        store.close()
        with pytest.raises(StateCorrupt, match=r"topo.*/meta/a holds .*Position'?, which is not registered"):
            backend.open()

    def test_a_write_is_all_or_nothing(self, backend: Backend) -> None:
        store = backend.open()
        store.write([Put("a", 1), Put("d/e", 1)])
        with pytest.raises(KeyError, match=r"no value to delete at .*/b"):
            store.write([Put("a", 2), Delete("b")])
        with pytest.raises(InvalidPath, match=r"/a comes twice in one write"):
            store.write([Put("a", 2), Delete("a")])
        for ops in ([Put("a/b", 2)], [Put("d", 2)], [Put("x", 1), Put("x/y", 1)], [Delete("a"), Put("a/b", 1)]):
            with pytest.raises(InvalidPath, match=r"would hold a value and have others below it"):
                store.write([Put("z", 1), *ops])
        assert store.children("") == ["a", "d"]
        assert store.get("a") == 1
        store.write([Put("a", 2)])

    @pytest.mark.parametrize("path", ["", "/a", "a/", "a//b", "..", "a/../b", "a b", "ä", "a\n", "a\0", "x" * 129])
    def test_a_path_that_cannot_name_a_znode_is_refused(self, backend: Backend, path: str) -> None:
        with pytest.raises(InvalidPath, match=r"expected 1 to 128 characters out of A-Z a-z 0-9"):
            backend.open().write([Put(path, 1)])

    @pytest.mark.parametrize("topology_id", ["", "a/b", "..", "a b"])
    def test_a_topology_id_that_cannot_name_a_znode_is_refused(self, backend: Backend, topology_id: str) -> None:
        with pytest.raises(InvalidPath, match=r"topology id .* expected 1 to 128 characters"):
            backend.open(topology_id)

    def test_a_value_that_is_too_large_is_not_sent(self, backend: Backend) -> None:
        store = backend.open()
        with pytest.raises(StateTooLarge, match=r"value for .*/big has 1,000,015 bytes, at most 1,000,000 fit"):
            store.write([Put("a", 1), Put("big", b"x" * 1_000_000)])
        store.write([Put("big", b"x" * 999_000)])
        assert store.children("") == ["big"]

    def test_a_write_that_is_too_large_is_not_sent(self, backend: Backend) -> None:
        store = backend.open()
        ops = [Put(f"n/{n}", b"x" * (10_000 + n)) for n in range(100)]
        with pytest.raises(StateTooLarge, match=r"101 values has 1,0\d\d,\d\d\d bytes.*largest .*/n/99 with 10,1"):
            store.write(ops)
        store.write(ops[:90])
        assert len(store.children("n")) == 90

    def test_a_write_of_hundreds_of_values_is_applied(self, backend: Backend) -> None:
        store = backend.open()
        store.write([Put(f"n/{n:03}", n) for n in range(500)])
        store.write([Delete(f"n/{n:03}") for n in range(499)])
        assert store.children("n") == ["499"]

    def test_after_the_last_version_that_can_be_counted_all_goes_on(
        self, backend: Backend, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(state_tree, "VERSION_MAX", 3)
        for epoch in range(1, 4):
            store = backend.open()
            for n in range(11):
                store.write([Put("n/a", n), Put("b", -n)])
                store.write([Put("n/a", n + 1), Put(f"n/{epoch}", n)])
            assert store.children("n") == [*map(str, range(1, epoch + 1)), "a"]
            store.write([Delete("b")])
            backend.make_zombie("topo")
            owner = backend.open()
            assert (owner.get("n/a"), owner.get(f"n/{epoch}"), owner.children("")) == (11, 10, ["n"])
            with pytest.raises(Fenced):
                store.write([Put("n/a", 0)])
            owner.close()
            monkeypatch.setattr(state_tree, "VERSION_MAX", 3 + epoch)

    def test_a_second_live_owner_is_refused(self, backend: Backend) -> None:
        store = backend.open()
        with pytest.raises(AlreadyRunning, match=r"topology 'topo' is run already by process \d+ on .*, since 20"):
            backend.open()
        store.write([Put("a", 1)])
        store.close()
        assert backend.open().epoch == 2

    def test_a_closed_store_writes_no_more(self, backend: Backend) -> None:
        lost: list[StormlineError] = []
        store = backend.open(on_lost=lost.append)
        assert store.connected()
        store.close()
        store.close()
        assert not store.connected()
        with pytest.raises(SessionLost, match=r"topo.* is closed"):
            store.write([])
        assert lost == []

    def test_the_write_of_a_zombie_is_rejected_after_a_take_over(self, backend: Backend) -> None:
        lost: list[StormlineError] = []
        zombie = backend.open(on_lost=lost.append)
        zombie.write([Put("a", 1)])
        backend.make_zombie("topo")
        owner = backend.open()
        assert owner.epoch == 2
        owner.write([Put("a", 2)])
        for _ in range(2):
            with pytest.raises(Fenced, match=r"topo.*epoch 1.*epoch 2 owns.*must stop"):
                zombie.write([Put("a", 3)])
        assert not zombie.connected()
        assert [type(error) for error in lost] == [Fenced]
        owner.close()
        assert backend.open().get("a") == 2

    def test_a_write_without_ops_checks_the_ownership(self, backend: Backend) -> None:
        zombie = backend.open()
        zombie.write([])
        backend.make_zombie("topo")
        backend.open()
        with pytest.raises(Fenced, match=r"epoch 2 owns"):
            zombie.write([])

    def test_a_lost_session_is_told_once_and_ends_all_writing(self, backend: Backend) -> None:
        lost: list[StormlineError] = []
        store = backend.open(on_lost=lost.append)
        store.write([Put("a", 1)])
        backend.expire("topo")
        eventually(lambda: lost)
        assert not store.connected()
        with pytest.raises(SessionLost, match=r"session of .*topo.* has (ended|expired).*submit again"):
            store.write([Put("a", 2)])
        assert len(lost) == 1
        assert backend.open().get("a") == 1

    def test_a_topology_that_changed_is_refused_before_anything_is_written(self, backend: Backend) -> None:
        backend.open(description=DESCRIPTION).close()
        backend.open(description=DESCRIPTION).close()
        changed = {"bolts": {"count": {"parallelism": 3}, "x": {"parallelism": 1}}}
        with pytest.raises(TopologyChanged, match=r"bolt 'count': parallelism 2 → 3; bolt 'x' added. .* --allow-c"):
            backend.open(description=changed)
        store = backend.open(description=DESCRIPTION)
        assert store.epoch == 3
        store.close()

    def test_a_topology_that_changed_may_be_allowed(self, backend: Backend) -> None:
        backend.open().close()
        backend.open(description=DESCRIPTION).close()
        backend.open(description={"bolts": {}}, allow_changed=True).close()
        with pytest.raises(TopologyChanged, match=r"bolt 'count' added"):
            backend.open(description=DESCRIPTION)
        assert backend.open(description=None).epoch == 4

    @pytest.mark.parametrize(("before", "now"), OTHER_KINDS)
    @pytest.mark.parametrize("committed", [0, 1, 2])
    def test_another_kind_of_spout_goes_on_only_from_committed_batches_and_where_both_have_partitions(
        self, backend: Backend, before: str, now: str, committed: int
    ) -> None:
        store = backend.open(description=spout(before))
        Batches(store).begin({1: 4, 2: 4}, 0)
        for txid in range(1, committed + 1):
            store.write([record_of(TransactionAttempt(txid, 1))])
        store.close()
        if TRANSACTIONAL in (before, now):
            why = r"which finds no place to go on from after transaction 2 and would begin its source anew\."
        elif committed < 2:
            why = rf"which cannot give the .* not committed \({committed + 1} to 2\)\..* let it commit all"
        else:
            assert backend.open(description=spout(now), allow_changed=True).epoch == 2
            return
        message = rf"^the spout of topology 'topo' .* was a {before} and is now a {now}, {why}.* another topology id"
        with pytest.raises(TopologyChanged, match=message):
            backend.open(description=spout(now), allow_changed=True)
        assert backend.open(description=spout(before)).epoch == 2

    def test_another_kind_of_spout_may_be_allowed_where_nothing_has_begun(self, backend: Backend) -> None:
        backend.open(description=spout(TRANSACTIONAL)).close()
        with pytest.raises(TopologyChanged, match=rf"'kind' '{TRANSACTIONAL}' → '{OPAQUE}'"):
            backend.open(description=spout(OPAQUE))
        backend.open(description=spout(OPAQUE), allow_changed=True).close()

    def test_what_cannot_be_read_is_no_state_for_another_kind_of_spout(self, backend: Backend) -> None:
        store = backend.open(description=spout(PARTITIONED))
        store.write([Put("committed", "yes")])
        store.close()
        with pytest.raises(StateCorrupt, match=r"committed transaction is stored as 'yes'"):
            backend.open(description=spout(OPAQUE), allow_changed=True)
        assert backend.open(description=spout(PARTITIONED)).epoch == 2


def spout(kind: str) -> Any:
    return {"spout 's'": {"kind": kind}, "bolt 'b'": {"kind": "basic bolt"}}


class RotatingStateContract:
    def put(self, store: StateStore, values: dict[int, Any]) -> RotatingState:
        state = RotatingState(store, "batches")
        store.write(state.put_ops(values))
        return state

    def test_txids_come_one_after_another(self, backend: Backend) -> None:
        state = self.put(backend.open(), {2: "b", 1: "a"})
        with pytest.raises(
            NotNext, match=r"transaction 5 has no value in batches and is not the next one, 4; it holds 1 to 3"
        ):
            state.put_ops({2: "B", 3: "c", 5: "e"})
        assert [state[txid] for txid in state.txids()] == ["a", "b"]

    def test_the_first_txid_is_1(self, backend: Backend) -> None:
        with pytest.raises(NotNext, match=r"transaction 2 .* is not the next one, 1; it holds none"):
            RotatingState(backend.open(), "batches").put_ops({2: 10})

    def test_the_next_owner_goes_on(self, backend: Backend) -> None:
        store = backend.open()
        state = self.put(store, {txid: txid * 10 for txid in range(1, 13)})
        store.write(state.cleanup_ops(9))
        store.close()
        state = self.put(backend.open(), {13: 130, 12: 12})
        assert state.txids() == [9, 10, 11, 12, 13]
        assert (state[12], state[13], state.cleanup_ops(9)) == (12, 130, [])

    def test_clean_up_and_a_put_can_be_one_write(self, backend: Backend) -> None:
        store = backend.open()
        state = self.put(store, {1: "a", 2: "b", 3: "c"})
        store.write([Put("committed", 3), *state.put_ops({4: "d"}), *state.cleanup_ops(3)])
        assert state.txids() == [3, 4]

    def test_a_foreign_name_halts(self, backend: Backend) -> None:
        store = backend.open()
        store.write([Put("batches/notes", 1)])
        with pytest.raises(StateCorrupt, match=r"batches/notes is not named after a transaction"):
            RotatingState(store, "batches").txids()

    @pytest.mark.parametrize("txid", [0, -1, 10**12])
    def test_a_txid_out_of_range_is_refused(self, backend: Backend, txid: int) -> None:
        with pytest.raises(InvalidPath, match=rf"txid {txid}: expected a whole number from 1 to 999999999999"):
            RotatingState(backend.open(), "batches")[txid]
