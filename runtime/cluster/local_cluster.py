"""LocalCluster: Spark and ZooKeeper for topologies, started when the first one is submitted."""

from __future__ import annotations

import atexit
import logging
import re
import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stormline.runtime.cluster.base import Cluster
from stormline.runtime.cluster.state_dir import check_state_room, wait_until_free
from stormline.runtime.cluster.submission import start_topology
from stormline.runtime.cluster.topology_handle import TopologyHandle
from stormline.runtime.coordination.compatibility import check_spout_kind
from stormline.runtime.coordination.progress import Snapshot
from stormline.runtime.errors import AlreadyRunning, NoZooKeeper
from stormline.runtime.spark.hung_jvm import answers, end_if_hung
from stormline.runtime.spark.settings import check_master, is_local
from stormline.runtime.state.state_store import OnLost
from stormline.runtime.tasks.task_environment import registry_of
from stormline.runtime.zookeeper.interpreter_watch import InterpreterWatch
from stormline.runtime.zookeeper.security import ZooKeeperSecurity
from stormline.runtime.zookeeper.store import ZooKeeperStateStore
from stormline.topology.config import (
    STORM_ZOOKEEPER_PORT,
    STORM_ZOOKEEPER_SERVERS,
    ZOOKEEPER_AUTH_SCHEME,
    ZOOKEEPER_CONNECTION_TIMEOUT_MS,
    ZOOKEEPER_PORT,
    ZOOKEEPER_ROOT,
    ZOOKEEPER_SERVERS,
    ZOOKEEPER_SESSION_TIMEOUT_MS,
    ZOOKEEPER_SSL_ENABLE,
    setting,
)
from stormline.topology.errors import InvalidConfig
from stormline.topology.plan import Plan

if TYPE_CHECKING:
    from stormline.runtime.cluster.embedded_zookeeper import EmbeddedZooKeeper
    from stormline.runtime.spark.context import SparkContext

log = logging.getLogger("stormline")

EMBEDDED_SESSION_TIMEOUT_MS = 10_000


def zookeeper_hosts(config: Mapping[str, Any]) -> str | None:
    """Return "host:port,…" from the configuration, whose servers may bring ports; None where it names none."""
    servers = setting(config, ZOOKEEPER_SERVERS) or setting(config, STORM_ZOOKEEPER_SERVERS)
    if not servers:
        return None
    port = setting(config, ZOOKEEPER_PORT) or setting(config, STORM_ZOOKEEPER_PORT) or 2181
    return ",".join(server if re.search(r"[^:]:\d+$", server) else f"{server}:{port}" for server in servers)


class LocalCluster(Cluster):
    """A context manager that runs topologies on Spark, with an embedded ZooKeeper unless the config names servers.

    Args:
        state_dir (str | Path | None): where the embedded ZooKeeper keeps its data; a second cluster on the same
            directory goes on where the first one stopped. None: a temporary one, removed at the end.
        master (str | None): Spark's master URL; None: what spark-submit says.
        conf (Mapping[str, Any] | None): `spark.*` settings.
        verbose (bool): whether to show what Spark prints.
        on_output (Callable[[str], None] | None): called with each line that Spark's processes on this machine print
            (what user code prints in the Python workers), in a thread of its own. None: it goes to standard error.

    Raises:
        InvalidConfig: `conf` has a setting that is none of Spark's.
    """

    def __init__(
        self,
        state_dir: str | Path | None = None,
        master: str | None = "local[*]",
        conf: Mapping[str, Any] | None = None,
        *,
        verbose: bool = False,
        on_output: Callable[[str], None] | None = None,
    ) -> None:
        super().__init__()
        self._on_output = on_output
        self._state_dir = None if state_dir is None else Path(state_dir)
        self._master = master
        self._conf = dict(conf or {})
        foreign = [key for key in self._conf if not key.startswith("spark.")]
        if foreign:
            raise InvalidConfig(
                f"LocalCluster(conf=…) takes spark.* settings, got {foreign[0]!r}; give the rest to submit_topology"
            )
        if master is not None:
            check_master(master)
        self._verbose = verbose
        self._temporary: Path | None = None
        self._sc: SparkContext | None = None
        self._owns_spark = False
        self._zookeeper: EmbeddedZooKeeper | None = None
        self._watch: InterpreterWatch | None = None

    def _start(
        self, name: str, plan: Plan, allow_changed: bool, on_wave: Callable[[Snapshot], None] | None
    ) -> TopologyHandle:
        registry = registry_of(plan)
        running = [handle for handle in self._handles if handle.running and handle.topology_id == plan.topology_id]
        if running:
            raise AlreadyRunning(
                f"topology {plan.topology_id!r} runs already in this cluster, as {running[0].name!r}; kill it first"
            )
        hosts = zookeeper_hosts(plan.config)
        security = ZooKeeperSecurity.of(plan.config)
        embedded = hosts is None
        if embedded and (security.tls or security.scheme == "sasl"):
            raise InvalidConfig(
                f"{ZOOKEEPER_SSL_ENABLE} or {ZOOKEEPER_AUTH_SCHEME}=sasl is set, and the embedded ZooKeeper has "
                f"neither; name the servers that have ({ZOOKEEPER_SERVERS}), or use {ZOOKEEPER_AUTH_SCHEME}=digest"
            )
        if embedded and self._master is not None:
            self._check_place_for_state(self._master)
        sc = self._start_spark(name, plan.config)
        if hosts is None:
            hosts = self._start_zookeeper(sc)
        zookeeper = hosts
        watch = self._watch = self._watch or InterpreterWatch()
        default_ms = EMBEDDED_SESSION_TIMEOUT_MS if embedded else setting({}, ZOOKEEPER_SESSION_TIMEOUT_MS)

        def open_store(on_lost: OnLost) -> ZooKeeperStateStore:
            return ZooKeeperStateStore.open(
                zookeeper,
                setting(plan.config, ZOOKEEPER_ROOT),
                plan.topology_id,
                registry,
                plan.describe(),
                allow_changed=allow_changed,
                check_state=check_spout_kind,
                on_lost=on_lost,
                session_timeout_ms=plan.config.get(ZOOKEEPER_SESSION_TIMEOUT_MS) or default_ms,
                connection_timeout_ms=setting(plan.config, ZOOKEEPER_CONNECTION_TIMEOUT_MS),
                security=security,
                server=self._zookeeper if embedded else None,
                why_silent=watch.why_silent,
            )

        from stormline.runtime.spark.engine import SparkEngine

        return start_topology(name, plan, open_store, lambda env: SparkEngine(sc, env, name), on_wave, hosts)

    def _check_place_for_state(self, master: str) -> None:
        """Refuse a cluster without ZooKeeper, and a state directory that is in use, before Spark takes its time."""
        if self._state_dir is None and not is_local(master):
            raise NoZooKeeper(
                f"Spark runs on {master}, and there is no ZooKeeper to keep the state in: name its servers "
                f"({ZOOKEEPER_SERVERS}; --zookeeper HOST:PORT on the command line), or give a state directory, "
                "in which the driver's own ZooKeeper keeps it on this machine only"
            )
        if self._state_dir is not None and self._zookeeper is None:
            wait_until_free(self._state_dir / "zookeeper")
            check_state_room(self._state_dir / "zookeeper")

    def _start_spark(self, name: str, config: Mapping[str, Any]) -> SparkContext:
        if self._sc is None:
            from stormline.runtime.spark.context import start_spark

            spark = {key: value for key, value in config.items() if key.startswith("spark.")}
            self._sc, self._owns_spark = start_spark(
                name, self._master, {**self._conf, **spark}, self._verbose, self._on_output
            )
            atexit.register(self.shutdown)  # for scripts that end without it
        return self._sc

    def _start_zookeeper(self, sc: SparkContext) -> str:
        if self._zookeeper is None:
            from stormline.runtime.cluster.embedded_zookeeper import EmbeddedZooKeeper

            self._check_place_for_state(sc.master or "")
            if self._state_dir is None:
                self._temporary = Path(tempfile.mkdtemp(prefix="stormline-"))
            directory = self._state_dir or self._temporary
            assert directory is not None
            self._zookeeper = EmbeddedZooKeeper(sc, directory / "zookeeper")
        return self._zookeeper.hosts

    def _stop_jvm(self) -> None:
        """Stop ZooKeeper and Spark; a JVM that hangs is killed if it is ours, and left alone if it is not."""
        usable = self._sc is None or (self._owns_spark and end_if_hung(self._sc._gateway)) or answers(self._sc._gateway)
        zookeeper, sc, self._zookeeper, self._sc = self._zookeeper, self._sc, None, None
        if zookeeper is not None and usable:
            zookeeper.stop()
        if sc is not None and self._owns_spark and usable:
            from stormline.runtime.spark.context import stop_spark

            stop_spark(sc)

    def shutdown(self) -> None:
        """Kill all topologies and stop what this cluster started: its own Spark, and the embedded ZooKeeper."""
        atexit.unregister(self.shutdown)
        super().shutdown()
        if self._watch is not None:
            self._watch.stop()
            self._watch = None
        self._stop_jvm()
        if self._temporary is not None:
            shutil.rmtree(self._temporary, ignore_errors=True)
            self._temporary = None
