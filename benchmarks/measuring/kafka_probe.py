"""Probe: records sent at a steady rate into one topic, and how long each takes to be read, committed, in another."""

from __future__ import annotations

import multiprocessing
import threading
import time
from dataclasses import dataclass
from typing import Any

RATE = 10_000
RECORD_BYTES = 1_200
TICK_SECS = 0.005
FIRST_SECS = 0.1
"""How often one is sent before the first has come back: only then the rate, and its warm-up, begins."""
NOBODYS = 9_999_999_999
"""Their number."""
MISSING_SECS_MAX = 60.0
"""How long after the last was sent all must have come."""
PREFIX = 1
"""Characters that the transformation sets before a value."""
STAMP, NUMBER = 20, 10
"""Digits of a value's time in ns, and of its number; the rest fills it."""


@dataclass(frozen=True)
class Plan:
    """From where to where, and for how long; what is sent in the first `warm_up_secs` is not measured."""

    servers: str
    source: str
    target: str
    partitions: int
    warm_up_secs: float
    secs: float


def value_of(number: int, sent_ns: int) -> bytes:
    """Return the value of a record."""
    return f"{sent_ns:0{STAMP}d}{number:0{NUMBER}d}".encode().ljust(RECORD_BYTES, b".")


def read_of(value: bytes) -> tuple[int, int]:
    """Return the number of a record, and when it was sent, of its value as it came back."""
    at = PREFIX + STAMP
    return int(value[at : at + NUMBER]), int(value[PREFIX:at])


def latencies_ms(plan: Plan) -> list[float]:
    """Send and receive, in a process of its own; return the milliseconds of each record that is measured.

    Raises:
        RuntimeError: it failed, or records have not come: it says how many.
    """
    spawn = multiprocessing.get_context("spawn")
    mine, its = spawn.Pipe(duplex=False)
    process = spawn.Process(target=_probe, args=(plan, its), daemon=True)
    process.start()
    its.close()
    try:
        outcome = mine.recv()
    except EOFError:
        outcome = "the probe has ended"
    finally:
        process.kill()
        process.join()
    if isinstance(outcome, str):
        raise RuntimeError(outcome)
    found: list[float] = outcome
    return found


def _probe(plan: Plan, outcome: Any) -> None:
    try:
        outcome.send(_Probe(plan).run())
    except Exception as error:
        outcome.send(f"{type(error).__name__}: {error}")


class _Probe:
    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._first = int(plan.warm_up_secs * RATE)
        self._last = self._first + int(plan.secs * RATE)
        self._comes_back = threading.Event()

    def run(self) -> list[float]:
        """Send and receive; return the milliseconds."""
        from confluent_kafka import OFFSET_END, Consumer, TopicPartition

        plan = self._plan
        consumer = Consumer(
            {
                "bootstrap.servers": plan.servers,
                "group.id": "probe",
                "isolation.level": "read_committed",
                "fetch.wait.max.ms": 20,
                "enable.auto.commit": False,
                "auto.offset.reset": "latest",
            }
        )
        consumer.assign([TopicPartition(plan.target, number, OFFSET_END) for number in range(plan.partitions)])
        consumer.consume(1, 1.0)  # lets it find the ends; what comes now was sent before
        begun_ns = time.time_ns()
        sender = threading.Thread(target=self._send, daemon=True)
        sender.start()
        found: dict[int, float] = {}
        deadline = time.monotonic() + plan.warm_up_secs + plan.secs + 2 * MISSING_SECS_MAX
        while len(found) < self._last - self._first:
            if time.monotonic() > deadline:
                raise RuntimeError(f"{self._last - self._first - len(found)} records have not come")
            messages = consumer.consume(1_000, 0.05)
            now = time.time_ns()
            for message in messages:
                value = message.value()
                if message.error() is None and value is not None:
                    number, sent_ns = read_of(value)
                    if sent_ns >= begun_ns:
                        self._comes_back.set()
                    if sent_ns >= begun_ns and self._first <= number < self._last:
                        found.setdefault(number, (now - sent_ns) / 1e6)
        consumer.close()
        return list(found.values())

    def _send(self) -> None:
        from confluent_kafka import Producer

        producer = Producer({"bootstrap.servers": self._plan.servers, "linger.ms": 1})
        first = 0
        while not self._comes_back.wait(FIRST_SECS):
            producer.produce(
                self._plan.source, value_of(NOBODYS, time.time_ns()), partition=first % self._plan.partitions
            )
            producer.poll(0)
            first += 1
        begun = time.monotonic()
        number = 0
        while number < self._last:
            due = min(self._last, int((time.monotonic() - begun) * RATE))
            while number < due:
                partition = number % self._plan.partitions
                producer.produce(self._plan.source, value_of(number, time.time_ns()), partition=partition)
                number += 1
            producer.poll(0)
            time.sleep(TICK_SECS)
        producer.flush(MISSING_SECS_MAX)
