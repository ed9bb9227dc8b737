"""Lab: one Spark on two cores and one embedded ZooKeeper for all rows of a run, and topologies released by amounts."""

from __future__ import annotations

import contextlib
import itertools
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from kazoo.client import KazooClient

from benchmarks.measuring.brokers import Brokers
from benchmarks.measuring.databases import Databases
from benchmarks.measuring.fresh import end_tree
from benchmarks.measuring.settings import CORES, MASTER, TIMEOUT_SECS
from benchmarks.topologies.synthetic import GATES, Gate
from stormline import LocalCluster, Topology
from stormline.runtime.cluster.topology_handle import TopologyHandle
from stormline.topology.config import MAX_SPOUT_PENDING

if TYPE_CHECKING:
    from pyspark import SparkContext

_numbers = itertools.count(1)


class Stream:
    """A running topology whose spout gives as many batches as are released. A context manager that kills it."""

    def __init__(self, topology_id: str, gate: Gate, handle: TopologyHandle) -> None:
        self.topology_id = topology_id
        self.gate = gate
        self.handle = handle

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.handle.kill()

    def run(self, batches: int) -> float:
        """Release batches; return the seconds from when the first was asked for until the last was committed."""
        last = self.gate.begun + batches
        self.gate.release(batches)
        self.handle.await_committed(last, TIMEOUT_SECS)
        ended = time.perf_counter()
        assert self.handle.txid_committed == last, (self.handle.txid_committed, last)
        return ended - self.gate.asked[0]

    def latencies(self, batches: int) -> list[float]:
        """Release batches; return for each the seconds from when it was asked for until it was committed."""
        first = self.gate.begun + 1
        self.gate.release(batches)
        ends: list[float] = []
        for txid in range(first, first + batches):
            self.handle.await_committed(txid, TIMEOUT_SECS)
            ends.append(time.perf_counter())
        return [ended - asked for asked, ended in zip(self.gate.asked, ends, strict=True)]


class Lab:
    """Starts Spark and ZooKeeper when they are first needed. A context manager that stops them."""

    def __init__(self) -> None:
        self._sc: SparkContext | None = None
        self._cluster: LocalCluster | None = None
        self._state_dir: Path | None = None
        self.databases = Databases()
        self.brokers = Brokers()

    def __enter__(self) -> Lab:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    @property
    def spark(self) -> SparkContext:
        """The SparkContext, with Stormline's own settings."""
        if self._sc is None:
            from stormline.runtime.spark.context import start_spark

            # In a thread of its own: in the main one Spark would take SIGINT for itself.
            with ThreadPoolExecutor(1) as pool:
                self._sc, _ = pool.submit(start_spark, "stormline benchmarks", MASTER, {}).result()
        return self._sc

    def submit(self, build: Callable[[str], Topology], pending: int, config: Mapping[str, Any] | None = None) -> Stream:
        """Start a topology, under an id of its own."""
        sc = self.spark
        assert sc.defaultParallelism == CORES
        if self._cluster is None:
            self._state_dir = Path(tempfile.mkdtemp(prefix="stormline-bench-"))
            self._cluster = LocalCluster(self._state_dir, MASTER)  # uses the SparkContext that runs
        topology_id = f"bench-{next(_numbers)}"
        gate = GATES[topology_id] = Gate()
        settings = {MAX_SPOUT_PENDING: pending, **(config or {})}
        return Stream(topology_id, gate, self._cluster.submit_topology(topology_id, settings, build(topology_id)))

    @contextmanager
    def zookeeper(self, stream: Stream) -> Iterator[KazooClient]:
        """Give a client of its own on the ZooKeeper that a topology uses."""
        client = KazooClient(stream.handle.zookeeper_hosts)
        client.start()
        try:
            yield client
        finally:
            client.stop()
            client.close()

    def close(self) -> None:
        """Stop all topologies, ZooKeeper, Spark, databases and brokers."""
        if self._cluster is not None:
            self._cluster.shutdown()
            self._cluster = None
        if self._sc is not None:
            self._sc = None
            end_spark()
        self.databases.close()
        self.brokers.close()
        self.remove_files()

    def remove_files(self) -> None:
        """Remove what ZooKeeper, the databases and brokers have written."""
        self.databases.remove_files()
        self.brokers.remove_files()
        if self._state_dir is not None:
            shutil.rmtree(self._state_dir, ignore_errors=True)
            self._state_dir = None


def end_spark() -> None:
    """Stop Spark, and its JVM too, which would otherwise wait for the next SparkContext of this process."""
    from pyspark import SparkContext

    sc, gateway = SparkContext._active_spark_context, SparkContext._gateway
    with contextlib.suppress(Exception):  # the JVM may have gone
        if sc is not None:
            sc.stop()
    if gateway is not None:
        with contextlib.suppress(Exception):
            gateway.shutdown()
        end_tree(gateway.proc.pid)
        gateway.proc.wait()
    SparkContext._active_spark_context = None
    SparkContext._gateway = None
    SparkContext._jvm = None
