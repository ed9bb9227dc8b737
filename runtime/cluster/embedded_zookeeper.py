"""EmbeddedZooKeeper: a real ZooKeeper server inside the Spark driver's JVM, for runs without one of their own."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from py4j.java_gateway import JavaGateway  # type: ignore[import-untyped]
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]

from stormline.runtime.cluster.state_dir import check_state_room, in_use, keep_to_user, used_by
from stormline.runtime.cluster.state_files import FILE, StateFiles, zxid
from stormline.runtime.errors import StateCorrupt, StateDirGone
from stormline.runtime.zookeeper.session_keeper import SessionKeeper

TICK_MS = 500
SESSION_TIMEOUT_MS_MIN = 1_000
SESSION_TIMEOUT_MS_MAX = 60_000
PREALLOCATED_KB = 64
LOG_WRITES_MAX = 20_000  # writes in one transaction log, give or take a half
SNAPSHOTS_KEPT = 3
PURGE_SECS = 60.0
LOCK_WAIT_SECS = 10.0
LOOK_SECS = 1.0  # between two looks whether the files are still there

_running: set[EmbeddedZooKeeper] = set()  # keeps the JVM's objects, and so the lock, until stop()


class EmbeddedZooKeeper:
    """A server on 127.0.0.1 that keeps its data in `data_dir`; clients reach it at `hosts`.

    What it has acknowledged is on disk: another one on the same directory finds it again, however this one
    ended. Two never serve one directory at a time: the lock belongs to the JVM, as the data does, and ends with it.

    Args:
        spark: a SparkContext, or its py4j gateway.
        data_dir: where the data is kept; made if missing.
        lock_wait_secs: how long the JVM of a killed driver may take to end.

    Raises:
        StateDirInUse: another process serves `data_dir`, or it is another user's.
        StateCorrupt: what is there cannot be read.
    """

    def __init__(self, spark: Any, data_dir: Path, *, lock_wait_secs: float = LOCK_WAIT_SECS) -> None:
        gateway = spark if isinstance(spark, JavaGateway) else spark._gateway
        jvm = gateway.jvm
        self.data_dir = Path(data_dir).resolve()
        self._files = self.data_dir / "version-2"
        self._stopped = threading.Event()
        _quiet(jvm)
        # Asked before the lock file is opened: closing it would free the lock that this JVM holds.
        if any(self.data_dir == other.data_dir for other in _running):
            raise in_use(self.data_dir, "this process")
        keep_to_user(self.data_dir)
        self._lock_file = jvm.java.io.RandomAccessFile(str(self.data_dir / "lock"), "rw")
        try:
            self._lock(lock_wait_secs)
            self._start(jvm)
            self._keeper = SessionKeeper(gateway, self._server)
        except BaseException:
            self._lock_file.close()
            raise
        self._purger = threading.Thread(target=self._purge_forever, name="stormline-zookeeper-purge", daemon=True)
        self._purger.start()
        self._state_files = StateFiles(self.data_dir, self._files)
        self._listeners: list[Callable[[StateDirGone], object]] = []
        threading.Thread(target=self._look_forever, name="stormline-zookeeper-files", daemon=True).start()
        _running.add(self)

    @property
    def hosts(self) -> str:
        """Where clients find the server."""
        return f"127.0.0.1:{self.port}"

    def keep_alive(self, session_id: int, timeout_ms: int) -> Callable[[], None]:
        """Let a session live as long as this JVM does, whatever its client does, until what this returns is called."""
        return self._keeper.keep(session_id, timeout_ms)

    def files_gone(self) -> StateDirGone | None:
        """Return the error for files that were taken away: what was acknowledged last may be on no disk."""
        return self._state_files.gone()

    def when_files_gone(self, listener: Callable[[StateDirGone], object]) -> None:
        """Call `listener`, from any thread, within seconds after the files were taken away."""
        self._listeners.append(listener)

    def stop(self) -> None:
        """Stop serving and free the directory. May be called again, and after the JVM has ended."""
        if self._stopped.is_set():
            return
        self._stopped.set()
        _running.discard(self)
        self._purger.join()
        with contextlib.suppress(Exception):  # the JVM may have gone, and all this with it
            self._keeper.stop()
            self._factory.shutdown()
            self._server.getTxnLogFactory().close()
            self._lock_file.close()

    def purge(self) -> None:
        """Delete what is not needed to come back: all but the last snapshots, and what came after the oldest."""
        self._sync()
        kept = {
            Path(file.getPath()).name for file in self._server.getTxnLogFactory().findNValidSnapshots(SNAPSHOTS_KEPT)
        }
        for name in superfluous((path.name for path in self._files.iterdir()), kept):
            (self._files / name).unlink(missing_ok=True)

    def _lock(self, wait_secs: float) -> None:
        deadline = time.monotonic() + wait_secs
        while self._lock_file.getChannel().tryLock() is None:
            if time.monotonic() > deadline:
                raise in_use(self.data_dir, used_by(self.data_dir) or "another process", wait_secs)
            time.sleep(0.1)

    def _start(self, jvm: Any) -> None:
        persistence = jvm.org.apache.zookeeper.server.persistence
        persistence.FileTxnLog.setPreallocSize(PREALLOCATED_KB * 1024)
        jvm.org.apache.zookeeper.server.SyncRequestProcessor.setSnapCount(LOG_WRITES_MAX)
        directory = jvm.java.io.File(str(self.data_dir))
        self._server = jvm.org.apache.zookeeper.server.ZooKeeperServer(directory, directory, TICK_MS)
        self._server.setMinSessionTimeout(SESSION_TIMEOUT_MS_MIN)
        self._server.setMaxSessionTimeout(SESSION_TIMEOUT_MS_MAX)
        # The thread that waits for requests also reads them: handing them on would take as long as they do.
        jvm.java.lang.System.setProperty("zookeeper.nio.numWorkerThreads", "0")
        self._factory = jvm.org.apache.zookeeper.server.NIOServerCnxnFactory()
        self._factory.configure(jvm.java.net.InetSocketAddress("127.0.0.1", 0), 0, -1, False)
        with contextlib.ExitStack() as undo:
            undo.callback(self._factory.shutdown)  # before the lock is freed, and another server may come
            try:
                self._factory.startup(self._server)
            except Py4JJavaError as error:
                check_state_room(self.data_dir)  # a full disk is no reason to put a copy in its place
                raise StateCorrupt(
                    f"ZooKeeper cannot read the state directory {self.data_dir}: {error.java_exception.getMessage()}; "
                    "nothing was changed. Put a copy of it in its place; to begin anew remove it, and what topologies "
                    "have stored elsewhere"
                ) from error
            self._sync()
            self.port = int(self._factory.getLocalPort())
            undo.pop_all()

    def _sync(self) -> None:
        """Have all snapshots on disk: ZooKeeper leaves that to the system, and comes back from none without one."""
        for path in [*self._files.glob("snapshot.*"), self._files]:
            descriptor = os.open(path, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)

    def _look_forever(self) -> None:
        while not self._stopped.wait(LOOK_SECS):
            gone = self._state_files.look()
            if gone is not None:
                for listener in list(self._listeners):
                    listener(gone)

    def _purge_forever(self) -> None:
        while not self._stopped.wait(PURGE_SECS):
            with contextlib.suppress(Exception):  # next time, or after the next start
                self.purge()


def superfluous(names: Iterable[str], snapshots_kept: Iterable[str]) -> list[str]:
    """Return which of ZooKeeper's files may go: the log that was written to when a kept snapshot began stays."""
    kept = set(snapshots_kept)
    if not kept:
        return []
    oldest = min(zxid(name) for name in kept)
    files = [name for name in names if FILE.fullmatch(name)]
    logs = [name for name in files if name.startswith("log.")]
    first_log = max((zxid(name) for name in logs if zxid(name) <= oldest), default=0)
    old_logs = [name for name in logs if zxid(name) < first_log]
    return [*old_logs, *(n for n in files if n.startswith("snapshot.") and n not in kept and zxid(n) < oldest)]


def _quiet(jvm: Any) -> None:
    """Keep ZooKeeper's own log, which reports each client that goes away, out of the user's."""
    log4j = jvm.org.apache.logging.log4j
    with contextlib.suppress(TypeError):  # a Spark that logs by other means
        log4j.core.config.Configurator.setLevel("org.apache.zookeeper", log4j.Level.OFF)
