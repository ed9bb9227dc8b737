"""State of user code in a real ZooKeeper: lost answers, take-overs, what others have written there, access control."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kazoo.security import OPEN_ACL_UNSAFE, make_digest_acl

from stormline import Config, RotatingTransactionalState, TopologyHandle, TransactionalState
from stormline.runtime.cluster.in_process_engine import InProcessEngine
from stormline.runtime.cluster.submission import start_topology
from stormline.runtime.errors import Fenced, InsecureState, StateCorrupt
from stormline.runtime.state.stored_value import seal
from stormline.runtime.zookeeper.security import ZooKeeperSecurity
from stormline.topology.compiler import compile_topology
from stormline.topology.errors import StormlineError
from stormline.topology.serialization import PLAIN
from tests.contracts.transactional_state import user_state
from tests.kits.components import EVENTS, eventually
from tests.kits.user_state import Notes, PositionsOfStorm, topology
from tests.services.zookeeper_backend import ZooKeeperBackend
from tests.services.zookeeper_proxy import ZooKeeperProxy
from tests.services.zookeeper_server import ZooKeeperServer


@pytest.fixture
def proxy(zookeeper: ZooKeeperServer) -> Iterator[ZooKeeperProxy]:
    with ZooKeeperProxy(zookeeper.port) as proxy:
        yield proxy


def znode(backend: ZooKeeperBackend, path: str) -> str:
    return f"{backend.node}/state/user/{path}"


@pytest.mark.parametrize("lost", ["reply", "request"])
def test_a_write_whose_answer_was_lost_is_done_once(
    backend: ZooKeeperBackend, proxy: ZooKeeperProxy, lost: str
) -> None:
    state = user_state(backend.open(hosts=proxy.hosts))
    state.set_data("a", 1)
    rotating = RotatingTransactionalState(state, "r")
    before = proxy.multis
    proxy.lose(lost)
    state.set_data("a", 2)
    assert (proxy.multis, backend.client.get(znode(backend, "a"))[1].version) == (before + 1, 1)
    proxy.lose(lost)
    assert rotating.get_state(1, lambda txid, last: "one") == "one"
    proxy.lose(lost)
    rotating.cleanup_before(2)
    assert proxy.multis == before + 3
    assert backend.client.get_children(znode(backend, "r")) == ["__dir__"]


def test_a_write_taken_over_while_its_answer_was_lost_is_refused(
    backend: ZooKeeperBackend, proxy: ZooKeeperProxy
) -> None:
    store = backend.open(hosts=proxy.hosts, session_timeout_ms=20_000)
    state = user_state(store)
    state.set_data("a", "before")
    proxy.lose("request")
    proxy.refuse = True
    errors: list[BaseException] = []

    def write() -> None:
        try:
            state.set_data("a", "zombie")
        except StormlineError as error:
            errors.append(error)

    thread = threading.Thread(target=write)
    thread.start()
    eventually(lambda: not store.connected())
    backend.client.delete(f"{backend.node}/live")
    owner = user_state(backend.open())
    proxy.refuse = False
    thread.join()
    assert [type(error) for error in errors] == [Fenced]
    assert owner.get_data("a") == "before"
    owner.set_data("a", "after")


@pytest.mark.parametrize("data", [b"", b"7", b"\x80\x04K\x07.", b"STLN" + b"\0" * 10])
def test_what_others_have_written_there_halts_the_next_start_with_its_path(
    backend: ZooKeeperBackend, data: bytes
) -> None:
    store = backend.open()
    user_state(store).set_data("a/b", [1, 2])
    store.close()
    kept = backend.client.get(znode(backend, "a/b"))[0]
    backend.client.set(znode(backend, "a/b"), data)
    with pytest.raises(StateCorrupt, match=rf"^{znode(backend, 'a/b')} holds .*; nothing was changed\."):
        backend.open()
    assert backend.client.get(znode(backend, "a/b"))[0] == data
    backend.client.set(znode(backend, "a/b"), kept[:-1] + b"\7")
    with pytest.raises(StateCorrupt, match=rf"^{znode(backend, 'a/b')} holds .* wrong checksum"):
        backend.open()
    backend.client.set(znode(backend, "a/b"), kept)
    assert user_state(backend.open()).get_data("a/b") == [1, 2]


def test_what_others_write_there_while_the_topology_runs_is_not_written_over(backend: ZooKeeperBackend) -> None:
    state = user_state(backend.open())
    state.set_data("a", 1)
    backend.client.set(znode(backend, "a"), seal(5, PLAIN))
    backend.client.create(znode(backend, "b"), b"theirs")
    for path in ("a", "b"):
        with pytest.raises(
            StateCorrupt, match=rf"{znode(backend, path)} was changed by somebody else .*nothing was wr"
        ):
            state.set_data(path, 2)
    assert [backend.client.get(znode(backend, path))[0] for path in ("a", "b")] == [seal(5, PLAIN), b"theirs"]


def test_no_empty_directory_is_left_behind(backend: ZooKeeperBackend) -> None:
    state = user_state(backend.open())
    for txid in range(3):
        state.set_data(f"work/{txid}/rows", [1])
        state.delete(f"work/{txid}/rows")
    assert backend.client.get_children(f"{backend.node}/state") == []
    state.mkdir("work")
    state.set_data("work/3/rows", [1])
    state.delete("work/3/rows")
    assert backend.client.get_children(znode(backend, "work")) == ["__dir__"]


def test_with_access_control_it_is_the_drivers_alone_and_each_start_checks_that(
    backend: ZooKeeperBackend, tmp_path: Path
) -> None:
    (tmp_path / "payload").write_text("storm:secret")
    payload = f"file:{tmp_path / 'payload'}"
    config = {"storm.zookeeper.auth.scheme": "digest", "storm.zookeeper.auth.payload": payload}
    security = ZooKeeperSecurity.of(config)
    store = backend.open(security=security)
    user_state(store).set_data("a/b", 1)
    store.close()
    backend.client.add_auth("digest", "storm:secret")
    for path in ("a", "a/b"):
        assert backend.client.get_acls(znode(backend, path))[0] == [make_digest_acl("storm", "secret", all=True)]
    backend.client.set_acls(znode(backend, "a/b"), OPEN_ACL_UNSAFE)
    with pytest.raises(InsecureState, match=rf"znode {znode(backend, 'a/b')} can be changed by others"):
        backend.open(security=security)


def start(
    backend: ZooKeeperBackend, zookeeper: ZooKeeperServer, spout: PositionsOfStorm, notes: Notes
) -> TopologyHandle:
    plan = compile_topology(topology(spout, ("notes", notes)))

    def open_store(on_lost: Any) -> Any:
        return backend.open(on_lost=on_lost)

    return start_topology("name", plan, open_store, InProcessEngine, zookeeper_hosts=zookeeper.hosts)


def test_a_topology_goes_on_with_it_and_its_conf_leads_to_the_zookeeper(
    backend: ZooKeeperBackend, zookeeper: ZooKeeperServer
) -> None:
    spout = PositionsOfStorm(batches=3)
    for batches in (3, 5):
        spout.batches = batches
        with start(backend, zookeeper, spout, Notes()) as handle:
            handle.await_drained(60)
    state = user_state(backend.open())
    assert state.get_data("notes/count") == (5 * 6, 5)
    for conf in spout.confs:
        assert conf[Config.TRANSACTIONAL_ZOOKEEPER_SERVERS] == conf["storm.zookeeper.servers"] == ["127.0.0.1"]
        assert conf[Config.TRANSACTIONAL_ZOOKEEPER_PORT] == conf["storm.zookeeper.port"] == zookeeper.port
        assert conf[Config.TOPOLOGY_NAME] == "name"


def test_a_commit_of_a_driver_that_was_taken_over_cannot_write_it(
    backend: ZooKeeperBackend, zookeeper: ZooKeeperServer
) -> None:
    EVENTS.clear()
    spout = PositionsOfStorm(batches=3)
    with start(backend, zookeeper, spout, Notes(waits=True)) as handle:
        assert EVENTS["begun"].wait(60)
        backend.make_zombie("topo")
        owner = backend.open()
        user_state(owner).set_data("notes/count", ("the owner's", 7))
        EVENTS["go on"].set()
        with pytest.raises(Fenced, match=r"/topo is no longer owned by this driver \(epoch 1\)"):
            handle.join(60)
        with pytest.raises(Fenced):  # whoever still holds it
            TransactionalState.new_user_state(spout.confs[0], "topo").set_data("notes/count", 0)
    assert owner.connected()
    assert user_state(owner).get_data("notes/count") == ("the owner's", 7)


@pytest.mark.parametrize("path", ["current/txid", "0/3", "notes/count"])
def test_a_driver_killed_right_after_a_write_of_it_counts_everything_once(
    backend: ZooKeeperBackend, tmp_path: Path, path: str
) -> None:
    driver = [sys.executable, "-m", "tests.cluster.user_state_driver", backend.hosts, backend.root, path, "3"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(entry or os.getcwd() for entry in sys.path)}
    for exit_code in (-signal.SIGKILL, 0):
        done = subprocess.run(
            [*driver, str(tmp_path / "died")], env=environment, capture_output=True, text=True, timeout=120
        )
        assert done.returncode == exit_code, done.stderr
    assert user_state(backend.open()).get_data("notes/count") == (5 * 6, 5)
