"""Starts the runner of one topology, on any engine and any state store."""

from __future__ import annotations

from collections.abc import Callable

from stormline.runtime.engine import Engine
from stormline.runtime.handle import TopologyHandle
from stormline.runtime.progress import Progress, Snapshot
from stormline.runtime.state_store import OnLost, StateStore
from stormline.runtime.task_environment import TaskEnvironment
from stormline.runtime.topology_runner import TopologyRunner
from stormline.topology.errors import StormlineError
from stormline.topology.plan import Plan


def start_topology(
    name: str,
    plan: Plan,
    open_store: Callable[[OnLost], StateStore],
    make_engine: Callable[[TaskEnvironment], Engine],
    on_wave: Callable[[Snapshot], None] | None = None,
    zookeeper_hosts: str = "",
) -> TopologyHandle:
    """Take the ownership of a topology and run it in a thread of its own; on an error nothing is left open."""
    runners: list[TopologyRunner] = []
    lost: list[StormlineError] = []

    def on_lost(error: StormlineError) -> None:
        lost.append(error)
        for runner in runners:
            runner.lost(error)

    store = open_store(on_lost)
    try:
        env = TaskEnvironment(plan, store.epoch)
        runner = TopologyRunner(env, make_engine(env), store, Progress(plan.topology_id, on_wave=on_wave))
    except BaseException:
        store.close()
        raise
    runners.append(runner)
    if lost:
        runner.lost(lost[0])
    return TopologyHandle(name, runner, zookeeper_hosts)
