"""Starts the runner of one topology, on any engine and any state store."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable

from stormline.runtime.cluster.run_conf import run_conf
from stormline.runtime.cluster.topology_handle import TopologyHandle
from stormline.runtime.coordination.progress import Progress, Snapshot
from stormline.runtime.coordination.topology_runner import TopologyRunner
from stormline.runtime.messages.engine import Engine
from stormline.runtime.state.state_store import OnLost, StateStore
from stormline.runtime.state.transactional_state import offer_state
from stormline.runtime.tasks.commit_participants import CommitResources
from stormline.runtime.tasks.debug_log import show_debug
from stormline.runtime.tasks.task_environment import TaskEnvironment
from stormline.runtime.world.world import REAL, World
from stormline.topology.errors import StormlineError
from stormline.topology.plan import Plan
from stormline.topology.secrets import literal_secrets

log = logging.getLogger("stormline")


def start_topology(
    name: str,
    plan: Plan,
    open_store: Callable[[OnLost], StateStore],
    make_engine: Callable[[TaskEnvironment], Engine],
    on_wave: Callable[[Snapshot], None] | None = None,
    zookeeper_hosts: str = "",
    world: World = REAL,
    resources: CommitResources | None = None,
) -> TopologyHandle:
    """Take the ownership of a topology and run it in a thread of its own; on an error nothing is left open."""
    configs = {"its configuration": plan.config}
    configs |= {f"component {name!r}": planned.component.config for name, planned in plan.components.items()}
    for where, config in configs.items():
        for key in literal_secrets(config):
            log.warning(
                "topology %s: %s sets %s to a text that is sent to all executors; set it to env:NAME or file:PATH, and "
                "read it in prepare() by resolve_secret(conf[%r])",
                plan.topology_id,
                where,
                key,
                key,
            )
    runners: list[TopologyRunner] = []
    lost: list[StormlineError] = []

    def on_lost(error: StormlineError) -> None:
        lost.append(error)
        for runner in runners:
            runner.lost(error)

    show_debug(plan)
    store = open_store(on_lost)
    try:
        plan = dataclasses.replace(plan, config=run_conf(plan, name, zookeeper_hosts))
        env = TaskEnvironment(plan, store.epoch, offer_state(store), world, resources)
        runner = TopologyRunner(env, make_engine(env), store, Progress(world, plan.topology_id, on_wave=on_wave))
    except BaseException:
        store.close()
        raise
    runners.append(runner)
    if lost:
        runner.lost(lost[0])
    return TopologyHandle(world, name, runner, zookeeper_hosts)
