"""bytewax: the same counts as a dataflow of 2 workers, recovery on.

    python -m benchmarks.peers.bytewax_counts [--work global_count,words] [--form row|stateful|batch]

Each worker is a process of its own, on 127.0.0.1: two workers in one process would share one interpreter lock. The
recovery store is on disk, and an epoch is committed to it each second. bytewax has no batch that is committed as
one: a batch is only a number that each tuple carries and that is stored beside the counts. So bytewax pays for none of
the transactions that Stormline commits.

The source has 2 partitions; each hands out 10,000 tuples (txid, word) at a time, and can resume where an epoch ended.
Larger slices are better for bytewax than smaller ones, up to about that size. Time runs from the first slice that is
handed out to the end of both workers, so to the last commit; nothing is left out as warm-up. The counts come out of
the dataflow at its end and are checked.

Three forms:

- `row` (default): one call of the user's Python code for each tuple, as a bolt's `execute` is called, in the shape of
  the topology. GlobalCount: each worker counts its own tuples, and only the sums of a slice go on to the stored count.
  Words: each tuple goes to the worker of its word, as by fields grouping, and is counted there.
- `final`: `count_final`, bytewax's own operator. It too calls the user's code for each tuple, but it adds up
  the words of a slice *before* it sends them to their workers, which the topology does not. It is for finite data only:
  no count is known before the end.
- `batch`: the source hands out plain words, and `flat_map_batch` takes a whole slice, with `len` or
  `collections.Counter`. No code of the user runs for each tuple; it is the counterpart of columnar bolts.
"""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict
from datetime import timedelta
from importlib.metadata import version
from itertools import repeat
from pathlib import Path
from typing import Any, TypeAlias

import bytewax.operators as op
from bytewax.dataflow import Dataflow
from bytewax.inputs import FixedPartitionedSource, StatefulSourcePartition
from bytewax.operators import KeyedStream, StatefulBatchLogic, Stream
from bytewax.outputs import DynamicSink, StatelessSinkPartition
from bytewax.recovery import RecoveryConfig, init_db_dir
from bytewax.run import cli_main

from benchmarks.peers.protocol import (
    DISTINCT,
    GLOBAL,
    GLOBAL_COUNT,
    WORD_OF,
    WORDS,
    Job,
    Measurement,
    checked,
    jobs,
    word_counts,
)

DEFAULTS = {GLOBAL_COUNT: (200, 100_000), WORDS: (30, 100_000)}
FORMS = ("row", "final", "batch")
WORKERS = 2
SLICE = 10_000
START_SECS_MAX = 60.0

WORDS_AROUND = WORD_OF * (SLICE // DISTINCT + 1)
"""Words 0 to SLICE - 1, from whichever word one begins."""


Item: TypeAlias = "tuple[int, str] | str"
"""A tuple (txid, word), or only the word where the form works on slices."""


class Words(StatefulSourcePartition[Item, int]):
    """One partition's share of each batch, the resume state being how many tuples it has handed out."""

    def __init__(self, job: Job, directory: Path, partition: int, resume: int | None) -> None:
        self._job = job
        self._directory = directory
        self._partition = partition
        self._take = job.batch_tuples // WORKERS
        self._begun = 0.0
        self._done = resume or 0

    def next_batch(self) -> list[Item]:
        batch, at = divmod(self._done, self._take)
        now = time.monotonic()
        self._begun = self._begun or now
        if at == 0 and (batch == self._job.batches or now - self._begun > self._job.secs_max):
            report = self._directory / f"partition-{self._partition}.json"
            report.write_text(json.dumps({"begun": self._begun, "batches": batch}))
            raise StopIteration
        size = min(SLICE, self._take - at)
        first = (batch * self._job.batch_tuples + self._partition * self._take + at) % DISTINCT
        self._done += size
        words = WORDS_AROUND[first : first + size]
        return list(words if self._job.form == "batch" else zip(repeat(batch + 1), words))

    def snapshot(self) -> int:
        return self._done


class Source(FixedPartitionedSource[Item, int]):
    """One partition for each worker."""

    def __init__(self, job: Job, directory: Path) -> None:
        self._job = job
        self._directory = directory

    def list_parts(self) -> list[str]:
        return [str(partition) for partition in range(WORKERS)]

    def build_part(self, step_id: str, for_part: str, resume_state: int | None) -> Words:
        return Words(self._job, self._directory, int(for_part), resume_state)


class Lines(StatelessSinkPartition[tuple[str, int]]):
    """Writes the final counts to a file of the worker's own."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("w")

    def write_batch(self, items: list[tuple[str, int]]) -> None:
        for item in items:
            self._file.write(json.dumps(item) + "\n")
        self._file.flush()


class Sink(DynamicSink[tuple[str, int]]):
    """One file for each worker."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def build(self, step_id: str, worker_index: int, worker_count: int) -> Lines:
        return Lines(self._directory / f"counts-{worker_index}.jsonl")


class Stored(StatefulBatchLogic[Any, int, tuple[int, int]]):
    """The stored count of one key, and the last txid that added to it. Tells the count at the end."""

    def __init__(self, resume: tuple[int, int] | None) -> None:
        self._count, self._txid = resume or (0, 0)

    def on_eof(self) -> tuple[Iterable[int], bool]:
        return (self._count,), StatefulBatchLogic.RETAIN

    def snapshot(self) -> tuple[int, int]:
        return self._count, self._txid


class StoredTuples(Stored):
    """Is given the txid of each tuple of its key."""

    def on_batch(self, values: list[int]) -> tuple[Iterable[int], bool]:
        for txid in values:
            self._count += 1
            self._txid = txid
        return (), StatefulBatchLogic.RETAIN


class StoredSums(Stored):
    """Is given pairs of a txid and how many tuples of it there were."""

    def on_batch(self, values: list[tuple[int, int]]) -> tuple[Iterable[int], bool]:
        for txid, count in values:
            self._count += count
            self._txid = txid
        return (), StatefulBatchLogic.RETAIN


def added_up(ones: list[tuple[int, int]]) -> Iterable[tuple[str, tuple[int, int]]]:
    """Add up what one call of the source gave, by txid."""
    sums: dict[int, int] = {}
    for txid, one in ones:
        sums[txid] = sums.get(txid, 0) + one
    return [(GLOBAL, (txid, count)) for txid, count in sums.items()]


def by_row(items: Stream[Any], work: str) -> KeyedStream[int]:
    """Call Python for each tuple, in the shape of the topology."""
    if work == WORDS:
        return op.stateful_batch("stored", op.map("by_word", items, lambda item: (item[1], item[0])), StoredTuples)
    ones = op.map("one", items, lambda item: (item[0], 1))
    return op.stateful_batch("stored", op.flat_map_batch("partial", ones, added_up), StoredSums)


def by_final(items: Stream[Any], work: str) -> KeyedStream[int]:
    """Count with bytewax's own operator for finite data."""
    if work == WORDS:
        return op.count_final("count", items, lambda item: item[1])
    return op.count_final("count", items, lambda item: GLOBAL)


def by_batch(words: Stream[str], work: str) -> KeyedStream[int]:
    """Count whole slices at once."""
    if work == WORDS:
        sums = op.flat_map_batch("slice", words, lambda batch: [(k, (0, n)) for k, n in Counter(batch).items()])
    else:
        sums = op.flat_map_batch("slice", words, lambda batch: [(GLOBAL, (0, len(batch)))])
    return op.stateful_batch("stored", sums, StoredSums)


def dataflow(job: Job, directory: Path) -> Dataflow:
    """Return the dataflow of a job."""
    flow = Dataflow(job.work)
    items = op.input("words", flow, Source(job, directory))
    counts = {"row": by_row, "final": by_final, "batch": by_batch}[job.form](items, job.work)
    op.output("counts", counts, Sink(directory))
    return flow


def work_as(worker: int, addresses: list[str], job: Job, directory: Path) -> None:
    """Be one worker until the dataflow has ended, then leave the time of the end."""
    cli_main(
        dataflow(job, directory),
        process_id=worker,
        addresses=addresses,
        epoch_interval=timedelta(seconds=1),
        recovery_config=RecoveryConfig(directory / "recovery", timedelta(0)),
    )
    (directory / f"ended-{worker}").write_text(str(time.monotonic()))


def free_addresses() -> list[str]:
    """Return an address that nobody listens on for each worker."""
    listeners = [socket.create_server(("127.0.0.1", 0)) for _ in range(WORKERS)]
    try:
        return [f"127.0.0.1:{listener.getsockname()[1]}" for listener in listeners]
    finally:
        for listener in listeners:
            listener.close()


def measure(job: Job) -> Measurement:
    """Run one dataflow in processes of its own."""
    if job.batch_tuples % WORKERS:
        raise ValueError(f"{job.batch_tuples} tuples do not divide into {WORKERS} partitions")
    with tempfile.TemporaryDirectory(prefix="bytewax-peer-") as name:
        directory = Path(name)
        (directory / "recovery").mkdir()
        init_db_dir(directory / "recovery", WORKERS)
        addresses = free_addresses()
        processes = []
        try:
            for worker in range(WORKERS):
                argument = json.dumps([worker, addresses, asdict(job), name])
                processes.append(
                    subprocess.Popen([sys.executable, "-m", __spec__.name, "--worker", argument], stdout=sys.stderr)
                )
            deadline = time.monotonic() + START_SECS_MAX + 2 * job.secs_max
            for worker, process in enumerate(processes):
                status = process.wait(max(0.0, deadline - time.monotonic()))
                if status:
                    raise RuntimeError(f"{job.work}: worker {worker} ended with status {status}")
        finally:
            for process in processes:
                process.kill()
                process.wait()
        return result(job, directory)


def result(job: Job, directory: Path) -> Measurement:
    """Read what the workers left, and check it."""
    reports = [json.loads((directory / f"partition-{i}.json").read_text()) for i in range(WORKERS)]
    ended = max(float((directory / f"ended-{i}").read_text()) for i in range(WORKERS))
    stored: Counter[str] = Counter()
    for path in directory.glob("counts-*.jsonl"):
        for line in path.read_text().splitlines():
            key, count = json.loads(line)
            stored[key if job.work == WORDS else GLOBAL] += count
    take = job.batch_tuples // WORKERS
    expected: Counter[str] = Counter()
    for partition, report in enumerate(reports):
        for batch in range(report["batches"]):
            expected.update(word_counts(batch * job.batch_tuples + partition * take, take))
    tuples = take * sum(report["batches"] for report in reports)
    return Measurement(
        "bytewax",
        version("bytewax"),
        job.work,
        tuples,
        tuples // job.batch_tuples,
        ended - min(report["begun"] for report in reports),
        checked(job.work, expected, stored),
        f"form {job.form}, {WORKERS} processes of one worker, recovery on disk, epoch 1 s, slices of {SLICE:,}",
    )


def stop(signal_number: int, frame: Any) -> None:
    """End as at Ctrl-C, which ends the workers too."""
    raise KeyboardInterrupt


def main() -> int:
    """Measure and print; or be a worker."""
    if sys.argv[1:2] == ["--worker"]:
        worker, addresses, job, directory = json.loads(sys.argv[2])
        work_as(worker, addresses, Job(**job), Path(directory))
        return 0
    signal.signal(signal.SIGTERM, stop)
    for job in jobs(__doc__, DEFAULTS, forms=FORMS):
        print(measure(job).as_line(), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
