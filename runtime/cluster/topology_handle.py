"""TopologyHandle: what `submit_topology` returns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any

from stormline.runtime.coordination.loop_watch import watch_loop
from stormline.runtime.coordination.progress import Snapshot
from stormline.runtime.coordination.topology_runner import TopologyRunner
from stormline.runtime.errors import TopologyStopped, WaitsForItself
from stormline.runtime.world.world import World
from stormline.topology.storm_names import storm_names


@storm_names()
class TopologyHandle:
    """A running topology: what `submit_topology` returns.

    Usable from any thread; as a context manager it kills the topology at its end. `name` is the one that it was
    submitted under, `txid_begun` the first transaction that it works on.

    Args:
        world (World): the clock and the threads of this process.
        name (str): name that it was submitted under.
        runner (TopologyRunner): what runs it.
        zookeeper_hosts (str): where its state is, as "host:port,…".
    """

    def __init__(self, world: World, name: str, runner: TopologyRunner, zookeeper_hosts: str) -> None:
        self.name = name
        self._world = world
        self.zookeeper_hosts = zookeeper_hosts
        self._runner = runner
        self.txid_begun = runner.progress.txid_committed + 1
        self._thread = world.start_thread(f"stormline-{name}", runner.run)
        watch_loop(world, name, runner, self._thread)

    def __enter__(self) -> TopologyHandle:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.kill()

    @property
    def topology_id(self) -> str:
        """Id that keys the topology's durable state."""
        return self._runner.progress.topology

    @property
    def txid_committed(self) -> int:
        """The last transaction that is durably committed; 0 before the first."""
        return self._runner.progress.txid_committed

    @property
    def error(self) -> BaseException | None:
        """Why the topology stopped by itself; None while it runs, and after `kill`."""
        return self._runner.error

    @property
    def running(self) -> bool:
        """Whether the topology has not ended."""
        return not self._runner.ended.is_set()

    def snapshot(self) -> Snapshot:
        """Return the progress so far: counts and averages since the start."""
        return self._runner.progress.snapshot()

    def metrics(self) -> Mapping[str, Mapping[str, Any]]:
        """Return what metrics of user code have counted since the start, once for each transaction committed.

        By component and name: of a counter the count; of a meter `count` and `mean_rate`; of a histogram or timer
        `count`, `mean`, `min`, `max`, `p50`, `p95`, `p99`; of a gauge the last value.
        """
        return self.snapshot().metrics

    def await_committed(self, txid: int, timeout_secs: float | None = None) -> int:
        """Wait until a transaction is committed.

        Args:
            txid (int): id of the transaction.
            timeout_secs (float | None): seconds to wait at most; None: for ever.

        Returns:
            the last committed txid.

        Raises:
            TimeoutError: it is not committed yet; the topology goes on.
            TopologyStopped: the topology was killed before.
            StormlineError: the topology stopped by itself; this is its `error`.
            WaitsForItself: called by `on_wave`, in the topology's own thread.
        """
        self._await(lambda: self.txid_committed >= txid, timeout_secs, f"transaction {txid} to be committed")
        return self.txid_committed

    def await_drained(self, timeout_secs: float | None = None) -> int:
        """Wait until all that the spout now holds is committed.

        Args:
            timeout_secs (float | None): seconds to wait at most; None: for ever.

        Returns:
            the last committed txid.

        Raises:
            TimeoutError: the spout is not drained yet; the topology goes on.
            TopologyStopped: the topology was killed before.
            StormlineError: the topology stopped by itself; this is its `error`.
            WaitsForItself: called by `on_wave`, in the topology's own thread.
        """
        looks = self._runner.idle_looks
        self._await(lambda: self._runner.idle_looks >= looks + 2, timeout_secs, "the spout to be drained")
        return self.txid_committed

    def join(self, timeout_secs: float | None = None) -> int:
        """Wait until the topology has ended.

        Ctrl-C ends the waiting, not the topology: the end of its `with` block, or of its cluster's, stops it.

        Args:
            timeout_secs (float | None): seconds to wait at most; None: for ever.

        Returns:
            the last committed txid.

        Raises:
            TimeoutError: it has not ended; it goes on.
            StormlineError: it has stopped by itself; this is its `error`.
            WaitsForItself: called by `on_wave`, in the topology's own thread.
        """
        self._check_other_thread("its end")
        if not self._runner.ended.wait(timeout_secs):
            raise TimeoutError(
                f"topology {self.name!r}: waited {timeout_secs} s for its end; committed is {self.txid_committed}"
            )
        if self.error is not None:
            raise self.error
        return self.txid_committed

    def _check_other_thread(self, what: str) -> None:
        if self._world.current_thread() is self._thread:
            raise WaitsForItself(
                f"topology {self.name!r}: on_wave waits for {what}, in the topology's own thread, which would wait for "
                "ever; look at the snapshot that on_wave is given, and wait in another thread"
            )

    def _await(self, condition: Callable[[], bool], timeout_secs: float | None, what: str) -> None:
        self._check_other_thread(what)
        deadline = None if timeout_secs is None else self._world.monotonic() + timeout_secs
        with self._runner.changed:
            while not condition():
                if not self.running:
                    if self.error is not None:
                        raise self.error
                    raise TopologyStopped(f"topology {self.name!r} was stopped while waiting for {what}")
                left = None if deadline is None else deadline - self._world.monotonic()
                if left is not None and left <= 0:
                    raise TimeoutError(
                        f"topology {self.name!r}: waited {timeout_secs} s for {what}; "
                        f"committed is {self.txid_committed}"
                    )
                self._runner.changed.wait(left)

    def kill(self, timeout_secs: float | None = None) -> None:
        """Stop after the commit that runs now, and wait until it has stopped. The topology can be submitted again.

        Called in a thread of the topology's own, by `on_wave` or by its spout or bolts, it only asks to stop.

        Args:
            timeout_secs (float | None): seconds to wait at most; None: for ever.

        Raises:
            TimeoutError: it has not stopped within `timeout_secs`; it still will.
        """
        self._runner.stop()
        here = self._world.current_thread()
        if here is self._thread or self._runner.calls_in(here):
            return
        if not self._runner.ended.wait(timeout_secs):
            raise TimeoutError(f"topology {self.name!r} has not stopped within {timeout_secs} s")
