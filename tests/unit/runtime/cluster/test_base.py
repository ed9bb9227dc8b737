"""What all clusters offer beside running topologies: ways to submit, to wait, and to stop."""

from __future__ import annotations

import signal
import threading
from typing import Any

import pytest

from stormline import InProcessCluster, TopologyHandle
from stormline.runtime.errors import NotRunning, TopologyFailed, WaitsForItself
from stormline.runtime.world.thread_stack import stack_of
from stormline.topology.errors import InvalidConfig
from stormline.topology.topology import Topology
from tests.contracts.running import new_id
from tests.kits.components import Fault, Store, eventually, line, numbers


def topology(topology_id: str | None = None, fault: Fault | None = None) -> Topology:
    name = topology_id or new_id()
    store = Store(name, fault) if fault else Store(name)
    return line(name, numbers(20), 2, lambda b: b.set_bolt("store", store).global_grouping("spout"))


class TestSubmit:
    def test_a_topology_is_called_by_its_id_by_its_configuration_or_as_is_said(self) -> None:
        with InProcessCluster() as cluster:
            assert cluster.submit(topology("a")).name == "a"
            assert cluster.submit(topology("b"), {"topology.name": "of config"}).name == "of config"
            named = {"topology.name": "of config"}
            handle = cluster.submit(topology("c"), named, name="said")
            assert (handle.name, handle.topology_id) == ("said", "c")
            assert cluster.submit_topology("as in Storm", named, topology("d")).name == "as in Storm"

    @pytest.mark.parametrize("name", ["", 5, b"x"])
    def test_a_name_is_a_text(self, name: Any) -> None:
        with InProcessCluster() as cluster, pytest.raises(InvalidConfig, match=r"under the name .*, expected a text"):
            cluster.submit(topology(), name=name)


class TestKill:
    def test_a_topology_is_killed_by_its_name_and_others_go_on(self) -> None:
        with InProcessCluster() as cluster:
            one, two = cluster.submit(topology(), name="one"), cluster.submit(topology(), name="two")
            cluster.kill_topology("one")
            assert (one.running, one.error, two.running) == (False, None, True)
            with pytest.raises(NotRunning, match=r"no topology 'one' runs in this cluster; there run \['two'\]"):
                cluster.kill_topology("one")
            with pytest.raises(NotRunning, match=r"there run \['two'\]; did you mean 'two'\?"):
                cluster.kill_topology("twoo")
            cluster.kill_topology("two")
            with pytest.raises(NotRunning, match=r"no topology 'two' runs in this cluster; none does"):
                cluster.kill_topology("two")

    def test_what_was_killed_can_be_submitted_again(self) -> None:
        with InProcessCluster() as cluster:
            same = topology()
            for _ in range(3):
                cluster.submit(same, name="again").await_drained(20)
                cluster.kill_topology("again")

    def test_a_cluster_may_be_shut_down_without_a_with_block(self) -> None:
        cluster = InProcessCluster()
        handle = cluster.submit(topology())
        cluster.shutdown()
        cluster.shutdown()
        assert not handle.running

    def test_a_handle_kills_its_topology_at_the_end_of_its_block(self) -> None:
        with InProcessCluster() as cluster:
            with cluster.submit(topology()) as handle:
                assert isinstance(handle, TopologyHandle)
                handle.await_drained(20)
            assert not handle.running
            with pytest.raises(ZeroDivisionError), cluster.submit(topology()) as handle:
                _ = 1 // 0
            assert not handle.running


class TestJoin:
    def test_it_waits_until_the_topology_was_killed(self) -> None:
        with InProcessCluster() as cluster:
            handle = cluster.submit(topology())
            handle.await_drained(20)
            joined: list[int] = []
            thread = threading.Thread(target=lambda: joined.append(handle.join()))
            thread.start()
            with pytest.raises(TimeoutError, match=r"waited 0\.01 s for its end; committed is 5"):
                handle.join(0.01)
            assert joined == []
            handle.kill()
            thread.join(20)
            assert joined == [5]
            assert handle.join() == 5

    def test_it_raises_what_the_topology_ended_with(self) -> None:
        with InProcessCluster() as cluster:
            handle = cluster.submit(topology(fault=Fault("before", txid=3, error="bug")))
            for _ in range(2):
                with pytest.raises(TopologyFailed, match=r"ZeroDivisionError: on order in before"):
                    handle.join(20)
            assert handle.txid_committed == 2

    def test_ctrl_c_ends_the_waiting_and_the_block_ends_the_topology(self) -> None:
        main = threading.main_thread()

        def press() -> None:
            eventually(lambda: "in join" in stack_of(main))
            assert main.ident is not None
            signal.pthread_kill(main.ident, signal.SIGINT)

        def run(cluster: InProcessCluster) -> None:
            with cluster.submit(topology()) as handle:
                handles.append(handle)
                handle.await_drained(20)
                threading.Thread(target=press).start()
                handle.join()

        handles: list[TopologyHandle] = []
        with InProcessCluster() as cluster, pytest.raises(KeyboardInterrupt):
            run(cluster)
        assert (handles[0].running, handles[0].error) == (False, None)

    def test_on_wave_may_not_wait_for_the_end(self) -> None:
        errors: list[BaseException] = []

        def on_wave(snapshot: Any) -> None:
            eventually(lambda: handles)
            try:
                handles[0].join()
            except WaitsForItself as error:
                errors.append(error)

        handles: list[TopologyHandle] = []
        with InProcessCluster() as cluster:
            handles.append(cluster.submit(topology(), on_wave=on_wave))
            handles[0].await_drained(20)
        assert "on_wave waits for its end, in the topology's own thread" in str(errors[0])
