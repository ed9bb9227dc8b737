"""The simulated ZooKeeper and kazoo are as the real ones, as far as the state store can tell: it keeps its contract."""

from __future__ import annotations

import copy
import struct
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from kazoo.exceptions import BadVersionError, ConnectionLoss, NoNodeError, RolledBackError, RuntimeInconsistency

from stormline.runtime.coordination.compatibility import check_spout_kind
from stormline.runtime.errors import Fenced, InvalidPath, StateCorrupt
from stormline.runtime.state.state_store import Put
from stormline.runtime.zookeeper.session import MakeClient
from stormline.runtime.zookeeper.store import ZooKeeperStateStore
from tests.contracts.state_store import RotatingStateContract, StateStoreContract
from tests.contracts.transactional_state import RotatingTransactionalStateContract, TransactionalStateContract
from tests.simulation.kazoo_client import SimKazooClient
from tests.simulation.scheduler import Process
from tests.simulation.stand_ins import handed_in, sealed_off
from tests.simulation.world import World
from tests.simulation.zookeeper import Op, ZooKeeper


def call(process: Process, function: Callable[[], Any]) -> Any:
    """Call something in a thread of a simulated process, and let the world go on until it has returned."""
    answers: list[Any] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            answers.append(function())
        except BaseException as error:
            errors.append(error)

    world = process.world
    world.spawn(process, run, "test")
    assert world.run(lambda: bool(answers or errors), world.now + 60), "it does not return"
    if errors:
        raise errors[0]
    return answers[0]


class StoreInProcess:
    """A store of a simulated driver, used from outside."""

    def __init__(self, process: Process, store: ZooKeeperStateStore) -> None:
        self.process = process
        self.store = store
        self.epoch = store.epoch

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.store, name)
        return lambda *args: call(self.process, partial(method, *args))


class SimulatedBackend:
    def __init__(self, world: World, make_client: MakeClient) -> None:
        self.world = world
        self.handed_in = handed_in(world)
        self.make_client = make_client
        self.stores: list[StoreInProcess] = []

    def open(self, topology_id: str = "topo", root: str = "/storm", **options: Any) -> Any:
        process = Process(self.world, f"driver {len(self.world.processes)}")
        self.world.processes.append(process)
        arguments = {
            "session_timeout_ms": 5000,
            "connection_timeout_ms": 5000,
            "check_state": check_spout_kind,
            "world": self.handed_in,
            "make_client": self.make_client,
            **options,
        }
        open_it = partial(ZooKeeperStateStore.open, "zookeeper", root, topology_id, **arguments)
        self.stores.append(StoreInProcess(process, call(process, open_it)))
        return self.stores[-1]

    def make_zombie(self, topology_id: str) -> None:
        self.world.zookeeper._restore(f"/storm/{topology_id}/live", None)

    def expire(self, topology_id: str) -> None:
        number = self.world.clients[self.stores[-1].process]._session
        assert number is not None
        self.world.zookeeper.expire(number)
        self.world.run(lambda: False, self.world.now + 1)


@pytest.fixture
def backend() -> Iterator[SimulatedBackend]:
    with World(1, faults_on=False) as world:
        world.machine = "one machine"
        world.zookeeper = ZooKeeper(world, lambda session, changes: None)

        def client(hosts: str, timeout: float, **options: Any) -> SimKazooClient:
            process = world.task.process
            world.clients[process] = SimKazooClient(process, world.zookeeper, world.faults, timeout)
            return world.clients[process]

        with sealed_off(world):
            yield SimulatedBackend(world, client)


class TestZooKeeperStateStore(StateStoreContract):
    pass


class TestRotatingState(RotatingStateContract):
    pass


class TestTransactionalState(TransactionalStateContract):
    pass


class TestRotatingTransactionalState(RotatingTransactionalStateContract):
    pass


def test_a_killed_driver_of_the_same_machine_is_replaced_at_once(backend: SimulatedBackend) -> None:
    backend.open().process.kill()
    begun = backend.world.now
    assert backend.open().epoch == 2
    assert backend.world.now - begun < 1


def test_a_topology_within_another_is_refused_and_the_other_goes_on(backend: SimulatedBackend) -> None:
    backend.open("orders").close()
    for root in ("/storm/orders", "/storm/orders/state", "/storm/orders/deeper"):
        with pytest.raises(
            InvalidPath,
            match=rf"^root '{root}' lies within topology 'orders' \(/storm/orders\).*start again beside 'x'",
        ):
            backend.open("x", root=root)
    assert backend.open("orders").epoch == 2


def test_a_topology_around_another_is_refused_and_the_other_goes_on(backend: SimulatedBackend) -> None:
    backend.open("x", root="/storm/orders").close()
    with pytest.raises(
        InvalidPath, match=r"^/storm/orders is the root of topology 'x', so it cannot be the place of topology 'orders'"
    ):
        backend.open("orders")
    assert backend.open("x", root="/storm/orders").epoch == 2


def test_of_a_driver_and_its_clone_the_first_to_write_goes_on_and_the_other_is_fenced(
    backend: SimulatedBackend,
) -> None:
    """As a machine's clone resumes it: with the same session, epoch, token and number of writes."""
    driver = backend.open()
    driver.write([Put("a", 1)])
    clone = copy.copy(driver.store)
    clone._tree = copy.deepcopy(driver.store._tree)
    call(driver.process, partial(clone.write, [Put("a", 2)]))
    with pytest.raises(Fenced, match="epoch 1 owns it"):
        driver.write([Put("a", 3)])


def test_a_topology_may_be_called_owner(backend: SimulatedBackend) -> None:
    backend.open("owner").close()
    assert backend.open("topo").epoch == 1
    assert backend.open("owner").epoch == 2


def test_a_killed_driver_elsewhere_is_replaced_when_its_session_has_ended(backend: SimulatedBackend) -> None:
    backend.world.machine = ""
    backend.open().process.kill()
    begun = backend.world.now
    assert backend.open().epoch == 2
    assert 4 < backend.world.now - begun < 9


def test_a_driver_that_was_paused_past_its_session_hears_that_it_is_lost(backend: SimulatedBackend) -> None:
    lost: list[Exception] = []
    backend.world.machine = ""
    paused = backend.open(on_lost=lost.append)
    paused.process.pause()
    assert backend.open().epoch == 2
    assert lost == []
    paused.process.resume()
    backend.world.run(lambda: bool(lost), backend.world.now + 5)
    assert len(lost) == 1


NEAR_THE_END = [2**31 - 3, -(2**31), -3, -2]
"""Versions of which some writes later nothing is known, or nothing compared."""


@pytest.mark.parametrize("version", NEAR_THE_END)
def test_a_driver_and_the_next_one_go_on_past_the_last_version(backend: SimulatedBackend, version: int) -> None:
    nodes = backend.world.zookeeper.nodes
    store = backend.open()
    store.write([Put("a", 0), Put("n/b", 0)])
    store.close()
    for node in ("owner", "state/a", "state/n/b", "topology"):
        if f"/storm/topo/{node}" in nodes:
            nodes[f"/storm/topo/{node}"].version = version
    for epoch in (2, 3):
        store = backend.open()
        for n in range(4):
            store.write([Put("a", n), Put("n/b", epoch)])
            store.write([])
        assert (store.epoch, store.get("a"), store.get("n/b")) == (epoch, 3, epoch)
        assert nodes["/storm/topo/owner"].version >= 0
        store.close()


@pytest.mark.parametrize("version", NEAR_THE_END)
def test_a_driver_that_was_taken_over_past_the_last_version_is_fenced(backend: SimulatedBackend, version: int) -> None:
    backend.open().close()
    backend.world.zookeeper.nodes["/storm/topo/owner"].version = version
    zombie = backend.open()
    backend.make_zombie("topo")
    owner = backend.open()
    owner.write([Put("a", 1)])
    with pytest.raises(Fenced, match="epoch 3 owns"):
        zombie.write([Put("a", 2)])
    assert owner.get("a") == 1


@pytest.mark.parametrize("version", [*NEAR_THE_END, 2**31 - 2, 2**31 - 1])
@pytest.mark.parametrize("applied", [True, False])
def test_past_the_last_version_a_write_without_an_answer_is_done_once(
    backend: SimulatedBackend, version: int, applied: bool
) -> None:
    store = backend.open()
    store.write([Put("a", 0)])
    for node in ("owner", "state/a"):
        backend.world.zookeeper.nodes[f"/storm/topo/{node}"].version = version
    store.store._owner_version = version
    store.store._tree._values["a"] = (store.store._tree._values["a"][0], version)
    multi = store.store._session.multi
    sent = []

    def without_an_answer(*args: Any) -> Any:
        sent.append(args)
        if len(sent) > 1:
            return multi(*args)
        if applied:
            multi(*args)
        raise ConnectionLoss

    store.store._session.multi = without_an_answer
    for n in (1, 2, 3, 4):
        store.write([Put("a", n)])
    assert len(sent) == (4 if applied else 5)
    store.close()
    assert backend.open().get("a") == 4


def test_a_value_edited_behind_a_drivers_back_at_its_last_version_halts(backend: SimulatedBackend) -> None:
    store = backend.open()
    store.write([Put("z", 0), Put("a", 0)])
    nodes = backend.world.zookeeper.nodes
    nodes["/storm/topo/owner"].version = store.store._owner_version = 2**31 - 1
    nodes["/storm/topo/state/a"].version = 7
    with pytest.raises(StateCorrupt, match=r"/storm/topo/state/a was changed by somebody else .*\(BadVersionError\)"):
        store.write([Put("z", 1), Put("a", 1)])
    del nodes["/storm/topo/live"]
    with pytest.raises(Fenced, match="'live' has vanished"):
        store.write([Put("z", 1)])


def test_an_owner_at_the_version_that_is_compared_with_nothing_is_refused(backend: SimulatedBackend) -> None:
    backend.open().close()
    owner = backend.world.zookeeper.nodes["/storm/topo/owner"]
    owner.version = -1
    with pytest.raises(StateCorrupt, match=r"/storm/topo/owner has version -1, .* write its bytes to it once more"):
        backend.open()
    owner.version = 0
    assert backend.open().epoch == 2


def test_versions_are_32_bits_wide_as_the_servers_and_kazoos(backend: SimulatedBackend) -> None:
    store = backend.open()
    zookeeper = backend.world.zookeeper
    zookeeper.create(1, "/a", b"")
    for version, after in ((2**31 - 1, -(2**31)), (-2, -1), (-1, 0)):
        zookeeper.nodes["/a"].version = version
        (stat,) = zookeeper.multi(1, [Op("set", "/a", b"", version)])
        assert stat.version == after
    transaction = store.store._session._client.transaction()
    with pytest.raises(struct.error):
        transaction.set_data("/a", b"", version=2**31)


def test_a_transaction_that_is_refused_changes_nothing_and_names_the_op(backend: SimulatedBackend) -> None:
    zookeeper = backend.world.zookeeper
    zookeeper.create(1, "/a", b"1")
    results = zookeeper.multi(
        1, [Op("create", "/a/b", b""), Op("set", "/a", b"2", 0), Op("set", "/a", b"3", 0), Op("delete", "/a/b")]
    )
    assert [type(result) for result in results] == [
        RolledBackError,
        RolledBackError,
        BadVersionError,
        RuntimeInconsistency,
    ]
    assert (zookeeper.get(1, "/a", False)[0], zookeeper.get(1, "/a", False)[1].version) == (b"1", 0)
    with pytest.raises(NoNodeError):
        zookeeper.children(1, "/a/b")
