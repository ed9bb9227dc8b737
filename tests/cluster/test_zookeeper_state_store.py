from __future__ import annotations

import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from stormline.runtime.errors import AlreadyRunning, Fenced, InvalidPath, SessionLost, ZooKeeperUnreachable
from stormline.runtime.state.state_store import Put
from stormline.runtime.world.machine import Machine
from stormline.runtime.world.world import REAL
from stormline.runtime.zookeeper import claim as claiming
from stormline.runtime.zookeeper.store import ZooKeeperStateStore
from stormline.topology.errors import StormlineError
from tests.contracts.state_store import RotatingStateContract, StateStoreContract
from tests.contracts.transactional_state import (
    RotatingTransactionalStateContract,
    ThreadsContract,
    TransactionalStateContract,
)
from tests.kits.components import eventually
from tests.services.zookeeper_backend import ZooKeeperBackend, hear, tell
from tests.services.zookeeper_proxy import ZooKeeperProxy
from tests.services.zookeeper_server import ZooKeeperServer


class Another(Machine):
    """A machine that is not the one of the driver before."""

    def boot(self) -> str:
        return "another"


SESSION_SECS = 30
"""Long enough that nobody takes a busy machine for one that waits for a session to end."""

ELSEWHERE = replace(REAL, machine=Another())


@pytest.fixture
def proxy(zookeeper: ZooKeeperServer) -> Iterator[ZooKeeperProxy]:
    with ZooKeeperProxy(zookeeper.port) as proxy:
        yield proxy


class TestZooKeeperStateStore(StateStoreContract):
    pass


class TestRotatingState(RotatingStateContract):
    pass


class TestTransactionalState(TransactionalStateContract, ThreadsContract):
    pass


class TestRotatingTransactionalState(RotatingTransactionalStateContract):
    pass


class TestTakeOver:
    def test_a_second_driver_in_another_process_is_refused_at_once(self, backend: ZooKeeperBackend) -> None:
        backend.open(session_timeout_ms=1000 * SESSION_SECS)
        begun = time.monotonic()
        said = hear(backend.start_driver(1000 * SESSION_SECS))
        assert said.startswith(f"AlreadyRunning: topology 'topo' is run already by process {os.getpid()} on ")
        assert time.monotonic() - begun < SESSION_SECS  # nobody waited for the session's end

    def test_a_driver_killed_on_this_host_is_replaced_at_once(self, backend: ZooKeeperBackend) -> None:
        driver = backend.start_driver(1000 * SESSION_SECS)
        assert hear(driver) == "epoch 1"
        assert tell(driver, "1") == "written"
        driver.kill()
        begun = time.monotonic()
        store = backend.open()
        assert (store.epoch, store.get("a")) == (2, "1")
        assert time.monotonic() - begun < SESSION_SECS  # nobody waited for the session's end

    def test_a_driver_of_another_host_is_given_time_to_vanish(self, backend: ZooKeeperBackend) -> None:
        driver = backend.start_driver(1000)
        assert hear(driver) == "epoch 1"
        driver.kill()
        assert backend.open(world=ELSEWHERE).epoch == 2

    def test_a_live_driver_of_another_host_is_refused_in_the_end(
        self, backend: ZooKeeperBackend, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        store = backend.open(session_timeout_ms=1000)
        monkeypatch.setattr(claiming, "VANISH_MARGIN_MS", 500)
        with pytest.raises(AlreadyRunning, match=r"is run already by .*its session did not end in 1500 ms; stop"):
            backend.open(world=ELSEWHERE)
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
        assert time.monotonic() - begun < SESSION_SECS  # the zombie does not wait for answers that cannot come
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
        send = claiming._send

        def send_late(*args: Any) -> None:
            monkeypatch.setattr(claiming, "_send", send)
            other = backend.open()
            other.write([Put("a", 1)])
            other.close()
            send(*args)

        monkeypatch.setattr(claiming, "_send", send_late)
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
        store = backend.open(hosts=proxy.hosts, on_lost=lost.append, session_timeout_ms=6000)
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
        claim = claiming.claim

        def kill_first(*args: Any) -> Any:
            server.kill()
            return claim(*args)

        monkeypatch.setattr("stormline.runtime.zookeeper.store.claim", kill_first)
        with pytest.raises(ZooKeeperUnreachable, match=rf"{server.hosts} went away \(\w+\) within 3000 ms"):
            backend.open(connection_timeout_ms=3000)
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
        assert time.monotonic() - begun < SESSION_SECS

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
