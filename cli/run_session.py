"""RunSession: one run of a topology from its start to its end, with its deadline and signals."""

from __future__ import annotations

import contextlib
import queue
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stormline.cli.errors import NotDone
from stormline.cli.leave import LeaveNow
from stormline.cli.reporter import Reporter
from stormline.cli.stop_signals import StopSignals
from stormline.runtime.cluster.local_cluster import LocalCluster
from stormline.runtime.cluster.topology_handle import TopologyHandle
from stormline.runtime.coordination.progress import Snapshot
from stormline.runtime.errors import Fenced, SessionLost, TopologyStopped
from stormline.runtime.spark.hung_jvm import end_if_hung
from stormline.topology.topology import Topology

POLL_SECS = 0.1

LOST = (Fenced, SessionLost)
"""This driver owns the topology no longer, and its threads may be inside of user code: nobody waits for them."""


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Where to run (`state_dir` None: a temporary one; `master` None: as spark-submit says), and until when."""

    state_dir: Path | None = None
    master: str | None = "local[*]"
    keep_running: bool = False
    until: int | None = None
    timeout_secs: float | None = None
    allow_changed_topology: bool = False
    verbose: bool = False


class RunSession:
    """Runs a topology once. The main thread watches, a second one starts and ends Spark, a third is the topology's.

    A signal or the deadline stops the topology after the commit that runs; before Spark is up, at once.
    `final` holds the last counts once a topology that had started has stopped, well or not.
    """

    def __init__(
        self,
        topology: Topology,
        config: Mapping[str, Any],
        options: RunOptions,
        reporter: Reporter,
        signals: StopSignals,
    ) -> None:
        self._topology = topology
        self._config = config
        self._options = options
        self._reporter = reporter
        self._signals = signals
        self._waves: queue.SimpleQueue[Snapshot] = queue.SimpleQueue()
        self._done = threading.Event()
        self._stopping = threading.Event()
        self._reached = threading.Event()
        self._announced = False
        self._timed_out = False
        self._handle: TopologyHandle | None = None
        self.final: Snapshot | None = None
        self._error: BaseException | None = None

    def run(self) -> Snapshot:
        """Run to the end; return the final counts.

        Raises:
            LeaveNow: the process has to end now.
            NotDone: `timeout_secs` have passed before.
            StormlineError: why the topology, or its start, failed.
        """
        timeout_secs = self._options.timeout_secs
        deadline = None if timeout_secs is None else time.monotonic() + timeout_secs
        threading.Thread(target=self._work, daemon=True, name="stormline-run").start()
        try:
            while not self._done.wait(POLL_SECS):
                self._watch(deadline)
        except BaseException:
            self._stop()
            raise
        self._show_waves()
        if isinstance(self._error, LOST):
            raise LeaveNow(f"error: {self._error}", 1)
        if self._error is not None:
            raise self._error
        assert self.final is not None
        if self._timed_out and not self._options.keep_running:
            raise NotDone(
                f"topology {self._topology.id!r} was not done within the {timeout_secs:g} s of --timeout: stopped at "
                f"transaction {self.final.txid_committed}"
            )
        until = self._options.until
        if until is not None and self.reached and self.final.txid_committed < until:
            self._reporter.notice(f"the spout is drained: there was no transaction {until} (--until) to wait for")
        return self.final

    @property
    def reached(self) -> bool:
        """Whether the topology had come to its own end before anything stopped it: what follows only closes."""
        return self._reached.is_set()

    # ------------------------------------------------------------------------------------ the second thread

    def _work(self) -> None:
        options = self._options
        try:
            # What Spark's processes print would tear the line.
            on_output = self._reporter.notice if self._reporter.redraws else None
            with LocalCluster(
                options.state_dir, options.master, verbose=options.verbose, on_output=on_output
            ) as cluster:
                handle = cluster.submit(
                    self._topology,
                    self._config,
                    allow_changed_topology=options.allow_changed_topology,
                    on_wave=self._waves.put,
                )
                self._handle = handle
                try:
                    # `_stop` sets the event first and looks for the handle then, so one of both stops the topology.
                    if not self._stopping.is_set():
                        self._await_end(handle)
                    handle.kill()
                finally:
                    self.final = handle.snapshot()
                if handle.error is not None:
                    raise handle.error
        except BaseException as error:
            self._error = error
        finally:
            self._done.set()

    def _await_end(self, handle: TopologyHandle) -> None:
        try:
            if self._options.keep_running:
                handle.await_committed(sys.maxsize)
            else:
                handle.await_drained()
            self._reached.set()
        except TopologyStopped:
            if not self._stopping.is_set():
                raise

    # ------------------------------------------------------------------------------------ the main thread

    def _watch(self, deadline: float | None) -> None:
        self._show_waves()
        handle = self._handle
        if self._signals.received is not None and not self._announced:
            self._announced = True
            self._announce(handle)
            self._stop()
        if self.reached:
            return
        if deadline is not None and time.monotonic() >= deadline and not self._stopping.is_set():
            self._timed_out = True
            if handle is None and not spark_is_up():
                raise LeaveNow(f"error: Spark has not started within {self._options.timeout_secs:g} s", 1)
            self._stop()
        if handle is None:
            self._reporter.tick()
            return
        if self._signals.committed is None:
            self._signals.committed = lambda: handle.txid_committed
            self._reporter.begun(self._topology.id, handle.txid_begun)
        if isinstance(handle.error, LOST):
            raise LeaveNow(f"error: {handle.error}", 1)
        if self._options.until is not None and handle.txid_committed >= self._options.until:
            self._stop()
        if not self._stopping.is_set():
            self._reporter.look(handle.snapshot())

    def _announce(self, handle: TopologyHandle | None) -> None:
        if self.reached:
            what = "all is committed, and Spark is being stopped"
        elif handle is not None:
            what = f"stopping after the commit of transaction {handle.txid_committed + 1}"
        elif spark_is_up():
            what = "stopping as soon as the topology has started"
        else:
            raise LeaveNow("stopped before the topology began; run again to begin", self._signals.exit_code)
        self._reporter.notice(f"{what}; again: stop at once")

    def _stop(self) -> None:
        self._stopping.set()
        if self._handle is not None:
            with contextlib.suppress(TimeoutError):  # asks only: the second thread waits for it
                self._handle.kill(0)

    def _show_waves(self) -> None:
        while not self._waves.empty():
            self._reporter.wave(self._waves.get())


def spark_is_up() -> bool:
    """Return whether there is a SparkContext: before, no state has been opened that would have to be closed."""
    context = getattr(sys.modules.get("pyspark"), "SparkContext", None)
    return getattr(context, "_active_spark_context", None) is not None


def end_hung_spark() -> None:
    """Kill Spark's JVM if it hangs: it would not notice the end of this process, and keep the state directory."""
    context = getattr(sys.modules.get("pyspark"), "SparkContext", None)
    end_if_hung(getattr(context, "_gateway", None))
