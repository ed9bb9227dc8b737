"""The bare loops: what two Python processes do without any engine, with the same words, Tuples and bolts."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Any

from benchmarks.measuring.settings import CORES, TIMEOUT_SECS
from benchmarks.topologies.synthetic import words
from benchmarks.topologies.words import CountWords
from examples.global_count import BatchCount
from stormline import Fields, TransactionAttempt, Tuple
from stormline.topology.tuples import TupleSource

Loop = Callable[[int, int, int], Any]
"""Takes (process number, batches, tuples of this process in a batch); what it returns must be what was counted."""


class _Context:
    topology_id = "bare"


def count_loop(process: int, batches: int, share: int) -> int:
    """Count each batch with the bolt of GlobalCount; return the sum."""
    source, mine, counted = TupleSource("spout", "default", 1, Fields("tx", "word")), words(process * share, share), 0
    for txid in range(1, batches + 1):
        attempt = TransactionAttempt(txid, 1)
        bolt = BatchCount()
        bolt.prepare({}, _Context(), None, attempt)  # type: ignore[arg-type]
        execute = bolt.execute
        for word in mine:
            execute(Tuple([attempt, word], source))
        counted += bolt.count
    return counted


def words_loop(process: int, batches: int, share: int) -> int:
    """Count the words of each batch with the bolt of Words; return the sum."""
    source, mine, counted = TupleSource("spout", "default", 1, Fields("tx", "word")), words(process * share, share), 0
    for txid in range(1, batches + 1):
        attempt = TransactionAttempt(txid, 1)
        bolt = CountWords()
        bolt.prepare({}, _Context(), None, attempt)  # type: ignore[arg-type]
        execute = bolt.execute
        for word in mine:
            execute(Tuple([attempt, word], source))
        counted += sum(bolt.counts.values())
    return counted


def columnar_count_loop(process: int, batches: int, share: int) -> int:
    """Make the record batches and count their rows; return the sum."""
    from benchmarks.topologies.columns import record_batch

    return sum(record_batch(process * share, share).num_rows for _ in range(batches))


def columnar_words_loop(process: int, batches: int, share: int) -> int:
    """Make the record batches and count the words of each; return the sum."""
    from benchmarks.topologies.columns import count_words, record_batch

    counted = 0
    for _ in range(batches):
        counts: dict[str, int] = {}
        count_words(counts, record_batch(process * share, share))
        counted += sum(counts.values())
    return counted


def _serve(process: int, loops: dict[str, Loop], orders: Connection) -> None:
    """Run what is ordered until there are no more orders."""
    try:
        orders.send("ready")
        while (order := orders.recv()) is not None:
            name, batches, share = order
            orders.send(loops[name](process, batches, share))
    except (EOFError, KeyboardInterrupt):
        return


class BareProcesses:
    """Two processes, started before anything is timed. A context manager that ends them."""

    def __init__(self, **loops: Loop) -> None:
        spawn = multiprocessing.get_context("spawn")  # a fork of this process would hold Spark's connections
        self._orders: list[Connection] = []
        self._processes: list[Any] = []
        for number in range(CORES):
            mine, its = spawn.Pipe()
            process = spawn.Process(target=_serve, args=(number, loops, its), daemon=True)
            process.start()
            its.close()
            self._orders.append(mine)
            self._processes.append(process)
        for orders in self._orders:
            assert orders.recv() == "ready"

    def __enter__(self) -> BareProcesses:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        for process in self._processes:
            process.terminate()
        for process in self._processes:
            process.join()

    def run(self, name: str, batches: int, batch_tuples: int) -> float:
        """Run one of the loops over the batches, half of each in either process; return the seconds it took both."""
        share = batch_tuples // len(self._orders)
        begun = time.perf_counter()
        for orders in self._orders:
            orders.send((name, batches, share))
        counted = 0
        for orders in self._orders:
            if not orders.poll(TIMEOUT_SECS):
                raise TimeoutError(f"the bare loop {name!r} did not end within {TIMEOUT_SECS:g} s")
            counted += orders.recv()
        secs = time.perf_counter() - begun
        assert counted == batches * share * len(self._orders), counted
        return secs
