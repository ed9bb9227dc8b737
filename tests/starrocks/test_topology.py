"""A topology with a StreamLoadBolt, in one process, on bad days of StarRocks: rows are there once, in order."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from typing import Any

import pyarrow
import pytest

from stormline import (
    ArrowBatchBolt,
    BaseBasicBolt,
    Fields,
    InProcessCluster,
    MemoryTransactionalSpout,
    Semantic,
    Topology,
    TransactionalTopologyBuilder,
    Values,
)
from stormline.errors import TopologyFailed
from stormline.state.starrocks import ArrowStreamLoadBolt, JsonRows, StarRocks, StreamLoadBolt
from stormline.topology.transaction_label import TransactionLabel, label_scope
from tests.kits.components import eventually
from tests.starrocks.conftest import Emulated
from tests.starrocks.faults import Fault, When

ORDERS = "stormline_orders"
BATCHES, TAKE = 12, 5
EVENTS = [["r", number, f"item {number}", number] for number in range(BATCHES * TAKE)]
OPERATIONS = ("begin", "load", "prepare", "commit")


def _topology(server: StarRocks, events: Any = None, **how: Any) -> Topology:
    spout = MemoryTransactionalSpout(
        {0: EVENTS if events is None else events}, Fields("run", "order_id", "item", "amount"), take_per_batch=TAKE
    )
    builder = TransactionalTopologyBuilder("orders", "spout", spout)
    builder.set_bolt("load", StreamLoadBolt(server, ORDERS, **how), 3).shuffle_grouping("spout")
    return builder.build_topology()


def _run(topology: Topology, **config: Any) -> None:
    with InProcessCluster() as cluster:
        settings = {"topology.max.spout.pending": 3, "topology.sink.sweep.secs": 0.2, **config}
        cluster.submit_topology("orders", settings, topology).await_drained(timeout_secs=120)


def _check(emulated: Emulated) -> None:
    numbers = [row[1] for row in emulated.cluster.rows("shop", ORDERS)]
    assert sorted(numbers) == list(range(len(EVENTS)))
    assert [number // TAKE for number in numbers] == [number // TAKE for number in range(len(EVENTS))]
    assert set(emulated.cluster.states("shop").values()) <= {"VISIBLE", "ABORTED"}


def test_rows_are_there_once_and_in_the_order_of_transactions(emulated: Emulated) -> None:
    _run(_topology(emulated.server()))
    _check(emulated)
    states = emulated.cluster.states("shop")
    assert list(states.values()) == ["VISIBLE"] * len(states)
    assert 0 < len(states) <= BATCHES * 3


@pytest.mark.parametrize(("operation", "when"), list(itertools.product(OPERATIONS, ("before", "after"))))
def test_lost_answers_change_nothing(emulated: Emulated, operation: str, when: When) -> None:
    """Some of each; what was begun for nothing is rolled back."""
    for skip in (0, 5, 20):
        emulated.cluster.faults.add(Fault(operation, when, skip=skip))
    _run(_topology(emulated.server(), rows=JsonRows(compression="gzip")))
    _check(emulated)


def _both(emulated: Emulated) -> None:
    emulated.cluster.restart_back_end(0)
    emulated.cluster.restart_front_end()


def _away(emulated: Emulated) -> None:
    emulated.servers.stop("front")
    threading.Timer(0.3, emulated.servers.start, ("front",)).start()


@pytest.mark.parametrize("breaks", [_both, _away])
def test_ends_that_restart_change_nothing(emulated: Emulated, breaks: Callable[[Emulated], None]) -> None:
    """In the middle of a load, when earlier transactions are prepared, and committed."""
    fault = emulated.cluster.faults.add(Fault("load", "before", skip=10, hold=threading.Event()))
    runs = threading.Thread(target=_run, args=(_topology(emulated.server()),))
    runs.start()
    assert fault.reached.wait(60)
    assert fault.hold is not None
    breaks(emulated)
    fault.hold.set()
    runs.join(120)
    assert not runs.is_alive()
    _check(emulated)


def test_what_a_killed_driver_has_prepared_is_rolled_back_by_the_next_one(emulated: Emulated) -> None:
    """Under the labels of an older epoch, in no record; those of others are left alone."""
    database = emulated.database()
    left = TransactionLabel(label_scope("orders", "load"), 1, 0, 1, 0, 7)
    other = TransactionLabel(label_scope("orders2", "load"), 1, 0, 1, 0, 7)
    for label in (left, other):
        database.client.begin(f"{label.text}-0", ORDERS)
        database.client.load(f"{label.text}-0", ORDERS, database.csv((1, "pen", 3)), {})
        database.client.prepare(f"{label.text}-0")
    _run(_topology(emulated.server()))
    states = emulated.cluster.states("shop")
    assert (states[f"{left.text}-0"], states[f"{other.text}-0"]) == ("ABORTED", "PREPARED")
    numbers = [row[1] for row in emulated.cluster.rows("shop", ORDERS)]
    assert sorted(numbers) == list(range(len(EVENTS)))


def test_a_transaction_that_starrocks_has_dropped_halts_the_topology(emulated: Emulated) -> None:
    """LOST, proven: nothing later is committed, and the message says what to do."""
    held = emulated.cluster.faults.add(Fault("commit", "before", skip=1, hold=threading.Event()))
    errors: list[BaseException] = []

    def run() -> None:
        try:
            _run(_topology(emulated.server(prepared_timeout_secs=60)))
        except BaseException as error:
            errors.append(error)

    runs = threading.Thread(target=run)
    runs.start()
    assert held.reached.wait(60)
    assert held.hold is not None
    emulated.cluster.advance(61)
    held.hold.set()
    runs.join(120)
    assert "has lost transaction orders_" in str(errors[0])
    visible = len(emulated.cluster.rows("shop", ORDERS))
    assert visible < len(EVENTS)


def test_a_label_that_was_forgotten_halts_the_topology(emulated: Emulated) -> None:
    """Nobody knows whether it was committed: not gone over in silence."""
    emulated.cluster.limits.label_keep_max_num = 0
    emulated.cluster.faults.add(Fault("commit", "after"))
    with pytest.raises(
        TopologyFailed, match=r"OutcomeUnknown in .*its state is UNKNOWN.*look for its rows in the table"
    ):
        _run(_topology(emulated.server()))


@pytest.mark.parametrize(
    ("events", "message"),
    [
        ([["r", None, "pen", 3]], r"StarRocksRefused in .*too many filtered rows"),
        ([["r", 1, b"pen", 3]], r"RowUnwritable in .*: column 'item' has b'pen', a bytes"),
    ],
)
def test_rows_that_can_never_be_loaded_stop_the_topology(emulated: Emulated, events: Any, message: str) -> None:
    """With what is wrong; nothing is left."""
    with pytest.raises(TopologyFailed, match=message):
        _run(_topology(emulated.server(), events))
    eventually(lambda: set(emulated.cluster.states("shop").values()) <= {"ABORTED"})


def test_a_user_who_may_not_list_loads_all_the_same(emulated: Emulated) -> None:
    """SHOW PROC wants an administrator."""
    emulated.cluster.users["loader"] = ""
    server = emulated.server()
    _run(_topology(StarRocks(server.url.replace("root@", "loader@"))))
    _check(emulated)


def test_at_least_once_shows_rows_while_batches_are_processed(emulated: Emulated) -> None:
    """Each row at least once; here no attempt fails, so once."""
    _run(_topology(emulated.server(), semantic=Semantic.AT_LEAST_ONCE))
    assert sorted(row[1] for row in emulated.cluster.rows("shop", ORDERS)) == list(range(len(EVENTS)))


class _Whole(ArrowBatchBolt):
    """Gives what it gets."""

    def prepare(self, conf: Any, context: Any, collector: Any, batch_id: Any) -> None:
        self.collector = collector

    def execute_batch(self, batch: pyarrow.RecordBatch) -> None:
        self.collector.emit_batch(batch)

    def finish_batch(self) -> None:
        pass

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("id", "run", "order_id", "item", "amount"))


class _Tables(BaseBasicBolt):
    """Names a table for each row."""

    def execute(self, tup: Any, collector: Any) -> None:
        table = ORDERS if tup.get_integer(2) % 2 else "stormline_clicks"
        collector.emit(Values(tup[0], table, *tup.values[1:]))

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("id", "table", "run", "order_id", "item", "amount"))


def test_record_batches_are_loaded(emulated: Emulated) -> None:
    spout = MemoryTransactionalSpout({0: EVENTS}, Fields("run", "order_id", "item", "amount"), take_per_batch=TAKE)
    builder = TransactionalTopologyBuilder("orders", "spout", spout)
    builder.set_bolt("whole", _Whole()).shuffle_grouping("spout")
    builder.set_bolt("load", ArrowStreamLoadBolt(emulated.server(), ORDERS), 2).shuffle_grouping("whole")
    _run(builder.build_topology())
    _check(emulated)


def test_each_row_goes_to_its_table(emulated: Emulated) -> None:
    spout = MemoryTransactionalSpout({0: EVENTS}, Fields("run", "order_id", "item", "amount"), take_per_batch=TAKE)
    builder = TransactionalTopologyBuilder("orders", "spout", spout)
    builder.set_bolt("tables", _Tables(), 2).shuffle_grouping("spout")
    builder.set_bolt("load", StreamLoadBolt(emulated.server(), table_field="table"), 2).shuffle_grouping("tables")
    emulated.cluster.faults.add(Fault("prepare", "after", skip=3))
    emulated.cluster.faults.add(Fault("commit", "after", skip=3))
    _run(builder.build_topology())
    for table, odd in ((ORDERS, 1), ("stormline_clicks", 0)):
        numbers = [row[1] for row in emulated.cluster.rows("shop", table)]
        assert sorted(numbers) == [number for number in range(len(EVENTS)) if number % 2 == odd]
