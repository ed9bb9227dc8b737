"""Cluster: what all clusters have in common, whatever they run topologies on."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, TypeVar, overload

from stormline.runtime.cluster.run_conf import check_transactional_id
from stormline.runtime.cluster.topology_handle import TopologyHandle
from stormline.runtime.coordination.progress import Snapshot
from stormline.runtime.drpc.local_drpc import RunningFunction
from stormline.runtime.errors import NotRunning
from stormline.topology.compiler import compile_topology
from stormline.topology.config import NAME
from stormline.topology.drpc import DRPCTopology
from stormline.topology.errors import InvalidConfig, did_you_mean, shown
from stormline.topology.plan import Plan
from stormline.topology.storm_names import storm_names
from stormline.topology.topology import Topology

C = TypeVar("C", bound="Cluster")


@storm_names()
class Cluster(ABC):
    """A context manager that runs topologies, and kills them at its end."""

    def __init__(self) -> None:
        self._handles: list[TopologyHandle] = []
        self._functions: list[RunningFunction] = []

    def __enter__(self: C) -> C:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.shutdown()

    def submit(
        self,
        topology: Topology,
        config: Mapping[str, Any] | None = None,
        *,
        name: str | None = None,
        allow_changed_topology: bool = False,
        on_wave: Callable[[Snapshot], None] | None = None,
    ) -> TopologyHandle:
        """Start a topology; it runs in threads of its own until it is killed, or stops by itself because of an error.

        Args:
            topology (Topology): what `build_topology` returned.
            config (Mapping[str, Any] | None): the topology's configuration, such as a `Config`; None: all as by
                default.
            name (str | None): what Spark's UI shows; durable state is keyed by the topology's own id. None: what the
                configuration says (`topology.name`), else the topology's id.
            allow_changed_topology (bool): whether to go on with state that belongs to another graph; a spout that
                cannot go on with it is refused all the same.
            on_wave (Callable[[Snapshot], None] | None): called once a wave from the topology's thread, with the
                progress so far; must return soon.

        Returns:
            the handle of the running topology.

        Raises:
            DeclarationError: the topology or its configuration is wrong.
            AlreadyRunning: a driver with this topology id lives.
            NoZooKeeper: Spark runs on a cluster, and there are neither ZooKeeper servers nor a `state_dir`.
            TopologyChanged: the state under this id belongs to another graph, unless `allow_changed_topology`; or to
                another kind of spout that has begun batches, or whose place the new one cannot find. StateCorrupt,
                ZooKeeperUnreachable, JavaMissing, UnsafeSpark, …: see `runtime/errors.py`.
            InvalidConfig: `name` is no text, or a setting is wrong.
            StateCorrupt, ZooKeeperUnreachable, JavaMissing, UnsafeSpark: it cannot be started; each message says why,
                and what to do.
        """
        plan = compile_topology(topology, config)
        check_transactional_id(plan)
        name = plan.config.get(NAME) or topology.id if name is None else name
        if not isinstance(name, str) or not name:
            raise InvalidConfig(f"a topology was submitted under the name {shown(name)}, expected a text")
        handle = self._start(name, plan, allow_changed_topology, on_wave)
        self._handles = [*(other for other in self._handles if other.running), handle]
        return handle

    @overload
    def submit_topology(
        self, name: str, config: Mapping[str, Any] | None, topology: DRPCTopology
    ) -> RunningFunction: ...

    @overload
    def submit_topology(
        self,
        name: str,
        config: Mapping[str, Any] | None,
        topology: Topology,
        *,
        allow_changed_topology: bool = False,
        on_wave: Callable[[Snapshot], None] | None = None,
    ) -> TopologyHandle: ...

    def submit_topology(
        self,
        name: str,
        config: Mapping[str, Any] | None,
        topology: Topology | DRPCTopology,
        *,
        allow_changed_topology: bool = False,
        on_wave: Callable[[Snapshot], None] | None = None,
    ) -> TopologyHandle | RunningFunction:
        """Start a topology as `submit` does, with Storm's arguments.

        One of a `LinearDRPCTopologyBuilder` answers the requests of its `LocalDRPC`, in this process, until it is
        killed. Storm 1.2.4: LocalCluster.submitTopology.

        Args:
            name (str): what Spark's UI shows, and what `kill_topology` takes.
            config (Mapping[str, Any] | None): the topology's configuration, such as a `Config`; None: all as by
                default.
            topology (Topology | DRPCTopology): what `build_topology` or `create_local_topology` returned.
            allow_changed_topology (bool): as for `submit`.
            on_wave (Callable[[Snapshot], None] | None): as for `submit`.

        Returns:
            the handle of the running topology, or of the function that answers.

        Raises:
            StormlineError: one of its kinds, as for `submit`.
        """
        if isinstance(topology, DRPCTopology):
            function: RunningFunction = topology.drpc.submit_topology(name, config, topology)
            self._functions.append(function)
            return function
        return self.submit(topology, config, name=name, allow_changed_topology=allow_changed_topology, on_wave=on_wave)

    def kill_topology(self, name: str) -> None:
        """Stop a topology after the commit that runs now, and wait for that. Its state stays.

        Args:
            name (str): under which it was submitted.

        Raises:
            NotRunning: none of that name runs in this cluster.
        """
        running = [handle for handle in self._all() if handle.running]
        named = [handle for handle in running if handle.name == name]
        if not named:
            names = [handle.name for handle in running]
            raise NotRunning(
                f"no topology {name!r} runs in this cluster; {f'there run {names}' if names else 'none does'}"
                f"{did_you_mean(name, names)}"
            )
        for handle in named:
            handle.kill()

    def shutdown(self) -> None:
        """Kill all topologies of this cluster. The end of its `with` block calls it."""
        for handle in self._all():
            handle.kill()

    def _all(self) -> list[TopologyHandle | RunningFunction]:
        return [*self._handles, *self._functions]

    @abstractmethod
    def _start(
        self, name: str, plan: Plan, allow_changed: bool, on_wave: Callable[[Snapshot], None] | None
    ) -> TopologyHandle:
        """Start a compiled topology."""
