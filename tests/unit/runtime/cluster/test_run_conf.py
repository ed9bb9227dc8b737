from __future__ import annotations

import pytest

from stormline import Config, InProcessCluster
from stormline.runtime.cluster.run_conf import run_conf
from stormline.topology.compiler import compile_topology
from stormline.topology.errors import InvalidConfig
from stormline.topology.topology import Topology
from tests.kits.components import Basic, line

ID = Config.TOPOLOGY_TRANSACTIONAL_ID


def topology(component_id: str = "topo") -> Topology:
    return line(
        "topo", {}, 1, lambda b: b.set_bolt("b", Basic()).shuffle_grouping("spout").add_configuration(ID, component_id)
    )


@pytest.mark.parametrize(
    ("hosts", "servers", "port"),
    [
        ("127.0.0.1:4711", ["127.0.0.1"], 4711),
        ("a:2181,b:2181", ["a", "b"], 2181),
        ("a:2181,[::1]:7", ["a:2181", "[::1]:7"], 2181),
        ("[::1]:7", ["[::1]"], 7),
    ],
)
def test_a_conf_says_where_zookeeper_is(hosts: str, servers: list[str], port: int) -> None:
    plan = compile_topology(topology(), {"transactional.zookeeper.servers": ["old"], "my.key": 1})
    conf = run_conf(plan, "name", hosts)
    assert conf == {
        "my.key": 1,
        "topology.name": "name",
        "topology.transactional.id": "topo",
        "transactional.zookeeper.servers": servers,
        "transactional.zookeeper.port": port,
        "storm.zookeeper.servers": servers,
        "storm.zookeeper.port": port,
    }


def test_storms_keys_are_left_alone_where_they_name_another_zookeeper() -> None:
    config = {"transactional.zookeeper.servers": ["a"], "storm.zookeeper.servers": ["b"], "storm.zookeeper.port": 5}
    conf = run_conf(compile_topology(topology(), config), "name", "a:2181")
    assert (conf["transactional.zookeeper.servers"], conf["transactional.zookeeper.port"]) == (["a"], 2181)
    assert (conf["storm.zookeeper.servers"], conf["storm.zookeeper.port"]) == (["b"], 5)


def test_without_zookeeper_a_conf_says_nothing_of_it() -> None:
    assert run_conf(compile_topology(topology()), "name", "") == {"topology.name": "name", ID: "topo"}


def test_the_topologys_own_id_may_be_said_again() -> None:
    with InProcessCluster() as cluster:
        cluster.submit(topology(), {ID: "topo"}).await_drained(20)


def test_another_id_than_the_topologys_is_refused() -> None:
    with InProcessCluster() as cluster:
        with pytest.raises(
            InvalidConfig, match=r"topology 'topo': its configuration sets topology\.transactional\.id "
        ):
            cluster.submit(topology(), {ID: "other"})
        with pytest.raises(InvalidConfig, match=r"component 'b' sets .* to 'x'; the id is the first argument of Trans"):
            cluster.submit(topology("x"))
