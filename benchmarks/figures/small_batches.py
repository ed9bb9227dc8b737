"""P3: committed transactions a second of GlobalCount in small batches, against sets on the same ZooKeeper."""

from __future__ import annotations

import time

from kazoo.client import KazooClient

from benchmarks.measuring.bench import Bench, alternately
from benchmarks.measuring.settings import PENDING_SMALL, WARM_UP_SMALL
from benchmarks.topologies.global_count import small_batches, stored

BATCHES = 8 * PENDING_SMALL
SETS = 2_000
NODE = "/benchmarks"
VALUE = bytes(100)


def sets(client: KazooClient, number: int) -> float:
    """Set a znode of 100 bytes again and again, each time waiting for the answer; return the seconds it took."""
    begun = time.perf_counter()
    for _ in range(number):
        client.set(NODE, VALUE)
    return time.perf_counter() - begun


def run(bench: Bench) -> None:
    """Measure P3."""
    batches, number_of_sets = bench.amount(BATCHES), bench.amount(SETS)
    with bench.lab.submit(small_batches, PENDING_SMALL) as stream, bench.lab.zookeeper(stream) as client:
        client.create(NODE, VALUE)
        bench.say("warming up")
        stream.run(bench.amount(WARM_UP_SMALL))
        sets(client, number_of_sets)
        for number in range(bench.repeats):
            ours, theirs = alternately(number, lambda: stream.run(batches), lambda: sets(client, number_of_sets))
            bench.recorder.pair(
                "P3", batches / ours, number_of_sets / theirs, amounts=[batches, number_of_sets], secs=[ours, theirs]
            )
        assert stored(stream.topology_id) == stream.gate.begun * 9
        client.delete(NODE)
    bench.recorder.note(
        "P3",
        f"pending {PENDING_SMALL}, {batches} transactions of 9 tuples against {number_of_sets} sets of 100 bytes a "
        "measurement; storm-starter's numbers of tasks: 3 spout tasks, 5 counting tasks",
    )
