"""StormSubmitter: runs a topology from a program of its own, as the main of a Storm program does."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import Any

from stormline.runtime.cluster.local_cluster import LocalCluster, zookeeper_hosts
from stormline.runtime.cluster.state_dir import default_state_dir
from stormline.runtime.spark.settings import check_master, is_local
from stormline.topology.compiler import compile_topology
from stormline.topology.storm_names import storm_names
from stormline.topology.topology import Topology


@storm_names()
class StormSubmitter:
    """Runs topologies where Spark's master and ZooKeeper are named by the configuration, or by spark-submit.

    Storm 1.2.4: StormSubmitter.
    """

    @staticmethod
    def submit_topology(
        name: str,
        config: Mapping[str, Any] | None,
        topology: Topology,
        *,
        allow_changed_topology: bool = False,
    ) -> None:
        """Run a topology until it ends, which it does by itself only where it fails: this process is its driver.

        Where Storm's call returns when the topology has been handed over, this one returns when it has been stopped.
        SIGINT (Ctrl-C) and SIGTERM, in a program's main thread, stop it after the commit that runs; the former raises
        KeyboardInterrupt then, the latter SystemExit with 143, as a shell has it.

        Spark's master is what spark-submit says, else the configuration's `spark.master`, else local[*]. The state is
        kept in the ZooKeeper that the configuration names; without one, on a local master, in .stormline/TOPOLOGY_ID,
        where `stormline run` has it too: called again, it goes on where it stopped.

        Args:
            name (str): what Spark's UI shows.
            config (Mapping[str, Any] | None): the topology's configuration, with `spark.*` settings; None: all as by
                default.
            topology (Topology): what `build_topology` returned.
            allow_changed_topology (bool): as for `LocalCluster.submit`.

        Raises:
            StormlineError: the topology could not be started, as by `LocalCluster.submit`, or why it stopped.
        """
        settings = dict(config or {})
        compile_topology(topology, settings)  # what is declared wrongly shows before Spark starts
        from stormline.runtime.spark.context import submitted_master, under_spark_submit, unless_given

        if under_spark_submit():
            settings = unless_given(settings)
            used, master = submitted_master(settings), None
        else:
            used = master = settings.pop("spark.master", "local[*]")
            check_master(used)
        keeps_here = zookeeper_hosts(settings) is None and is_local(used)
        state_dir = default_state_dir(topology.id) if keeps_here else None
        with _sigterm_ends(), LocalCluster(state_dir, master) as cluster:
            cluster.submit_topology(name, settings, topology, allow_changed_topology=allow_changed_topology).join()

    submit_topology_with_progress_bar = submit_topology


@contextmanager
def _sigterm_ends() -> Iterator[None]:
    """Let SIGTERM leave the `with` block as Ctrl-C does: what it holds is closed in order."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def leave(number: int, frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
