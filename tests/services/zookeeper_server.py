"""A real ZooKeeper, as a process of its own, out of the jars that pyspark ships."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

import psutil
import pyspark

from tests.services.free_port import free_port
from tests.services.jvm import options

JARS = Path(pyspark.__file__).parent / "jars"
START_SECS = 60.0
STARTS_MAX = 3


class DidNotStart(RuntimeError):
    """A server ended before it served: its port may be taken."""


class ZooKeeperServer:
    """A server on a free port of 127.0.0.1 that keeps its data, and its port, when started again.

    Args:
        settings: lines of its configuration.
        ports: settings that each get a free port of their own, which `self.ports` tells.
    """

    MAIN = "org.apache.zookeeper.server.ZooKeeperServerMain"

    def __init__(
        self,
        data_dir: Path,
        settings: Sequence[str] = (),
        jvm_options: Sequence[str] = (),
        ports: Sequence[str] = (),
    ) -> None:
        self.data_dir = data_dir
        self.port = free_port()
        self.ports = {name: free_port() for name in ports}
        self._settings = settings
        self._jvm_options = jvm_options
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> ZooKeeperServer:
        for _ in range(STARTS_MAX - 1):
            with contextlib.suppress(DidNotStart):
                self.start()
                return self
            self.port = free_port()
            self.ports = {name: free_port() for name in self.ports}
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()

    @property
    def hosts(self) -> str:
        """Where clients find the server."""
        return f"127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        """The process id of the server, which runs."""
        assert self._process is not None, "the ZooKeeper server was not launched"
        return self._process.pid

    def start(self) -> None:
        """Start the server, and wait until it serves."""
        self.launch()
        self.wait_serving()

    def launch(self) -> None:
        """Start the server."""
        self.data_dir.mkdir(parents=True, exist_ok=True)
        config = self.data_dir / "zoo.cfg"
        config.write_text(
            f"dataDir={self.data_dir}\nclientPort={self.port}\nclientPortAddress=127.0.0.1\n"
            "tickTime=500\nminSessionTimeout=1000\nmaxSessionTimeout=60000\nadmin.enableServer=false\n"
            + "".join(f"{name}={port}\n" for name, port in self.ports.items())
            + "".join(f"{line}\n" for line in self._settings)
        )
        java = Path(os.environ["JAVA_HOME"], "bin", "java") if "JAVA_HOME" in os.environ else "java"
        self._process = self._launch(
            [
                java, "-Xmx256m", *options("zookeeper"), "-Dlog4j2.level=OFF",
                "-Dzookeeper.preAllocSize=64", "-Dzookeeper.jmx.log4j.disable=true",
                *self._jvm_options, "-cp", f"{JARS}/*",
                self.MAIN, config,
            ]
        )  # fmt: skip

    def wait_serving(self) -> None:
        """Wait until it serves."""
        deadline = time.monotonic() + START_SECS
        while self.mode() is None:
            assert self._process is not None, "the ZooKeeper server was not launched"
            if self._process.poll() is not None:
                self._process = None
                raise DidNotStart("the ZooKeeper server did not start")
            assert time.monotonic() < deadline, "the ZooKeeper server does not serve"
            time.sleep(0.02)

    def _launch(self, command: Sequence[str | Path]) -> subprocess.Popen[bytes]:
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def mode(self) -> str | None:
        """Return standalone, leader or follower; None while it does not serve."""
        # A server that listens but does not serve yet swallows a client's first request, which then waits in vain.
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1) as probe:
                probe.sendall(b"srvr")
                said = probe.recv(65536, socket.MSG_WAITALL).decode()
        except OSError:
            return None
        return next((line.removeprefix("Mode: ") for line in said.splitlines() if line.startswith("Mode: ")), None)

    def kill(self) -> None:
        """End the server as a power cut would."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def pause(self) -> None:
        """Let the server hang: connections stay open and nothing answers."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)
        process = psutil.Process(self._process.pid)
        while process.status() != psutil.STATUS_STOPPED:  # until then it may answer yet
            time.sleep(0.001)

    def resume(self) -> None:
        """Let a paused server go on."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)
