"""A Kafka broker of one's own, on loopback: `python -m examples.kafka_broker` serves until it is interrupted.

Its jars are fetched once by `make kafka`. What is written into it is in a temporary folder, and goes with it.
"""

from __future__ import annotations

import base64
import os
import shlex
import shutil
import socket
import subprocess
import tempfile
import time
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

VERSION = "4.4.0"
START_SECS = 90.0
PORT = 9092


def jars() -> Path | None:
    """Return the folder of Kafka's jars; None where they have not been fetched."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(cache, "stormline", f"kafka-{VERSION}")
    return folder if (folder / f"kafka_2.13-{VERSION}.jar").exists() else None


def free_port() -> int:
    """Return a port of 127.0.0.1 that nobody listens at now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class KafkaBroker:
    """One broker, which is its own controller, on a port of 127.0.0.1; it keeps its data when it is started again.

    Args:
        port: Where clients find it.
        controller_port: Where its controller listens.
    """

    def __init__(self, port: int, controller_port: int) -> None:
        folder = jars()
        if folder is None:
            raise FileNotFoundError("the jars of Kafka are not there: run 'make kafka' once, which fetches them")
        self.port = port
        self.controller_port = controller_port
        self.servers = f"127.0.0.1:{port}"
        self.folder = Path(tempfile.mkdtemp(prefix="stormline-kafka-"))
        self.log = self.folder / "broker.log"
        self.data = self.folder / "data"
        self.cluster_id = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        self.process_options: dict[str, Any] = {}
        """Of the broker's process, for `subprocess.Popen`."""
        self._classes = f"{folder}/*"
        self._process: subprocess.Popen[bytes] | None = None
        self._properties = self.folder / "server.properties"
        self._settings = _settings(port, controller_port, self.data)

    def configure(self, settings: Mapping[str, object]) -> None:
        """Change settings of the broker; they hold from its next start on."""
        self._settings |= settings

    def start(self) -> None:
        """Start the broker, and wait until it listens."""
        self.begin()
        self.wait()

    def begin(self) -> None:
        """Start the broker; the first time it gets its folder for data."""
        self._properties.write_text("".join(f"{key}={value}\n" for key, value in self._settings.items()))
        if not self.data.exists():
            # Not -t ID in two words: an id may begin with a hyphen.
            made = subprocess.run(
                self._java(
                    "kafka.tools.StorageTool", "format", f"--cluster-id={self.cluster_id}", "-c", self._properties
                ),
                capture_output=True,
                text=True,
                check=False,
            )
            if made.returncode:
                raise RuntimeError(f"Kafka's folder for data could not be made: {made.stdout}{made.stderr}")
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self._java("kafka.Kafka", self._properties),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # an interrupt is for us, who then end it
                **self.process_options,
            )

    def wait(self) -> None:
        """Wait until the broker listens: one of several needs most of the others for that."""
        deadline = time.monotonic() + START_SECS
        while not self._listens():
            if self._process is None or self._process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                raise RuntimeError(f"Kafka does not serve: {self.log.read_text(errors='replace')[-2000:]}")
            time.sleep(0.05)

    @property
    def runs(self) -> bool:
        """Whether the broker has been started, and has not ended since."""
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        """The process id of the broker, which runs."""
        assert self._process is not None
        return self._process.pid

    def kill(self) -> None:
        """End the broker as a crash would."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def stop(self) -> None:
        """End the broker for good, and remove its data."""
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _listens(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1):
                return True
        except OSError:
            return False

    def _java(self, main: str, *arguments: str | Path) -> list[str | Path]:
        home = os.environ.get("JAVA_HOME")
        java = Path(home, "bin", "java") if home else "java"
        options = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
        more = shlex.split(os.environ.get("KAFKA_OPTS", ""))  # as Kafka's own scripts take them
        return [java, *options, *more, "-cp", self._classes, main, *arguments]


def _settings(port: int, controller_port: int, data: Path) -> dict[str, object]:
    alone = ("offsets.topic", "transaction.state.log", "share.coordinator.state.topic")
    return {
        "process.roles": "broker,controller",
        "node.id": 1,
        "controller.quorum.voters": f"1@127.0.0.1:{controller_port}",
        "controller.listener.names": "CONTROLLER",
        "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "log.dirs": data,
        "auto.create.topics.enable": "false",
        "group.initial.rebalance.delay.ms": 0,
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": 500,
        "broker.session.timeout.ms": 2000,
        "broker.heartbeat.interval.ms": 300,
        **{f"{topic}.replication.factor": 1 for topic in alone},
        **{f"{topic}.min.isr": 1 for topic in alone},
        **{f"{topic}.num.partitions": 1 for topic in alone},
    }


def main() -> None:
    """Serve until interrupted."""
    broker = KafkaBroker(PORT, PORT + 1)
    try:
        broker.start()
        print(f"Kafka {VERSION} serves at {broker.servers}; Ctrl-C ends it, and what is in it goes", flush=True)
        while True:
            time.sleep(1)
    except KeyboardInterrupt:
        pass
    finally:
        broker.stop()


if __name__ == "__main__":
    main()
