"""What a run adds to the `conf` of user code: which topology this is, and where its ZooKeeper is."""

from __future__ import annotations

from typing import Any

from stormline.topology.config import (
    NAME,
    STORM_ZOOKEEPER_PORT,
    STORM_ZOOKEEPER_SERVERS,
    TRANSACTIONAL_ID,
    ZOOKEEPER_PORT,
    ZOOKEEPER_SERVERS,
)
from stormline.topology.errors import InvalidConfig
from stormline.topology.plan import Plan

_OURS = (ZOOKEEPER_SERVERS, ZOOKEEPER_PORT)
_STORMS = (STORM_ZOOKEEPER_SERVERS, STORM_ZOOKEEPER_PORT)


def check_transactional_id(plan: Plan) -> None:
    """Check that no configuration gives the topology another id than its own.

    Raises:
        InvalidConfig: one does.
    """
    configs = {"its configuration": plan.config}
    configs |= {f"component {name!r}": planned.component.config for name, planned in plan.components.items()}
    for where, config in configs.items():
        if config.get(TRANSACTIONAL_ID) not in (None, plan.topology_id):
            raise InvalidConfig(
                f"topology {plan.topology_id!r}: {where} sets {TRANSACTIONAL_ID} to {config[TRANSACTIONAL_ID]!r}; the "
                "id is the first argument of TransactionalTopologyBuilder: leave the key out, or set it to that"
            )


def run_conf(plan: Plan, name: str, zookeeper_hosts: str) -> dict[str, Any]:
    """Return the configuration of a topology that runs under `name`, with its ZooKeeper at "host:port,…".

    The transactional keys name the ZooKeeper, and Storm's do, unless the configuration has another one there. Servers
    have their ports with them only where these differ. Without ZooKeeper (in `InProcessCluster`) all stay as they are.
    """
    conf = {**plan.config, NAME: name, TRANSACTIONAL_ID: plan.topology_id}
    if zookeeper_hosts:
        servers = zookeeper_hosts.split(",")
        hosts, ports = zip(*(server.rsplit(":", 1) for server in servers), strict=True)
        another = plan.config.get(ZOOKEEPER_SERVERS) and plan.config.get(STORM_ZOOKEEPER_SERVERS)
        for servers_key, port_key in [_OURS] if another else [_OURS, _STORMS]:
            conf[servers_key] = list(hosts) if len(set(ports)) == 1 else servers
            conf[port_key] = int(ports[0])
    return conf
