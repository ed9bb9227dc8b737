"""The Kafka that is broken: one broker, which drivers and executors find behind a proxy alone."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Mapping

from examples.kafka_broker import KafkaBroker, jars
from tests.chaos.processes import die_with_parent, wait_until
from tests.kafka.output import is_settled
from tests.services.free_port import free_port
from tests.services.kafka_broker import Kafka
from tests.services.kafka_proxy import KafkaProtocol
from tests.services.proxy import Proxy

SETTLED_SECS = 2.0
"""Less than a session of ZooKeeper's: who has been stopped for it shall go on."""

STARTS_MAX = 3


class ChaosKafka:
    """A broker, made by `create`. The harness finds it at `servers`, all others at `proxied`.

    `quiet`: who writes as the harness holds it for each transaction; so that a broker is killed in none of those.
    `starts`: how often it has come back.
    """

    def __init__(self, env: Mapping[str, str]) -> None:
        self._env = env
        self.cannot_start = "" if jars() is not None else "the jars of Kafka are not there: make kafka"
        self.quiet = threading.Lock()
        self.starts = 0
        self.created = False

    def create(self) -> None:
        """Make it, with the proxy before it, and start it."""
        for left in reversed(range(STARTS_MAX)):
            self._broker = broker = KafkaBroker(free_port(), free_port())
            behind = free_port()
            self.proxy = Proxy(behind, KafkaProtocol())
            broker.process_options |= {"preexec_fn": die_with_parent, "env": {**os.environ, **self._env}}
            here = f"PLAINTEXT://127.0.0.1:{broker.port}"
            broker.configure(
                {
                    "listeners": f"{here},PROXIED://127.0.0.1:{behind},CONTROLLER://127.0.0.1:{broker.controller_port}",
                    "advertised.listeners": f"{here},PROXIED://127.0.0.1:{self.proxy.port}",
                    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,PROXIED:PLAINTEXT,CONTROLLER:PLAINTEXT",
                    "inter.broker.listener.name": "PLAINTEXT",
                }
            )
            try:
                broker.start()
                break
            except RuntimeError:  # another process may have taken a port meanwhile
                broker.stop()
                self.proxy.close()
                if not left:
                    raise
        self.client = Kafka(broker, "")
        self.created = True

    @property
    def servers(self) -> str:
        """Where the harness finds it."""
        return self._broker.servers

    @property
    def proxied(self) -> str:
        """Where what is broken finds it."""
        return f"127.0.0.1:{self.proxy.port}"

    @property
    def pid(self) -> int:
        """Its process."""
        return self._broker.pid

    def settle(self, *topics: str) -> None:
        """Wait, while nobody commits, until the markers of what has committed are there, as far as nothing is open.

        Kafka 4.4.0, killed before, may come back without them, and hold the transaction to be complete: its partitions
        then hold it open for ever.
        """
        wait_until(lambda: all(map(self.is_settled, topics)), SETTLED_SECS)

    def is_settled(self, topic: str) -> bool:
        """Return whether no transaction is open there."""
        return is_settled(self.client, topic)

    def kill(self) -> None:
        """End it as a crash would."""
        self._broker.kill()

    def start(self) -> None:
        """Start it again, with its data."""
        self._broker.start()
        self.starts += 1

    def pause(self) -> None:
        """Let it answer nothing."""
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGCONT)

    def stop(self) -> None:
        """End it for good."""
        if self.created:
            self.client.close()
            self.proxy.close()
            self._broker.stop()
