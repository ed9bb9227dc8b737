from __future__ import annotations

import dataclasses
import os
import pickle
import signal
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kazoo.security import make_digest_acl

from stormline.runtime import holder as holder_module
from stormline.runtime import zookeeper_claim
from stormline.runtime.envelope import seal
from stormline.runtime.errors import (
    AlreadyRunning,
    Fenced,
    InvalidPath,
    NewerState,
    SessionLost,
    StateCorrupt,
    StateTooLarge,
    ZooKeeperDenied,
    ZooKeeperUnreachable,
)
from stormline.runtime.holder import Holder
from stormline.runtime.state_store import Put
from stormline.runtime.zookeeper_state_store import ZooKeeperStateStore
from stormline.topology.errors import StormlineError
from stormline.topology.serialization import PLAIN
from tests.cluster.zookeeper_backend import ZooKeeperBackend, hear, tell
from tests.state_store_contract import RotatingStateContract, StateStoreContract, eventually
from tests.zookeeper_proxy import ZooKeeperProxy
from tests.zookeeper_server import ZooKeeperServer


@pytest.fixture
def backend(zookeeper: ZooKeeperServer) -> Iterator[ZooKeeperBackend]:
    backend = ZooKeeperBackend(zookeeper.hosts)
    yield backend
    backend.stop()


@pytest.fixture
def proxy(zookeeper: ZooKeeperServer) -> Iterator[ZooKeeperProxy]:
    with ZooKeeperProxy(zookeeper.port) as proxy:
        yield proxy


class TestZooKeeperStateStore(StateStoreContract):
    pass


class TestRotatingState(RotatingStateContract):
    pass


class TestTakeOver:
    def test_a_second_driver_in_another_process_is_refused_at_once(self, backend: ZooKeeperBackend) -> None:
        backend.open(session_timeout_ms=30_000)
        begun = time.monotonic()
        said = hear(backend.start_driver(30_000))
        assert said.startswith(f"AlreadyRunning: topology 'topo' is run already by process {os.getpid()} on ")
        assert time.monotonic() - begun < 10

    def test_a_driver_killed_on_this_host_is_replaced_at_once(self, backend: ZooKeeperBackend) -> None:
        driver = backend.start_driver(30_000)
        assert hear(driver) == "epoch 1"
        assert tell(driver, "1") == "written"
        driver.kill()
        begun = time.monotonic()
        store = backend.open()
        assert (store.epoch, store.get("a")) == (2, "1")
        assert time.monotonic() - begun < 10

    def test_a_driver_of_another_host_is_given_time_to_vanish(
        self, backend: ZooKeeperBackend, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        driver = backend.start_driver(1000)
        assert hear(driver) == "epoch 1"
        driver.kill()
        monkeypatch.setattr(holder_module, "_machine", lambda: "another")
        assert backend.open().epoch == 2

    def test_a_live_driver_of_another_host_is_refused_in_the_end(
        self, backend: ZooKeeperBackend, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        store = backend.open(session_timeout_ms=1000)
        monkeypatch.setattr(holder_module, "_machine", lambda: "another")
        monkeypatch.setattr(zookeeper_claim, "VANISH_MARGIN_MS", 500)
        with pytest.raises(AlreadyRunning, match=r"is run already by .*its session did not end in 1500 ms; stop"):
            backend.open()
        store.write([])

    def test_a_driver_that_slept_past_its_session_writes_nothing(self, backend: ZooKeeperBackend) -> None:
        driver = backend.start_driver(1000)
        assert hear(driver) == "epoch 1"
        assert tell(driver, "1") == "written"
        driver.send_signal(signal.SIGSTOP)
        with pytest.raises(AlreadyRunning):
            backend.open()
        eventually(lambda: backend.client.exists(f"{backend.node}/live") is None)
        store = backend.open()
        store.write([Put("a", "2")])
        driver.send_signal(signal.SIGCONT)
        begun = time.monotonic()
        for _ in range(2):
            assert tell(driver, "3").startswith(("SessionLost: ", "Fenced: "))
        assert time.monotonic() - begun < 10  # the zombie does not wait for answers that cannot come
        assert store.connected()
        store.close()
        assert (backend.open().get("a"), backend.client.get(f"{backend.node}/state/a")[1].version) == ("2", 1)

    def test_of_two_that_open_at_once_one_is_refused(self, backend: ZooKeeperBackend) -> None:
        backend.open().close()
        results: list[Any] = []

        def open_one() -> None:
            try:
                results.append(backend.open())
            except AlreadyRunning as error:
                results.append(error)

        threads = [threading.Thread(target=open_one) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(type(result).__name__ for result in results) == ["AlreadyRunning"] * 5 + ["ZooKeeperStateStore"]

    def test_what_another_driver_writes_between_reading_and_claiming_is_read_too(
        self, backend: ZooKeeperBackend, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        backend.open().close()
        send = zookeeper_claim._send

        def send_late(*args: Any) -> None:
            monkeypatch.setattr(zookeeper_claim, "_send", send)
            other = backend.open()
            other.write([Put("a", 1)])
            other.close()
            send(*args)

        monkeypatch.setattr(zookeeper_claim, "_send", send_late)
        store = backend.open()
        assert (store.epoch, store.get("a")) == (3, 1)

    def test_a_claim_that_vanishes_is_noticed_without_a_write(self, backend: ZooKeeperBackend) -> None:
        lost: list[StormlineError] = []
        store = backend.open(on_lost=lost.append)
        backend.client.delete(f"{backend.node}/live")
        eventually(lambda: lost)
        assert not store.connected()
        with pytest.raises(Fenced, match=r"topo is no longer owned by this driver \(epoch 1\): its node 'live' has"):
            store.write([Put("a", 1)])

    def test_a_claim_that_vanishes_is_noticed_by_a_write_before_any_take_over(self, backend: ZooKeeperBackend) -> None:
        store = backend.open()
        backend.make_zombie("topo")
        with pytest.raises(Fenced, match="its node 'live' has vanished"):
            store.write([Put("a", 1)])
        assert backend.open().children("") == []

    def test_a_claim_is_checked_again_after_an_interruption(
        self, backend: ZooKeeperBackend, proxy: ZooKeeperProxy
    ) -> None:
        lost: list[StormlineError] = []
        store = backend.open(hosts=proxy.hosts, on_lost=lost.append, session_timeout_ms=20_000)
        proxy.refuse = True
        proxy.cut()
        eventually(lambda: not store.connected())
        backend.client.delete(f"{backend.node}/live")
        backend.open()
        proxy.refuse = False
        eventually(lambda: lost)
        with pytest.raises(Fenced, match="epoch 2 owns it"):
            store.write([])

    def test_a_claim_that_was_deleted_and_copied_is_another_ones(
        self, backend: ZooKeeperBackend, proxy: ZooKeeperProxy
    ) -> None:
        lost: list[StormlineError] = []
        store = backend.open(hosts=proxy.hosts, on_lost=lost.append, session_timeout_ms=20_000)
        proxy.refuse = True
        proxy.cut()
        eventually(lambda: not store.connected())
        backend.client.delete(f"{backend.node}/live")
        backend.client.create(f"{backend.node}/live", b"somebody")
        proxy.refuse = False
        eventually(lambda: lost)
        with pytest.raises(Fenced, match="its node 'live' is another driver's"):
            store.write([])

    def test_a_deleted_topology_is_nobodys(self, backend: ZooKeeperBackend) -> None:
        store = backend.open()
        backend.make_zombie("topo")
        backend.client.delete(f"{backend.node}/owner")
        with pytest.raises(Fenced, match=r"topo is no longer owned .*: it was deleted"):
            store.write([Put("a", 1)])


class TestLostAnswers:
    def test_a_write_whose_answer_was_lost_is_done_once(self, backend: ZooKeeperBackend, proxy: ZooKeeperProxy) -> None:
        store = backend.open(hosts=proxy.hosts)
        store.write([Put("a", 1)])
        before = proxy.multis
        proxy.lose("reply")
        store.write([Put("a", 2), Put("b", 1)])
        assert proxy.multis == before + 1
        assert backend.client.get(f"{backend.node}/state/a")[1].version == 1
        eventually(store.connected)
        store.write([Put("a", 3)])
        assert backend.client.get(f"{backend.node}/state/a")[1].version == 2

    def test_a_write_that_never_arrived_is_sent_again(self, backend: ZooKeeperBackend, proxy: ZooKeeperProxy) -> None:
        store = backend.open(hosts=proxy.hosts)
        store.write([Put("a", 1)])
        before = proxy.multis
        proxy.lose("request")
        store.write([Put("a", 2)])
        assert proxy.multis == before + 1
        assert backend.client.get(f"{backend.node}/state/a")[1].version == 1

    @pytest.mark.parametrize("lost", ["reply", "request"])
    def test_a_claim_is_made_once(self, backend: ZooKeeperBackend, proxy: ZooKeeperProxy, lost: str) -> None:
        proxy.lose(lost)
        store = backend.open(hosts=proxy.hosts, description={"a": 1})
        assert store.epoch == 1
        assert proxy.multis == 1
        store.write([Put("a", 1)])

    def test_a_write_taken_over_while_its_answer_was_lost_is_fenced(
        self, backend: ZooKeeperBackend, proxy: ZooKeeperProxy
    ) -> None:
        store = backend.open(hosts=proxy.hosts, session_timeout_ms=20_000)
        proxy.lose("request")
        proxy.refuse = True
        errors: list[BaseException] = []

        def write() -> None:
            try:
                store.write([Put("a", 1)])
            except StormlineError as error:
                errors.append(error)

        thread = threading.Thread(target=write)
        thread.start()
        eventually(lambda: not store.connected())
        backend.client.delete(f"{backend.node}/live")
        owner = backend.open()
        proxy.refuse = False
        thread.join()
        assert [type(error) for error in errors] == [Fenced]
        assert owner.children("") == []

    def test_connections_that_are_never_answered_do_not_cost_the_session(
        self, backend: ZooKeeperBackend, proxy: ZooKeeperProxy
    ) -> None:
        lost: list[StormlineError] = []
        store = backend.open(hosts=proxy.hosts, on_lost=lost.append, session_timeout_ms=3000)
        proxy.swallow = 2
        proxy.cut()
        eventually(lambda: not store.connected())
        store.write([Put("a", 1)])
        assert lost == []

    def test_an_interruption_passes(self, backend: ZooKeeperBackend, proxy: ZooKeeperProxy) -> None:
        lost: list[StormlineError] = []
        store = backend.open(hosts=proxy.hosts, on_lost=lost.append)
        for n in range(3):
            proxy.refuse = True
            proxy.cut()
            eventually(lambda: not store.connected())
            proxy.refuse = False
            eventually(store.connected)
            store.write([Put("a", n)])
        assert lost == []


class TestServerFaults:
    @pytest.fixture
    def server(self, tmp_path: Path) -> Iterator[ZooKeeperServer]:
        with ZooKeeperServer(tmp_path / "zookeeper") as server:
            yield server

    @pytest.fixture
    def backend(self, server: ZooKeeperServer) -> Iterator[ZooKeeperBackend]:
        backend = ZooKeeperBackend(server.hosts)
        yield backend
        backend.stop()

    def test_a_killed_server_comes_back_with_all_that_was_written(
        self, server: ZooKeeperServer, backend: ZooKeeperBackend
    ) -> None:
        store = backend.open(session_timeout_ms=20_000)
        store.write([Put("a", 1)])
        server.kill()
        eventually(lambda: not store.connected())
        server.start()
        store.write([Put("a", store.get("a") + 1)])
        store.close()
        assert backend.open().get("a") == 2

    def test_a_server_that_hangs_for_a_moment_is_waited_for(
        self, server: ZooKeeperServer, backend: ZooKeeperBackend
    ) -> None:
        store = backend.open(session_timeout_ms=20_000)
        server.pause()
        timer = threading.Timer(0.5, server.resume)
        timer.start()
        store.write([Put("a", 1)])
        timer.join()
        assert backend.client.get(f"{backend.node}/state/a")[1].version == 0

    def test_a_server_that_hangs_ends_the_ownership(self, server: ZooKeeperServer, backend: ZooKeeperBackend) -> None:
        lost: list[StormlineError] = []
        store = backend.open(session_timeout_ms=1000, connection_timeout_ms=1000, on_lost=lost.append)
        server.pause()
        try:
            with pytest.raises(SessionLost, match=r"no connection to ZooKeeper for 2000 ms while .*/topo was written"):
                store.write([Put("a", 1)])
            with pytest.raises(SessionLost, match="submit again"):
                store.write([])
        finally:
            server.resume()
        assert len(lost) == 1

    def test_a_server_that_goes_away_while_opening_is_reported(
        self, server: ZooKeeperServer, backend: ZooKeeperBackend, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        claim = zookeeper_claim.claim

        def kill_first(*args: Any) -> Any:
            server.kill()
            return claim(*args)

        monkeypatch.setattr("stormline.runtime.zookeeper_state_store.claim", kill_first)
        with pytest.raises(ZooKeeperUnreachable, match=rf"{server.hosts} went away \(\w+\) within 1000 ms"):
            backend.open(connection_timeout_ms=1000)
        server.start()


class TestUnreachable:
    MESSAGE = (
        r"no ZooKeeper for /transactional/topo: {hosts} does not answer within 500 ms.*"
        r"transactional\.zookeeper\.servers, transactional\.zookeeper\.port and storm\.zookeeper\.ssl\.enable"
    )

    def open(self, hosts: str) -> None:
        begun = time.monotonic()
        with pytest.raises(ZooKeeperUnreachable, match=self.MESSAGE.format(hosts=hosts)) as caught:
            ZooKeeperStateStore.open(
                hosts, "/transactional", "topo", connection_timeout_ms=500, session_timeout_ms=1000
            )
        assert isinstance(caught.value, ConnectionError)
        assert time.monotonic() - begun < 5

    def test_nothing_listens(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = listener.getsockname()[1]
        self.open(f"127.0.0.1:{port}")

    def test_no_such_host(self) -> None:
        self.open("no-such-host.invalid:2181")

    @pytest.mark.parametrize("says", [b"", b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\0\0\0\2ok", b"\xff" * 100, None])
    def test_something_else_listens(self, says: bytes | None) -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            stop = threading.Event()
            listener.settimeout(0.05)

            def serve() -> None:
                while not stop.is_set():
                    try:
                        client, _ = listener.accept()
                    except TimeoutError:
                        continue
                    with client:
                        if says is None:
                            stop.wait()
                        else:
                            client.sendall(says)

            thread = threading.Thread(target=serve)
            thread.start()
            self.open(f"127.0.0.1:{listener.getsockname()[1]}")
            stop.set()
            thread.join()

    @pytest.mark.parametrize("root", ["", "transactional", "/", "/a//b", "/a/", "/a/../b"])
    def test_a_root_that_is_no_znode_path_is_refused(self, root: str) -> None:
        with pytest.raises(InvalidPath, match=r"root .*: expected"):
            ZooKeeperStateStore.open("127.0.0.1:1", root, "topo")


class Malicious:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.path),)


NODES = ["owner", "live", "topology", "state", "state/a", "state/b", "state/b/c"]


class TestForeignData:
    """Whatever is found there: nothing is changed, and the path is named."""

    @pytest.fixture
    def written(self, backend: ZooKeeperBackend) -> ZooKeeperBackend:
        store = backend.open(description={"a": 1})
        store.write([Put("a", 1), Put("b/c", 2)])
        store.close()
        return backend

    def put(self, backend: ZooKeeperBackend, name: str, data: bytes, ephemeral: bool = True) -> None:
        path = f"{backend.node}/{name}"
        if name == "live":
            backend.client.create(path, data, ephemeral=ephemeral)
        else:
            backend.client.set(path, data)

    def snapshot(self, backend: ZooKeeperBackend, node: str = "") -> list[Any]:
        path = f"{backend.node}{node}"
        data, stat = backend.client.get(path)
        below = [self.snapshot(backend, f"{node}/{name}") for name in sorted(backend.client.get_children(path))]
        return [path, data, stat.mzxid, below]

    def refused(self, backend: ZooKeeperBackend, kind: type[StormlineError], message: str) -> None:
        before = self.snapshot(backend)
        with pytest.raises(kind, match=message):
            backend.open(description={"a": 1})
        assert self.snapshot(backend) == before

    @pytest.mark.parametrize("name", NODES)
    @pytest.mark.parametrize("data", [b"", b"hello", b"\0" * 100])
    def test_foreign_bytes_halt(self, written: ZooKeeperBackend, name: str, data: bytes) -> None:
        self.put(written, name, data)
        self.refused(written, StateCorrupt, rf"/topo/{name} holds .*Stormline did not write")

    @pytest.mark.parametrize("name", NODES)
    def test_a_pickle_halts_and_is_not_run(self, written: ZooKeeperBackend, name: str, tmp_path: Path) -> None:
        self.put(written, name, pickle.dumps(Malicious(tmp_path / "run")))
        self.refused(written, StateCorrupt, rf"/topo/{name} holds .*Stormline did not write")
        assert not (tmp_path / "run").exists()

    @pytest.mark.parametrize("name", ["owner", "topology", "state/a", "state/b/c"])
    def test_a_flipped_bit_halts(self, written: ZooKeeperBackend, name: str) -> None:
        data = written.client.get(f"{written.node}/{name}")[0]
        self.put(written, name, data[:-1] + bytes([data[-1] ^ 1]))
        self.refused(written, StateCorrupt, rf"/topo/{name} holds \d+ bytes with a wrong checksum")

    @pytest.mark.parametrize("name", ["owner", "live", "topology", "state/a", "state/b/c"])
    def test_a_newer_schema_is_refused(self, written: ZooKeeperBackend, name: str) -> None:
        self.put(written, name, seal(1, PLAIN, version=2))
        self.refused(written, NewerState, rf"/topo/{name} has schema version 2, this Stormline reads up to 1")

    @pytest.mark.parametrize("value", [1, {}, {"epoch": "1", "token": "", "writes": 0}])
    def test_an_owner_that_is_none_halts(self, written: ZooKeeperBackend, value: Any) -> None:
        self.put(written, "owner", seal(value, PLAIN))
        self.refused(written, StateCorrupt, r"/topo/owner holds .*, which is no owner; nothing was changed")

    @pytest.mark.parametrize("value", [1, {"host": "x"}])
    def test_a_claim_that_is_none_halts(self, written: ZooKeeperBackend, value: Any) -> None:
        self.put(written, "live", seal(value, PLAIN))
        self.refused(written, StateCorrupt, r"/topo/live names no driver .*; nothing was changed")

    def test_a_claim_that_would_stay_for_ever_halts(self, written: ZooKeeperBackend) -> None:
        claim = dataclasses.replace(Holder.this_process(1000, "x"), pid=77)
        self.put(written, "live", seal(claim.to_data(), PLAIN), ephemeral=False)
        self.refused(written, StateCorrupt, r"/topo/live would outlive its driver.*Delete it if no .*process 77")

    def test_a_node_of_other_software_halts(self, written: ZooKeeperBackend) -> None:
        written.client.create(f"{written.node}/coordinator")
        self.refused(written, StateCorrupt, r"/topo holds \['coordinator', 'owner', .*another transactional.zookeeper")

    def test_storms_own_state_halts(self, backend: ZooKeeperBackend) -> None:
        backend.client.create(f"{backend.node}/coordinator/currtx", b"\x80\4K\1.", makepath=True)
        backend.client.create(f"{backend.node}/user")
        self.refused(backend, StateCorrupt, r"/topo holds \['coordinator', 'user'\], expected owner and state")

    @pytest.mark.parametrize("name", ["owner", "state"])
    def test_a_missing_node_halts(self, written: ZooKeeperBackend, name: str) -> None:
        written.client.delete(f"{written.node}/{name}", recursive=True)
        self.refused(written, StateCorrupt, r"/topo holds \[.*\], expected owner and state")

    def test_a_value_below_a_value_halts(self, written: ZooKeeperBackend) -> None:
        written.client.create(f"{written.node}/state/a/b", seal(1, PLAIN))
        self.refused(written, StateCorrupt, r"/state/a holds a value, and .*/state/a/b is below it")

    def test_a_value_edited_behind_a_drivers_back_halts(self, written: ZooKeeperBackend) -> None:
        store = written.open(description={"a": 1})
        written.client.set(f"{written.node}/state/a", seal(5, PLAIN))
        with pytest.raises(StateCorrupt, match=r"/state/a was changed by somebody else .*\(BadVersionError\); nothing"):
            store.write([Put("b/c", 3), Put("a", 2)])
        assert store.get("b/c") == 2

    def test_a_large_description_is_not_sent(self, written: ZooKeeperBackend) -> None:
        with pytest.raises(StateTooLarge, match=r"value for .*/topo/topology has 1,000,0"):
            written.open(description="x" * 1_000_000)

    def test_access_that_is_denied_is_reported(self, written: ZooKeeperBackend) -> None:
        store = written.open(description={"a": 1})
        acl = make_digest_acl("somebody", "else", all=True)
        written.client.set_acls(f"{written.node}/state/a", [acl])
        with pytest.raises(ZooKeeperDenied, match=r"denies access to .*/topo: .*or use another transactional.zoo"):
            store.write([Put("a", 2)])
        store.close()
        with pytest.raises(ZooKeeperDenied, match=r"denies access to .*/topo"):
            written.open(description={"a": 1})
        written.client.set_acls(written.node, [acl])
        with pytest.raises(ZooKeeperDenied, match=r"denies access to .*/topo: its access control list does not let"):
            written.open(description={"a": 1})
