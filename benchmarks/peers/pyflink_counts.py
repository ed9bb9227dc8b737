"""PyFlink: the same counts as DataStream jobs of parallelism 2, a checkpoint each second.

    python -m benchmarks.peers.pyflink_counts [--work global_count,words] [--form thread|process]

The job runs in Flink's own local cluster, one JVM, with a checkpoint to disk each second, exactly once, and state on
the heap, Flink's default. Flink has no batch that is committed as one: the counting tasks pass a partial sum on at the
end of each of their batches, and the batch's number is stored beside the count. So PyFlink pays for none of the
transactions that Stormline commits.

The tuples are numbers from Flink's own `NumberSequenceSource`, the first half in one task and the second in the other:
making them costs no Python. GlobalCount: a flat_map counts each batch of its task, tuple by tuple, and only its sums go
on to the stored count. Words: a map makes the word of each number, the word goes to the task of its key, and is
counted there in keyed state.

Time runs from the first tuple after the warm-up that a task is given to the end of the last count, when all input has
been counted. The source cannot be stopped by the clock: `--secs-max` is of no effect.

Two forms, Flink's two ways to run Python (`python.execution-mode`), in both of which the user's function is called for
each tuple:

- `thread` (default, the faster): inside the JVM. It saves passing tuples between processes, but both tasks share
  one interpreter lock.
- `process`: one Python process beside the JVM for each chain of Python operators.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import sysconfig
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path
from typing import Any

from pyflink.common import Configuration, Types, WatermarkStrategy
from pyflink.datastream import DataStream, StreamExecutionEnvironment
from pyflink.datastream.connectors.number_seq import NumberSequenceSource
from pyflink.datastream.functions import FlatMapFunction, KeyedProcessFunction, MapFunction, RuntimeContext
from pyflink.datastream.state import ValueStateDescriptor

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

ROOT = Path(__file__).resolve().parents[2]
DEFAULTS = {GLOBAL_COUNT: (8, 100_000), WORDS: (2, 100_000)}
WARM_UP_BATCHES = {GLOBAL_COUNT: 5, WORDS: 1}
FORMS = ("thread", "process")
PARALLELISM = 2
END_OF_TIME = (1 << 63) - 1
"""Flink's watermark when all input has been worked on."""


def leave(directory: str, what: str, content: Any) -> None:
    """Leave what a task found out in a file of its own: in the form `process`, tasks share nothing else."""
    Path(directory, f"{what}-{uuid.uuid4().hex}.json").write_text(json.dumps(content))


def left(directory: str, what: str) -> list[Any]:
    """Return what the tasks left."""
    return [json.loads(path.read_text()) for path in Path(directory).glob(f"{what}-*.json")]


class Share:
    """One task's part of the numbers, half of each batch: the first task has the lower half of all numbers."""

    def __init__(self, job: Job, directory: str) -> None:
        self._directory = directory
        self._warm_up = WARM_UP_BATCHES[job.work]
        self.batches = self._warm_up + job.batches
        self.take = job.batch_tuples // PARALLELISM

    def begin_batch(self, number: int) -> None:
        """Take down the time if the batch that begins with this number is the first after the warm-up."""
        if number // self.take % self.batches == self._warm_up:
            leave(self._directory, "begun", time.monotonic())

    def txid(self, number: int) -> int:
        """Return the number of the batch that a number is in."""
        return number // self.take % self.batches + 1


class BatchCount(FlatMapFunction):
    """Counts the tuples of a batch, and tells their sum at its end."""

    def __init__(self, share: Share) -> None:
        self._share = share
        self._take = share.take
        self._count = 0

    def flat_map(self, value: int) -> Iterable[tuple[int, int]]:
        at = value % self._take
        if at == 0:
            self._share.begin_batch(value)
        self._count += 1
        if at != self._take - 1:
            return ()
        count, self._count = self._count, 0
        return ((self._share.txid(value), count),)


class MakeWord(MapFunction):
    """Makes the word of a number."""

    def __init__(self, share: Share) -> None:
        self._share = share
        self._take = share.take

    def map(self, value: int) -> str:
        if value % self._take == 0:
            self._share.begin_batch(value)
        return WORD_OF[value % DISTINCT]


class Stored(KeyedProcessFunction):
    """The stored count of each key. Leaves it, with the time, when all input has been counted."""

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._state: Any = None

    def open(self, runtime_context: RuntimeContext) -> None:
        self._state = runtime_context.get_state(ValueStateDescriptor("stored", self.type))

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterable[Any]:
        stored = self._state.value()
        leave(self._directory, "count", [ctx.get_current_key(), self.count(stored), time.monotonic()])
        return ()


class StoredSum(Stored):
    """Is given pairs of a txid and how many tuples of it there were; stores the txid beside the count."""

    type = Types.PICKLED_BYTE_ARRAY()

    def process_element(self, value: tuple[int, int], ctx: KeyedProcessFunction.Context) -> Iterable[Any]:
        stored = self._state.value()
        if stored is None:
            ctx.timer_service().register_event_time_timer(END_OF_TIME)
            stored = (0, 0)
        txid, count = value
        self._state.update((txid, stored[1] + count))
        return ()

    @staticmethod
    def count(stored: tuple[int, int]) -> int:
        """Return the count."""
        return stored[1]


class StoredWord(Stored):
    """Is given each tuple of its word."""

    type = Types.LONG()

    def process_element(self, value: str, ctx: KeyedProcessFunction.Context) -> Iterable[Any]:
        stored = self._state.value()
        if stored is None:
            ctx.timer_service().register_event_time_timer(END_OF_TIME)
            stored = 0
        self._state.update(stored + 1)
        return ()

    @staticmethod
    def count(stored: int) -> int:
        """Return the count."""
        return stored


def global_count(numbers: DataStream, share: Share, directory: str) -> None:
    """Count each batch where it comes in, and all sums in one task."""
    pair = Types.TUPLE([Types.LONG(), Types.LONG()])
    sums = numbers.flat_map(BatchCount(share), pair).key_by(lambda _: GLOBAL, Types.STRING())
    sums.process(StoredSum(directory)).set_parallelism(1)


def words(numbers: DataStream, share: Share, directory: str) -> None:
    """Count each word in the task of its key."""
    keyed = numbers.map(MakeWord(share), Types.STRING()).key_by(lambda word: word, Types.STRING())
    keyed.process(StoredWord(directory))


def settings(job: Job, directory: str) -> Configuration:
    """Return the job's configuration: Flink's own but for these."""
    configuration = Configuration()
    for name, value in {
        "python.execution-mode": job.form,
        "python.executable": sys.executable,
        "python.client.executable": sys.executable,
        "execution.checkpointing.interval": "1s",
        "execution.checkpointing.mode": "EXACTLY_ONCE",
        "execution.checkpointing.dir": Path(directory, "checkpoints").as_uri(),
        "io.tmp.dirs": directory,
        "rest.port": "0",
        # By default a failed job is started again for ever.
        "restart-strategy.type": "none",
    }.items():
        configuration.set_string(name, value)
    return configuration


def measure(job: Job) -> Measurement:
    """Run one job to its end."""
    if job.batch_tuples % PARALLELISM:
        raise ValueError(f"{job.batch_tuples} tuples do not divide into {PARALLELISM} partitions")
    with tempfile.TemporaryDirectory(prefix="pyflink-peer-") as directory:
        environment = StreamExecutionEnvironment.get_execution_environment(settings(job, directory))
        environment.set_parallelism(PARALLELISM)
        share = Share(job, directory)
        tuples = share.batches * job.batch_tuples
        source = NumberSequenceSource(0, tuples - 1)
        numbers = environment.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")
        {GLOBAL_COUNT: global_count, WORDS: words}[job.work](numbers, share, directory)
        environment.execute(job.work)
        stored: Counter[str] = Counter()
        ended = 0.0
        for key, count, at in left(directory, "count"):
            stored[key] += count
            ended = max(ended, at)
        begun = min(left(directory, "begun"))
    return Measurement(
        "pyflink",
        version("apache-flink"),
        job.work,
        job.batches * job.batch_tuples,
        job.batches,
        ended - begun,
        checked(job.work, word_counts(0, tuples), stored),
        f"form {job.form}, parallelism {PARALLELISM}, checkpoint each second, state on the heap",
    )


def stop(signal_number: int, frame: object) -> None:
    """End as at Ctrl-C, which ends the JVM too."""
    raise KeyboardInterrupt


def main() -> int:
    """Measure and print."""
    measured = jobs(__doc__, DEFAULTS, forms=FORMS)
    signal.signal(signal.SIGTERM, stop)
    # Neither the interpreter inside the JVM nor the processes beside it know the virtual environment.
    places = [str(ROOT), sysconfig.get_path("purelib"), os.environ.get("PYTHONPATH")]
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, places))
    for job in measured:
        print(measure(job).as_line(), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
