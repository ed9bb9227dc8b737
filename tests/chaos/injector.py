"""The injector: carries out faults, each on whatever stands for its target at that moment, and says what it did."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

import psutil

from tests.chaos import schedule
from tests.chaos.cluster import SESSION_TIMEOUT_MS, Cluster
from tests.chaos.deaths import Appointment
from tests.chaos.design import Design
from tests.chaos.evidence import owner_in_zookeeper
from tests.chaos.kafka_topics import entries_of, sums_of
from tests.chaos.processes import wait_until
from tests.chaos.schedule import KINDS, Fault, Kind
from tests.chaos.server_faults import DEATH_SECS, NoVictim, calls_of, calls_of_connections, kill, lose
from tests.chaos.supervisor import Life, Supervisor
from tests.chaos.watch import Watch

T = TypeVar("T")

VICTIM_SECS = 20.0
"""Time to wait for a victim: there may be no driver, or no executor, at the moment."""

ZOMBIE_SECS = 180.0

KEPT_SECS = 20.0
"""Time after which the claim of a session that has ended is gone for certain: who has one then is the owner."""

AHEAD_ROWS = 40

LATE_ZOMBIES = 0.6
"""How many of the zombies wake up only when their successor has committed what they were at."""

SUCCESSOR_SECS = 30.0


class Hanging(Exception):
    """A process did not end by itself that had to."""


class Injector:
    """Breaks one cluster and its drivers."""

    def __init__(self, cluster: Cluster, supervisor: Supervisor, watch: Watch) -> None:
        self._watch = watch
        self._cluster = cluster
        self._supervisor = supervisor
        self.design: Design | None = None
        self.poisoned: set[int] = set()
        self._appointing = threading.Lock()
        # Those of this class first: it may know more of what it breaks.
        self._calls: dict[str, Callable[[Fault], str]] = {
            **calls_of_connections("zookeeper", cluster.zookeeper_proxy),
            **calls_of("postgresql", cluster.postgresql, cluster.postgresql_proxy),
            **calls_of("redis", cluster.redis, cluster.redis_proxy),
            **{kind.name: self._of_kafka for kind in KINDS if kind.target == "kafka"},
        }
        for kind in KINDS:
            own = getattr(self, "_" + kind.name.replace("-", "_"), None)
            self._calls[kind.name] = own or self._calls[kind.name]

    def available(self) -> tuple[list[Kind], dict[str, str]]:
        """Return the kinds that can be had on this machine, and why others cannot."""
        skipped = {}
        if self._cluster.zookeeper.cannot_fill:
            skipped[schedule.ZOOKEEPER_DISK_FULL] = f"no tmpfs: {self._cluster.zookeeper.cannot_fill}"
        if not self._cluster.has_redis:
            skipped |= {kind.name: "Redis is not installed" for kind in KINDS if kind.target == "redis"}
        if self._cluster.kafka.cannot_start:
            skipped |= {kind.name: self._cluster.kafka.cannot_start for kind in KINDS if kind.target == "kafka"}
        return [kind for kind in KINDS if kind.name not in skipped], skipped

    def inject(self, fault: Fault) -> str:
        """Do it, hold it, undo it; return what happened."""
        try:
            return self._calls[fault.kind](fault)
        except NoVictim as none:
            return f"nothing done: {none}"

    # ------------------------------------------------------------------------------------ the driver

    def _life(self) -> Life:
        """Return the driver that drives."""
        life = wait_until(lambda: self._supervisor.driving, VICTIM_SECS)
        if not life:
            raise NoVictim("no driver")
        return life

    def _driver_kill(self, fault: Fault) -> str:
        if fault.variant.startswith("at "):
            return self._appoint(fault.variant[3:])
        life = self._life()
        life.signal(signal.SIGKILL, group=fault.variant != "driver")
        return f"driver {life.number}"

    def _appoint(self, point: str) -> str:
        pid = self._met(point, signal.SIGKILL)
        return f"process {pid} died {point}"

    def _met(self, point: str, number: signal.Signals) -> int:
        """Have the process that comes to a point first get a signal there; return which it is."""
        with self._appointing:
            appointment = Appointment(self._cluster.folder, point, number)
            try:
                pid: int = wait_until(appointment.kept_by, DEATH_SECS)
            finally:
                appointment.cancel()
        if not pid:
            raise NoVictim(f"nobody came {point}")
        return pid

    def _driver_stop(self, fault: Fault) -> str:
        """Let a driver sleep past its session, another one take over, and the first one wake up as a zombie."""
        group = fault.variant == "driver and its JVM"
        life = wait_until(lambda: self._owner(self._supervisor.driving), VICTIM_SECS)
        if not life:
            raise NoVictim("no driver owns the topology")
        life.frozen = True
        try:
            if fault.variant.startswith("at "):
                pid = self._met(fault.variant[3:], signal.SIGSTOP)
                if pid != life.process.pid:
                    os.kill(pid, signal.SIGCONT)
                    raise NoVictim("another driver came")
            else:
                life.signal(signal.SIGSTOP, group)
            time.sleep(SESSION_TIMEOUT_MS / 1000 + 1.0)
            self._supervisor.replace(life)
            if fault.pick < LATE_ZOMBIES:
                self._watch.wait_beyond(self._watch.txid + 1, SUCCESSOR_SECS)
            time.sleep(fault.hold_secs)  # the other one begins, or has committed by now
            life.replaced = time.monotonic()
            life.signal(signal.SIGCONT, group)
        finally:
            life.frozen = False
        woke_at = time.monotonic()

        def kept() -> bool:  # where ZooKeeper was down meanwhile, say, it was not replaced
            return time.monotonic() - woke_at > KEPT_SECS and self._owner(life) is life

        if not wait_until(lambda: life.ended or kept(), ZOMBIE_SECS):
            raise Hanging(f"driver {life.number}, a zombie, still lives {ZOMBIE_SECS:.0f} s after it woke up")
        if not life.ended:
            self._supervisor.restore(life)
            raise NoVictim(f"driver {life.number} slept, and kept the topology")
        return f"driver {life.number} slept, then ended with {life.end()['error'] or 'nothing'}"

    def _owner(self, life: Life | None) -> Life | None:
        """Return a driver if ZooKeeper holds it for the owner of the topology."""
        if life is None or self.design is None:
            return None
        owner = owner_in_zookeeper(f"127.0.0.1:{self._cluster.zookeeper.port}", self.design.topology)
        return life if life.process.pid == owner else None

    def _driver_rival(self, fault: Fault) -> str:
        """Submit the topology a second time while a driver has it: that has to be refused."""
        first = self._life()
        rival: Life | None = wait_until(self._supervisor.rival, 2 * VICTIM_SECS)
        if not rival:
            raise NoVictim("no driver waits")
        wait_until(lambda: rival.ended or self._supervisor.driving is rival, ZOMBIE_SECS)
        if rival.ended and rival.end()["error"] == "AlreadyRunning":
            return f"driver {rival.number} was refused, driver {first.number} had it"
        if self._supervisor.driving is rival:
            raise NoVictim(f"driver {rival.number} took over from driver {first.number}, which had ended")
        if rival.ended:
            raise NoVictim(f"driver {rival.number} ended with {rival.end()['error']}")
        raise Hanging(f"driver {rival.number}, a second one, was neither refused nor has it taken over")

    def _clock_jump(self, fault: Fault) -> str:
        life = self._life()
        life.shift_clock(fault.variant)
        if not wait_until(lambda: life.jumped_secs() == int(fault.variant), DEATH_SECS):
            raise NoVictim(f"driver {life.number} has not heard of it")
        time.sleep(fault.hold_secs)
        life.shift_clock("+0")
        return f"of driver {life.number}, by {fault.variant} s and back"

    # ------------------------------------------------------------------------------------ Spark

    def _pick(self, fault: Fault, look: Callable[[], Sequence[T]], what: str) -> T:
        found = wait_until(look, VICTIM_SECS)
        if not found:
            raise NoVictim(f"no {what}")
        return found[int(fault.pick * len(found))]

    def _application(self) -> str:
        life = self._supervisor.driving
        return life.application if life is not None else ""

    def _python_worker_kill(self, fault: Fault) -> str:
        if fault.variant.startswith("at "):
            return self._appoint(fault.variant[3:])
        which = 0 if fault.variant == "daemon" else 1
        spark = self._cluster.spark

        def look() -> list[psutil.Process]:
            application = self._application()
            return spark.python_workers_of(application)[which] if application else []

        return self._kill(self._pick(fault, look, f"Python {fault.variant}"))

    def _python_worker_stop(self, fault: Fault) -> str:
        """Freeze a worker where it commits; the commit times out, is replayed elsewhere, and the worker wakes up."""
        pid = self._met(fault.variant[3:], signal.SIGSTOP)
        time.sleep(fault.hold_secs)
        with contextlib.suppress(ProcessLookupError):  # Spark kills the worker of a task that it has cancelled
            os.kill(pid, signal.SIGCONT)
            return f"process {pid} slept {fault.variant[3:]} for {fault.hold_secs} s, and woke up"
        return f"process {pid} slept {fault.variant[3:]}, and was killed by Spark"

    def _executors(self) -> list[psutil.Process]:
        application = self._application()
        return self._cluster.spark.executors_of(application) if application else []

    def _executor_pause(self, fault: Fault) -> str:
        """Let an executor sleep, perhaps past the time-out of what it does, and wake up as a zombie."""
        process = self._pick(fault, self._executors, "executor")
        with contextlib.suppress(psutil.NoSuchProcess):
            process.suspend()
            time.sleep(fault.hold_secs)
            process.resume()
        return f"process {process.pid} for {fault.hold_secs} s"

    def _executor_kill(self, fault: Fault) -> str:
        return self._kill(self._pick(fault, self._executors, "executor"))

    def _kill(self, process: psutil.Process) -> str:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
        return f"process {process.pid}"

    def _spark_worker_kill(self, fault: Fault) -> str:
        spark = self._cluster.spark
        host = spark.hosts[int(fault.pick * len(spark.hosts))]
        if fault.variant == "worker":
            spark.kill_worker_alone(host)
        else:
            spark.kill_worker(host)
        time.sleep(fault.hold_secs)
        spark.restart_worker(host)
        return f"worker on {host}"

    def _cancelled_more(self, life: Life, times: int) -> bool:
        return len(life.cancelled()) > times

    def _jobs_cancelled(self, fault: Fault) -> str:
        life = self._life()
        before = life.cancelled()
        for time_ in range(1 if fault.variant == "once" else 3):
            life.signal(signal.SIGUSR1, group=False)
            wait_until(partial(self._cancelled_more, life, len(before) + time_), DEATH_SECS)
        jobs = life.cancelled()[len(before) :]
        if not any(jobs):
            raise NoVictim(f"driver {life.number} ran no job")
        return f"{jobs} of driver {life.number}"

    # ------------------------------------------------------------------------------------ ZooKeeper

    def _zookeeper_kill(self, fault: Fault) -> str:
        self._cluster.zookeeper.kill()
        time.sleep(fault.hold_secs)
        self._cluster.zookeeper.start()
        return f"down for {fault.hold_secs} s"

    def _zookeeper_pause(self, fault: Fault) -> str:
        self._cluster.zookeeper.pause()
        time.sleep(fault.hold_secs)
        self._cluster.zookeeper.resume()
        return f"for {fault.hold_secs} s"

    def _zookeeper_disk_full(self, fault: Fault) -> str:
        zookeeper = self._cluster.zookeeper
        zookeeper.fill_disk()
        try:
            ended = wait_until(lambda: zookeeper.process.poll() is not None, fault.hold_secs + 3.0)
        finally:
            zookeeper.free_disk()
        zookeeper.restart()
        if not ended:
            raise NoVictim("the server had not ended, and was ended")
        return "the server ended, and was started again"

    # ------------------------------------------------------------------------------------ PostgreSQL

    def _postgresql_kill(self, fault: Fault) -> str:
        if fault.variant == "backend":
            return "backend, " + self._kill(self._pick(fault, self._cluster.postgresql.connections, "backend"))
        return kill(self._cluster.postgresql, fault)

    # ------------------------------------------------------------------------------------ what is prepared

    def _prepared_driver_kill(self, fault: Fault) -> str:
        return self._appoint(fault.variant[3:])

    def _prepared_server_kill(self, fault: Fault) -> str:
        """Kill the server while a process is between two steps of two-phase commit."""
        pid = self._met(fault.variant[3:], signal.SIGSTOP)
        try:
            self._cluster.postgresql.kill()
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
        time.sleep(fault.hold_secs)
        self._cluster.postgresql.start()
        return f"down for {fault.hold_secs} s, {fault.variant[3:]} of process {pid}"

    def _prepared_lost(self, fault: Fault) -> str:
        step, _, what = fault.variant.partition(" ")
        of = {"prepare": b"PREPARE TRANSACTION", "commit": b"COMMIT PREPARED"}[step]
        return f"{step}: {lose(self._cluster.postgresql_proxy, replace(fault, variant=what), of)}"

    def _prepared_late(self, fault: Fault) -> str:
        """Freeze a worker right before or after it prepares: when it wakes up its batch may have been replayed."""
        return self._python_worker_stop(fault)

    # ------------------------------------------------------------------------------------ Kafka

    def _of_kafka(self, fault: Fault) -> str:
        kafka = self._cluster.kafka
        return calls_of("kafka", kafka, kafka.proxy)[fault.kind](fault)

    def _kafka_kill(self, fault: Fault) -> str:
        """Kill the broker where nobody waits for the markers of a commit: who commits is stopped meanwhile."""
        kafka = self._cluster.kafka
        assert self.design is not None
        topology = self.design.topology
        with kafka.quiet:
            if not fault.variant:
                return kill(kafka, fault)
            pid = self._met(fault.variant[3:], signal.SIGSTOP)
            try:
                kafka.settle(entries_of(topology), sums_of(topology), f"stormline-ledger-{topology}")
                kafka.kill()
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)
            time.sleep(fault.hold_secs)
            kafka.start()
        return f"down for {fault.hold_secs} s, {fault.variant[3:]} of process {pid}"

    # ------------------------------------------------------------------------------------ the source

    def _partition(self, fault: Fault) -> int:
        assert self.design is not None
        return int(fault.pick * self.design.partitions)

    def _number_ahead(self, fault: Fault) -> int:
        """Return a number that the source is about to hold."""
        assert self.design is not None
        return (self._cluster.source.source.rows + AHEAD_ROWS) * self.design.partitions + self._partition(fault)

    def _poison_tuple(self, fault: Fault) -> str:
        number = self._number_ahead(fault)
        self.poisoned.add(number)
        self._cluster.source.change(lambda source: {"poison": [*source.poison, number]})
        died = wait_until(lambda: number not in self._cluster.source.source.poison, 2 * VICTIM_SECS)
        self.heal(number)
        if not died:
            raise NoVictim(f"number {number} was not reached")
        return f"number {number}: the topology stopped, and was mended"

    def heal(self, number: int) -> None:
        """Take poison away, as an operator does who has read why the topology stopped."""
        self._cluster.source.change(lambda source: {"poison": [n for n in source.poison if n != number]})

    def _failing_tuple(self, fault: Fault) -> str:
        number = self._number_ahead(fault)
        self._cluster.source.change(lambda source: {"failing": [*source.failing, number]})
        reached = wait_until(lambda: self._cluster.source.source.rows * self._partitions() > number, DEATH_SECS)
        time.sleep(fault.hold_secs)
        self._cluster.source.change(lambda source: {"failing": [n for n in source.failing if n != number]})
        if not reached:
            raise NoVictim(f"number {number} was not reached")
        return f"number {number}, for {fault.hold_secs} s"

    def _partitions(self) -> int:
        assert self.design is not None
        return self.design.partitions

    def _partition_gone(self, fault: Fault) -> str:
        partition = self._partition(fault)
        self._cluster.source.change(lambda source: {"gone": [*source.gone, partition]})
        time.sleep(fault.hold_secs)
        self._cluster.source.change(lambda source: {"gone": [p for p in source.gone if p != partition]})
        return f"partition {partition}, for {fault.hold_secs} s"
