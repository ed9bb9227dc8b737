"""The schedule: which topologies run, and what happens to them when. A pure function of its arguments."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tests.chaos import deaths
from tests.chaos.design import (
    BY_TWO_PHASES,
    FROM_FILE,
    FROM_KAFKA,
    IDEMPOTENT,
    INTO_KAFKA,
    INTO_POSTGRESQL,
    INTO_TWO_STORES,
    ON_DRIVER,
    ON_EXECUTORS,
    OPAQUE,
    Design,
)

FAULTS_A_ROUND = 40
FEW_FAULTS = 20
"""Fewer than these are had in two rounds, without Kafka."""

OVERLAP = 0.4
"""How many of the faults begin before the one before them is overcome."""


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of fault: its variants, how long it lasts, and how often it comes, beside others."""

    name: str
    target: str
    variants: tuple[str, ...] = ("",)
    hold_secs: tuple[float, float] = (0.0, 0.0)
    weight: int = 1


DRIVER_KILL = "driver-kill"
DRIVER_STOP = "driver-stop"
DRIVER_RIVAL = "driver-rival"
PYTHON_WORKER_KILL = "python-worker-kill"
PYTHON_WORKER_STOP = "python-worker-stop"
EXECUTOR_KILL = "executor-kill"
EXECUTOR_PAUSE = "executor-pause"
SPARK_WORKER_KILL = "spark-worker-kill"
ZOOKEEPER_KILL = "zookeeper-kill"
ZOOKEEPER_PAUSE = "zookeeper-pause"
ZOOKEEPER_DISK_FULL = "zookeeper-disk-full"
ZOOKEEPER_LOST = "zookeeper-lost"
ZOOKEEPER_DELAY = "zookeeper-delay"
ZOOKEEPER_HALF_OPEN = "zookeeper-half-open"
ZOOKEEPER_CUT = "zookeeper-cut"
POSTGRESQL_KILL = "postgresql-kill"
POSTGRESQL_PAUSE = "postgresql-pause"
POSTGRESQL_LOST = "postgresql-lost"
POSTGRESQL_DELAY = "postgresql-delay"
POSTGRESQL_HALF_OPEN = "postgresql-half-open"
POSTGRESQL_CUT = "postgresql-cut"
REDIS_KILL = "redis-kill"
REDIS_PAUSE = "redis-pause"
REDIS_LOST = "redis-lost"
REDIS_HALF_OPEN = "redis-half-open"
KAFKA_KILL = "kafka-kill"
KAFKA_PAUSE = "kafka-pause"
KAFKA_LOST = "kafka-lost"
KAFKA_DELAY = "kafka-delay"
KAFKA_HALF_OPEN = "kafka-half-open"
KAFKA_CUT = "kafka-cut"
PREPARED_DRIVER_KILL = "prepared-driver-kill"
PREPARED_SERVER_KILL = "prepared-server-kill"
PREPARED_LOST = "prepared-lost"
PREPARED_LATE = "prepared-late"
JOBS_CANCELLED = "jobs-cancelled"
CLOCK_JUMP = "clock-jump"
POISON_TUPLE = "poison-tuple"
FAILING_TUPLE = "failing-tuple"
PARTITION_GONE = "partition-gone"

AT_TWO_PHASES = tuple(f"at {point}" for point in (deaths.PREPARING, deaths.PREPARED, deaths.BEFORE, deaths.WITHIN))

KINDS = (
    Kind(DRIVER_KILL, "driver", ("driver", "driver and its JVM"), weight=2),
    Kind(DRIVER_STOP, "driver", ("driver", "driver and its JVM"), (0.0, 3.0)),
    Kind(DRIVER_RIVAL, "driver"),
    Kind(PYTHON_WORKER_STOP, "spark", (f"at {deaths.EXECUTING}",), (1.0, 14.0)),
    Kind(PYTHON_WORKER_KILL, "spark", ("worker", "daemon", f"at {deaths.EXECUTING}"), weight=3),
    Kind(EXECUTOR_KILL, "spark", weight=2),
    Kind(EXECUTOR_PAUSE, "spark", hold_secs=(0.5, 12.0)),
    Kind(SPARK_WORKER_KILL, "spark", ("worker", "with its executors"), (0.0, 3.0)),
    Kind(ZOOKEEPER_KILL, "zookeeper", hold_secs=(0.0, 5.0), weight=2),
    Kind(ZOOKEEPER_PAUSE, "zookeeper", hold_secs=(0.2, 6.0)),
    Kind(ZOOKEEPER_DISK_FULL, "zookeeper", hold_secs=(1.0, 4.0)),
    Kind(ZOOKEEPER_LOST, "zookeeper", ("reply", "request"), weight=3),
    Kind(ZOOKEEPER_DELAY, "zookeeper", hold_secs=(1.0, 4.0)),
    Kind(ZOOKEEPER_HALF_OPEN, "zookeeper", hold_secs=(0.5, 7.0)),
    Kind(ZOOKEEPER_CUT, "zookeeper", weight=2),
    Kind(POSTGRESQL_KILL, "postgresql", ("server", "backend"), (0.0, 3.0), weight=2),
    Kind(POSTGRESQL_LOST, "postgresql", ("reply", "request"), weight=3),
    Kind(POSTGRESQL_DELAY, "postgresql", hold_secs=(1.0, 4.0)),
    Kind(POSTGRESQL_HALF_OPEN, "postgresql", hold_secs=(0.5, 8.0)),
    Kind(POSTGRESQL_CUT, "postgresql", weight=2),
    Kind(POSTGRESQL_PAUSE, "postgresql", hold_secs=(0.2, 6.0)),
    Kind(REDIS_KILL, "redis", hold_secs=(0.0, 3.0)),
    Kind(REDIS_PAUSE, "redis", hold_secs=(0.2, 6.0)),
    Kind(REDIS_LOST, "redis", ("reply", "request"), weight=2),
    Kind(REDIS_HALF_OPEN, "redis", hold_secs=(0.5, 6.0)),
    Kind(KAFKA_KILL, "kafka", hold_secs=(0.0, 3.0), weight=2),
    Kind(KAFKA_PAUSE, "kafka", hold_secs=(0.2, 6.0)),
    Kind(KAFKA_LOST, "kafka", ("reply", "request"), weight=2),
    Kind(KAFKA_DELAY, "kafka", hold_secs=(1.0, 4.0)),
    Kind(KAFKA_HALF_OPEN, "kafka", hold_secs=(0.5, 8.0)),
    Kind(KAFKA_CUT, "kafka", weight=2),
    Kind(PREPARED_DRIVER_KILL, "driver", tuple(f"at {point}" for point in deaths.AT_COMMIT)),
    Kind(PREPARED_SERVER_KILL, "postgresql", AT_TWO_PHASES, (0.0, 3.0)),
    Kind(PREPARED_LOST, "postgresql", ("prepare reply", "prepare request", "commit reply", "commit request"), weight=2),
    Kind(PREPARED_LATE, "spark", (f"at {deaths.PREPARING}", f"at {deaths.PREPARED}"), (1.0, 14.0)),
    Kind(JOBS_CANCELLED, "spark", ("once", "three times"), weight=2),
    Kind(CLOCK_JUMP, "driver", ("+3600", "-3600", "+86400"), (0.5, 3.0)),
    Kind(POISON_TUPLE, "source"),
    Kind(FAILING_TUPLE, "source", hold_secs=(0.2, 2.0)),
    Kind(PARTITION_GONE, "source", hold_secs=(0.5, 3.0)),
)


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault.

    Args:
        gap_secs: from the end of the one before, or from its beginning where this one overlaps it.
        pick: which of the possible victims, from 0 to 1.
    """

    number: int
    kind: str
    variant: str
    target: str
    hold_secs: float
    gap_secs: float
    overlaps: bool
    pick: float


@dataclass(frozen=True, slots=True)
class Round:
    """One topology and its faults."""

    design: Design
    faults: tuple[Fault, ...]


TWO_STORES = (
    Design("", IDEMPOTENT, ON_DRIVER),
    Design("", OPAQUE, ON_EXECUTORS),
    Design("", IDEMPOTENT, ON_EXECUTORS),
    Design("", OPAQUE, ON_DRIVER),
)
"""Two that follow each other differ in both, or in the spout; four in a row are all that there are."""

ONE_STORE = (
    Design("", IDEMPOTENT, ON_DRIVER, source=FROM_KAFKA, sink=INTO_KAFKA),
    Design("", OPAQUE, ON_DRIVER, source=FROM_KAFKA, sink=INTO_POSTGRESQL),
    Design("", OPAQUE, ON_DRIVER, source=FROM_KAFKA, sink=INTO_KAFKA),
    Design("", IDEMPOTENT, ON_DRIVER, source=FROM_KAFKA, sink=INTO_POSTGRESQL),
)
"""Topologies all of whose committers are on one store."""

TWO_PHASES = (
    Design("", IDEMPOTENT, ON_DRIVER, sink=BY_TWO_PHASES),
    Design("", OPAQUE, ON_DRIVER, sink=BY_TWO_PHASES),
)
"""Topologies that prepare on the executors, beside committers."""

PREPARED_PENDING_MAX = 8
"""Each transaction that is being written has a connection of its own."""


def befalls(kind: Kind, design: Design) -> bool:
    """Return whether a topology has what a kind of fault breaks."""
    if kind.name == KAFKA_LOST:
        return design.sink == INTO_KAFKA
    if kind.name in (PREPARED_DRIVER_KILL, PREPARED_SERVER_KILL, PREPARED_LOST, PREPARED_LATE):
        return design.sink == BY_TWO_PHASES
    if kind.name == PARTITION_GONE:
        return design.source == FROM_FILE
    has = {
        "kafka": design.uses_kafka,
        "redis": design.sink == INTO_TWO_STORES,
        "postgresql": design.sink != INTO_KAFKA,
    }
    return has.get(kind.target, True)


def draw(seed: int, faults: int, kinds: Sequence[Kind] = KINDS, *, has_kafka: bool = True) -> list[Round]:
    """Return the rounds of a run. Every kind comes up once, as far as there are faults; then as often as it weighs."""
    rng = random.Random(f"{seed} {faults}")
    deck = rng.sample(kinds, len(kinds))
    designs = _designs(rng, seed, faults, kinds, has_kafka)
    rounds = []
    number = 0
    for index, design in enumerate(designs):
        drawn = []
        later = designs[index + 1 :]
        while number < (index + 1) * faults // len(designs):
            number += 1
            drawn.append(_fault(rng, number, _dealt(rng, deck, kinds, design, later), design))
        rounds.append(Round(design, tuple(drawn)))
    return rounds


def _designs(rng: random.Random, seed: int, faults: int, kinds: Sequence[Kind], has_kafka: bool) -> list[Design]:
    """Return the topologies of a run: two that write into two stores, two that are on one, one that prepares; anew."""
    count = 1 if faults < 2 else 2 if faults < FEW_FAULTS else max(5, -(-faults // FAULTS_A_ROUND))
    first = rng.choice([0, 2])
    some, others = TWO_STORES[first : first + 2], TWO_STORES[2 - first : 4 - first]
    sorts = [*some, *ONE_STORE[:2], TWO_PHASES[0], *others, *ONE_STORE[2:], TWO_PHASES[1]]
    if not has_kafka:
        sorts = [replace(sort, source=FROM_FILE) for sort in sorts if sort.sink != INTO_KAFKA]
    sorts = [sort for sort in sorts if any(befalls(kind, sort) for kind in kinds)]
    designs = [
        replace(
            sorts[index % len(sorts)],
            topology=f"chaos-{seed}-{index + 1}",
            partitions=rng.choice([3, 4, 5]),
            adders=rng.choice([2, 3, 4]),
            committers=rng.choice([2, 3]),
            pending=rng.choice([4, 8, 16]),
        )
        for index in range(count)
    ]
    return [
        replace(one, pending=min(one.pending, PREPARED_PENDING_MAX)) if one.sink == BY_TWO_PHASES else one
        for one in designs
    ]


def _dealt(
    rng: random.Random, deck: list[Kind], kinds: Sequence[Kind], design: Design, later: Sequence[Design]
) -> Kind:
    """Take from the deck what can befall this topology, at first what can befall no later one."""
    while not (here := [i for i, kind in enumerate(deck) if befalls(kind, design)]):
        more = [kind for kind in kinds for _ in range(kind.weight)]
        rng.shuffle(more)
        deck[:0] = more
    last = [i for i in here if not any(befalls(deck[i], one) for one in later)]
    return deck.pop((last or here)[-1])


def _fault(rng: random.Random, number: int, kind: Kind, design: Design) -> Fault:
    variants = list(kind.variants)
    who_commits = (
        (DRIVER_KILL, DRIVER_STOP) if design.placement == ON_DRIVER else (PYTHON_WORKER_KILL, PYTHON_WORKER_STOP)
    )
    if kind.name in who_commits:
        variants += [f"at {point}" for point in deaths.AT_COMMIT]
    if kind.name == KAFKA_KILL and design.sink == INTO_KAFKA:  # there is no other time at which it may: see ChaosKafka
        variants = [f"at {deaths.BEFORE}", f"at {deaths.WITHIN}"]
    return Fault(
        number=number,
        kind=kind.name,
        variant=rng.choice(variants),
        target=kind.target,
        hold_secs=round(rng.uniform(*kind.hold_secs), 2),
        gap_secs=round(rng.uniform(0.0, 1.0), 2),
        overlaps=rng.random() < OVERLAP,
        pick=round(rng.random(), 4),
    )
