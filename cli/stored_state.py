"""The durable state of a topology, for commands that only read it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stormline.topology.compiler import compile_topology
from stormline.topology.topology import Topology

if TYPE_CHECKING:
    from stormline.runtime.zookeeper.reading import ZooKeeperReader


@contextmanager
def stored_state(topology: Topology, config: Mapping[str, Any], state_dir: Path) -> Iterator[ZooKeeperReader]:
    """Give what reads the state: of the servers that `config` names, else of a copy of `state_dir`. It claims nothing.

    Raises:
        NoState: the topology has never run there.
        ZooKeeperUnreachable: no server answers.
    """
    from stormline.runtime.cluster.local_cluster import zookeeper_hosts
    from stormline.runtime.cluster.state_copy import served_copy

    hosts = zookeeper_hosts(config)
    if hosts is not None:
        with _reader(topology, config, hosts, f"ZooKeeper at {hosts}") as reader:
            yield reader
        return
    with served_copy(state_dir) as hosts, _reader(topology, config, hosts, str(state_dir)) as reader:
        yield reader


@contextmanager
def _reader(topology: Topology, config: Mapping[str, Any], hosts: str, where: str) -> Iterator[ZooKeeperReader]:
    from stormline.runtime.errors import NoState
    from stormline.runtime.tasks.task_environment import registry_of
    from stormline.runtime.zookeeper.reading import ZooKeeperReader
    from stormline.runtime.zookeeper.security import ZooKeeperSecurity
    from stormline.topology.config import ZOOKEEPER_CONNECTION_TIMEOUT_MS, ZOOKEEPER_ROOT, setting

    root = setting(config, ZOOKEEPER_ROOT)
    reader = ZooKeeperReader.open(
        hosts,
        root,
        topology.id,
        registry_of(compile_topology(topology, config)),
        connection_timeout_ms=setting(config, ZOOKEEPER_CONNECTION_TIMEOUT_MS),
        security=ZooKeeperSecurity.of(config),
    )
    try:
        if not reader.found():
            raise NoState(
                f"{where} holds no state of topology {topology.id!r} below {root}: it has never run there; run it "
                f"first, or give the settings that it runs with (--state-dir, --conf {ZOOKEEPER_ROOT}=…)"
            )
        yield reader
    finally:
        reader.close()
