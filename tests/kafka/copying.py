"""A driver on Spark that copies one topic into another, whose broker, driver and workers are killed meanwhile."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
from confluent_kafka import Consumer, TopicPartition

from tests.chaos.deaths import Appointment
from tests.chaos.processes import describe
from tests.cluster.driver_process import DriverProcess
from tests.kafka.output import is_settled
from tests.kits.components import eventually
from tests.services.kafka_broker import Kafka, in_transaction
from tests.topologies import kafka_copied
from tests.topologies.kafka_copied import BEGUN, COMMITTED, PARTITIONS, RECORDED

TARGET = kafka_copied.__name__
RECORDS = 80
"""Of each partition, before each kill: some transactions, so that there is always one to break into."""

SECS = 180.0


class Watcher:
    """A reader of committed records that looks all the time: `seen` is what it has seen of each partition, in order."""

    def __init__(self, servers: str, topic: str) -> None:
        self.seen: dict[int, list[bytes]] = {partition: [] for partition in range(PARTITIONS)}
        self._over = threading.Event()
        self._consumer = Consumer(
            {
                "bootstrap.servers": servers,
                "group.id": "watch",
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "reconnect.backoff.max.ms": 500,
                "log_level": 0,
            }
        )
        self._consumer.assign([TopicPartition(topic, partition, 0) for partition in self.seen])
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()

    @property
    def count(self) -> int:
        """How many records it has seen."""
        return sum(map(len, self.seen.values()))

    def close(self) -> None:
        """Look no more."""
        self._over.set()
        self._thread.join()
        self._consumer.close()

    def _watch(self) -> None:
        while not self._over.is_set():
            for one in self._consumer.consume(100, 0.1):
                if one.error() is None:
                    self.seen[one.partition() or 0].append(one.value() or b"")


class Copying:
    """The copy: `written` is what has to arrive. One thing is killed at a time; each call returns once it goes on."""

    def __init__(self, kafka: Kafka, folder: Path) -> None:
        self._kafka = kafka
        self._folder = folder
        self.source, self.target = kafka.topic(PARTITIONS), kafka.topic(PARTITIONS)
        self.ledger = f"stormline-ledger-{self.target}"
        self.output = folder / "output.txt"
        self.written: dict[int, list[bytes]] = {partition: [] for partition in range(PARTITIONS)}
        self.watcher = Watcher(kafka.servers, self.target)
        self._env = {
            "KAFKA_SERVERS": kafka.servers,
            "COPY_FROM": self.source,
            "COPY_TO": self.target,
            "COPY_FOLDER": str(folder),
        }
        self._drivers: list[DriverProcess] = []
        self._driver = self._start()

    def _start(self) -> DriverProcess:
        self._drivers.append(DriverProcess(TARGET, self._folder / "state", self.output, self._env, "--keep-running"))
        return self._drivers[-1]

    def _wait(self, condition: Callable[[], object]) -> None:
        """Wait for what only a driver that lives can bring about."""
        assert self._driver.wait_until(lambda: bool(condition()), SECS), self._told()

    def _told(self) -> str:
        """Return what may say why something did not happen."""
        hanging = [one for one in (self.source, self.target, self.ledger) if not is_settled(self._kafka, one)]
        return (
            f"driver: exit code {self._driver.exit_code}; {self.watcher.count} copied of {self.count}; an open "
            f"transaction in {hanging}; {self._processes()}; {self.output.read_text(errors='replace')[-4000:]}"
        )

    def _processes(self) -> list[str]:
        children = psutil.Process(self._driver.pid).children(recursive=True) if self._driver.exit_code is None else []
        return [describe(child) for child in children]

    @property
    def count(self) -> int:
        """How many records have to arrive."""
        return sum(map(len, self.written.values()))

    @contextmanager
    def more(self) -> Iterator[None]:
        """Write more into the source, and wait, after the block, until some of that has been copied.

        In each partition a transaction that commits, and one that aborts.
        """
        before = self.count
        producer = self._kafka.producer(f"{self.source}-writer")
        for partition, written in self.written.items():
            values = [b"%d-%d" % (partition, len(written) + i) for i in range(RECORDS)]
            in_transaction(producer, self.source, [b"aborted"] * 7, partition, commit=False)
            in_transaction(producer, self.source, values, partition)
            written += values
        eventually(lambda: is_settled(self._kafka, self.source), SECS)  # before a broker is killed: see `settle`
        yield
        self._wait(lambda: self.watcher.count > before)

    def settle(self) -> None:
        """Wait for the markers of what has committed: Kafka 4.4.0, killed before, may never write them."""
        eventually(lambda: is_settled(self._kafka, self.target) and is_settled(self._kafka, self.ledger), SECS)

    # ------------------------------------------------------------------------------------ what is killed

    def kill_driver(self, point: str) -> None:
        """Let the driver be killed at a point of a commit; another one takes over."""
        with self.more():
            self._meet(point, signal.SIGKILL)
            assert self._driver.end(SECS) == -signal.SIGKILL
            self._driver = self._start()

    def kill_broker(self, point: str, away_secs: float) -> None:
        """Kill the broker while the driver stands at a point of a commit; both go on."""
        with self.more():
            self._meet(BEGUN, signal.SIGSTOP)  # by then a new driver has aborted what the one before it left open
            self.settle()
            if point != BEGUN:
                appointment = Appointment(self._folder, point, signal.SIGSTOP)
                os.kill(self._driver.pid, signal.SIGCONT)
                self._wait_met(appointment)
            if point in (RECORDED, COMMITTED):
                self.settle()
            self._kafka.broker.kill()
            os.kill(self._driver.pid, signal.SIGCONT)
            time.sleep(away_secs)
            self._kafka.broker.start()

    def kill_worker(self, pick: random.Random, kind: str) -> None:
        """Kill one of Spark's Python workers, or the daemon that forks them, with all of them."""
        with self.more():
            found: list[psutil.Process] = []

            def look() -> bool:
                found[:] = self._workers()
                return bool(found)

            self._wait(look)
            time.sleep(pick.uniform(0, 0.2))
            with contextlib.suppress(psutil.NoSuchProcess):  # a worker may end by itself
                victim = pick.choice(found)
                daemon = victim.parent()
                assert daemon is not None
                # Those that a daemon leaves behind go on, and are nobody's children.
                for process in [daemon, *daemon.children()] if kind == "daemon" else [victim]:
                    process.kill()

    def _workers(self) -> list[psutil.Process]:
        """Return the driver's Python workers: what the daemons have forked that its JVM has started."""
        workers: list[psutil.Process] = []
        with contextlib.suppress(psutil.NoSuchProcess):
            for child in psutil.Process(self._driver.pid).children(recursive=True):
                with contextlib.suppress(psutil.NoSuchProcess):
                    if "pyspark.daemon" in child.cmdline():
                        workers += child.children()
        return workers

    def _meet(self, point: str, number: signal.Signals) -> None:
        """Have the driver get a signal at a point; return when it has got it."""
        self._wait_met(Appointment(self._folder, point, number))

    def _wait_met(self, appointment: Appointment) -> None:
        deadline = time.monotonic() + SECS
        while not appointment.kept_by():
            assert time.monotonic() < deadline, self._told()
            time.sleep(0.01)

    # ------------------------------------------------------------------------------------ the end

    def finish(self) -> None:
        """Wait until all is copied, and let the driver end in good order."""
        self._wait(lambda: self.watcher.count >= self.count)
        os.kill(self._driver.pid, signal.SIGTERM)
        self._driver.end(SECS)

    def close(self) -> None:
        """End all."""
        for driver in self._drivers:
            driver.close()
        self.watcher.close()


def schedule(pick: random.Random, drivers: int, brokers: int, workers: int) -> list[tuple[str, Any]]:
    """Return what to kill, one after another: each point of a commit in turn, in an order by chance."""
    points = kafka_copied.POINTS
    kills: list[tuple[str, Any]] = [("driver", points[i % len(points)]) for i in range(drivers)]
    kills += [("broker", points[i % len(points)]) for i in range(brokers)]
    kills += [("worker", "daemon" if i % 4 == 3 else "worker") for i in range(workers)]
    pick.shuffle(kills)
    return kills
