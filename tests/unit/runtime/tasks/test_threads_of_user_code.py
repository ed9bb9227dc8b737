"""Threads of a component's own emit: what they emit before they are joined is there (law 5, complete input)."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pyarrow as pa
import pytest

from stormline import (
    BaseBasicBolt,
    BaseBatchBolt,
    BaseTransactionalBolt,
    Fields,
    ICommitter,
    IOpaquePartitionedTransactionalSpout,
    ITransactionalSpout,
    TransactionalTopologyBuilder,
    TransactionAttempt,
    Tuple,
)
from stormline.runtime.cluster.in_process_cluster import InProcessCluster
from stormline.runtime.errors import TopologyFailed
from stormline.runtime.tasks.collector import ROWS_MAX
from stormline.runtime.tuples.columns import Columns
from stormline.topology.errors import StaleEmit
from tests.kits.components import EVENTS, LEDGERS, line
from tests.unit.runtime.tasks.test_collector import ATTEMPT, Caught, collector

THREADS = 8
EACH = 20_000
ALL = THREADS * EACH


@pytest.fixture(autouse=True)
def _often_switched() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    LEDGERS.clear()
    EVENTS.clear()
    yield
    sys.setswitchinterval(before)


def in_threads(work: Callable[[int], None], threads: int = THREADS) -> None:
    """Run `work` in threads, each with its number, to their end."""
    running = [threading.Thread(target=work, args=(i,)) for i in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()


def emit_all(collector: Any, attempt: TransactionAttempt) -> None:
    """Emit each number once, each thread a part."""

    def part(i: int) -> None:
        emit = collector.emit
        for n in range(i, ALL, THREADS):
            emit([attempt, n])

    in_threads(part)


class InExecute(BaseBasicBolt):
    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("tx", "n"))

    def execute(self, tup: Tuple, collector: Any) -> None:
        emit_all(collector, tup[0])


class InBatch(BaseBatchBolt):
    where = "execute"

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("tx", "n"))

    def prepare(self, conf: Any, context: Any, collector: Any, batch_id: TransactionAttempt) -> None:
        self.collector, self.attempt = collector, batch_id

    def execute(self, tup: Tuple) -> None:
        if self.where == "execute":
            emit_all(self.collector, self.attempt)

    def finish_batch(self) -> None:
        if self.where == "finish_batch":
            emit_all(self.collector, self.attempt)


class InFinish(InBatch):
    where = "finish_batch"


class AtCommit(InFinish, BaseTransactionalBolt, ICommitter):
    pass


class Sum(BaseTransactionalBolt):
    """Keeps (count, sum) of a batch; at the end notes them, or emits them to who does."""

    notes = True

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("tx", "count", "sum"))

    def prepare(self, conf: Any, context: Any, collector: Any, batch_id: TransactionAttempt) -> None:
        self.collector, self.attempt = collector, batch_id
        self.count = self.sum = 0

    def execute(self, tup: Tuple) -> None:
        self.count += 1
        self.sum += tup[1]

    def finish_batch(self) -> None:
        self.collector.emit([self.attempt, self.count, self.sum])


class Note(BaseTransactionalBolt, ICommitter):
    def prepare(self, conf: Any, context: Any, collector: Any, batch_id: TransactionAttempt) -> None:
        self.seen: list[Any] = []

    def execute(self, tup: Tuple) -> None:
        self.seen.append(tuple(tup.values)[1:])

    def finish_batch(self) -> None:
        LEDGERS["sums"].trail += self.seen


def run(topology: Any) -> Any:
    with InProcessCluster() as cluster:
        handle = cluster.submit_topology("t", {}, topology)
        handle.await_drained(120)
    return handle


EXPECTED = [(ALL, ALL * (ALL - 1) // 2)]


@pytest.mark.parametrize("bolt", [InExecute(), InBatch(), InFinish(), AtCommit()], ids=lambda bolt: type(bolt).__name__)
def test_what_a_bolt_emits_from_threads_is_all_committed(bolt: Any) -> None:
    run(
        line(
            "t",
            {0: ["go"]},
            1,
            lambda b: b.set_bolt("threads", bolt).global_grouping("spout"),
            lambda b: b.set_bolt("sum", Sum()).global_grouping("threads"),
            lambda b: b.set_bolt("note", Note()).global_grouping("sum"),
        )
    )
    assert LEDGERS["sums"].trail == EXPECTED


class Once:
    """A coordinator of one batch."""

    begun = False

    def is_ready(self) -> bool:
        return not self.begun

    def initialize_transaction(self, txid: int, prev_metadata: Any) -> Any:
        self.begun = True
        return txid

    def close(self) -> None: ...


class OnceByPositions(Once):
    def is_ready_after(self, positions: Mapping[int, Any], batches_ahead: int) -> bool:
        return not positions and not batches_ahead


class Emitter:
    def emit_batch(self, attempt: TransactionAttempt, metadata: Any, collector: Any) -> None:
        emit_all(collector, attempt)

    def num_partitions(self) -> int:
        return 1

    def emit_partition_batch(self, attempt: TransactionAttempt, collector: Any, partition: int, last: Any) -> Any:
        emit_all(collector, attempt)
        return 1

    def cleanup_before(self, txid: int) -> None: ...
    def close(self) -> None: ...


class Spout(ITransactionalSpout):
    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("tx", "n"))

    def get_coordinator(self, conf: Any, context: Any) -> Any:
        return Once()

    def get_emitter(self, conf: Any, context: Any) -> Any:
        return Emitter()


class OpaqueSpout(IOpaquePartitionedTransactionalSpout):
    declare_output_fields = Spout.declare_output_fields

    def get_coordinator(self, conf: Any, context: Any) -> Any:
        return OnceByPositions()

    get_emitter = Spout.get_emitter


@pytest.mark.parametrize("spout", [Spout(), OpaqueSpout()], ids=lambda spout: type(spout).__name__)
def test_what_an_emitter_emits_from_threads_is_all_committed(spout: Any) -> None:
    builder = TransactionalTopologyBuilder("t", "spout", spout)
    builder.set_bolt("sum", Sum()).global_grouping("spout")
    builder.set_bolt("note", Note()).global_grouping("sum")
    run(builder.build_topology())
    assert LEDGERS["sums"].trail == EXPECTED


def test_only_the_owner_routes_and_what_others_emit_comes_in_their_order() -> None:
    route, routed_in = Caught(), set()

    class Here(Caught):
        def take(self, rows: Any) -> None:
            routed_in.add(threading.get_ident())

    to = collector(route, Here())
    to.emit([ATTEMPT, 0])

    def work(i: int) -> None:
        to.emit([ATTEMPT, 1])
        to.emit_all([[ATTEMPT, 2], [ATTEMPT, 3]])
        to.emit_batch(pa.record_batch({"value": [4, 5]}))
        to.emit_all([[ATTEMPT, n] for n in range(6, 6 + 2 * ROWS_MAX)])
        to.emit([ATTEMPT, 6 + 2 * ROWS_MAX])
        to.emit_direct(3, [ATTEMPT, "a"], "to")
        to.emit_direct(4, [ATTEMPT, "b"], "to")

    in_threads(work, 1)
    assert route.calls == []
    assert to.emitted == 9 + 2 * ROWS_MAX
    to.emit_direct(5, [ATTEMPT, "c"], "to")
    to.flush()
    assert to.emitted == 10 + 2 * ROWS_MAX
    rows = [row for call in route.calls for row in (call.rows() if isinstance(call, Columns) else call)]
    assert [row[1] for row in rows if row[0] == ATTEMPT] == list(range(7 + 2 * ROWS_MAX))
    assert [row for row in rows if row[0] != ATTEMPT] == [
        [3, ATTEMPT, "a"],
        [4, ATTEMPT, "b"],
        [5, ATTEMPT, "c"],
    ]
    assert routed_in == {threading.get_ident()}


def test_the_thread_that_takes_a_collector_over_routes_what_it_emits_at_once() -> None:
    route = Caught()
    to = collector(route)

    def work(i: int) -> None:
        to.take_over()
        for n in range(ROWS_MAX):
            to.emit([ATTEMPT, n])

    in_threads(work, 1)
    assert [len(rows) for rows in route.calls] == [ROWS_MAX]


def test_rows_that_come_after_the_last_call_has_returned_are_refused_with_a_sentence() -> None:
    class Late(Caught):
        def take(self, rows: Any) -> None:
            in_threads(lambda i: to.emit([ATTEMPT, i]), 3)

    to = collector(Late())
    to.emit([ATTEMPT, 0])
    with pytest.raises(
        StaleEmit,
        match=r"bolt 'words', task 7: a thread of its own emitted 3 tuples for attempt .* after finish_batch had "
        r"returned; join it in finish_batch",
    ):
        to.finish("finish_batch")


class NotJoined(InBatch):
    """Its thread emits when finish_batch has returned."""

    where = ""

    def finish_batch(self) -> None:
        def late() -> None:
            EVENTS["returned"].wait(20)
            self.collector.emit([self.attempt, 2])
            EVENTS["emitted"].set()

        threading.Thread(target=late).start()
        self.collector.emit([self.attempt, 1])


class Gate(BaseBasicBolt):
    """Is called with what NotJoined emits in finish_batch, when that has returned."""

    def execute(self, tup: Tuple, collector: Any) -> None:
        EVENTS["returned"].set()
        assert EVENTS["emitted"].wait(20)


def test_a_topology_whose_bolt_does_not_join_its_thread_stops_and_says_so() -> None:
    topology = line(
        "t",
        {0: ["go"]},
        1,
        lambda b: b.set_bolt("threads", NotJoined()).global_grouping("spout"),
        lambda b: b.set_bolt("gate", Gate()).local_or_shuffle_grouping("threads"),
    )
    with (
        pytest.raises(TopologyFailed, match=r"bolt 'threads', task \d: a thread of its own emitted 1 tuples .*join it"),
        InProcessCluster() as cluster,
    ):
        cluster.submit_topology("t", {}, topology).await_drained(30)
