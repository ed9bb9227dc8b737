"""StreamLoadSink by hand: InLong's flow, several tables, row counts, the sweep, and the rows of both formats."""

from __future__ import annotations

import pickle
from types import SimpleNamespace
from typing import Any

import msgpack
import pyarrow
import pytest

from stormline.state.errors import StoreUnavailable
from stormline.state.starrocks import CsvRows, JsonRows, StarRocks
from stormline.state.starrocks.errors import InvalidStarRocks, RowUnwritable, StarRocksRefused
from stormline.state.starrocks.sink import StreamLoadSink
from stormline.topology.fields import Fields
from stormline.topology.transaction_label import TransactionLabel, label_scope
from stormline.topology.two_phase_commit import CommitOutcome
from tests.kits.two_phase import labels_begin
from tests.starrocks.conftest import COLUMNS, Database, Emulated
from tests.starrocks.faults import Fault

ORDERS, CLICKS = "stormline_orders", "stormline_clicks"
FIELDS = Fields("attempt", *COLUMNS)
WITH_TABLE = Fields("attempt", "table", *COLUMNS)
NOWHERE = StarRocks("starrocks://root@127.0.0.1:1/shop")


def _label(number: int = 1, run: str = "7") -> TransactionLabel:
    """A label; on a server that keeps what it has, the run tells it from those of other runs."""
    return TransactionLabel(label_scope("orders", "load"), number, 1, 1, 0, int(run, 16))


def _opened(server: StarRocks, table: str = ORDERS, stream: Fields = FIELDS, **how: Any) -> StreamLoadSink:
    """A sink as a process has it: a copy of the declared one, opened."""
    sink: StreamLoadSink = pickle.loads(pickle.dumps(StreamLoadSink(server, table, **how)))
    context: Any = SimpleNamespace(this_sources=["orders"], component_output_fields=lambda source: stream)
    sink.open({}, context)
    return sink


def _tuple(*values: Any, fields: Fields = FIELDS) -> Any:
    return SimpleNamespace(fields=fields, values=["attempt", *values])


def _written(database: Database, sink: StreamLoadSink, *rows: tuple[Any, ...], number: int = 1) -> Any:
    transaction = sink.begin_transaction(_label(number, database.run))
    for row in rows:
        sink.invoke(transaction, _tuple(database.run, *row))
    return transaction


@pytest.mark.parametrize("rows", [CsvRows(compression="gzip"), JsonRows()], ids=["csv", "json"])
def test_a_batch_is_loaded_in_parts_prepared_and_committed_by_another_process(database: Database, rows: Any) -> None:
    """Its handle is plain data: the labels."""
    sink, driver = _opened(database.server, rows=rows, flush_bytes=100), _opened(database.server, rows=rows)
    rows_of_batch = [(number, f"item {number}", number) for number in range(50)]
    handle = sink.pre_commit(_written(database, sink, *rows_of_batch))
    assert handle == [f"{_label(1, database.run).text}-0"]
    assert database.rows() == []
    sent = msgpack.unpackb(msgpack.packb(handle))
    assert driver.commit(sent) is CommitOutcome.DONE
    assert driver.recover_and_commit(sent) is CommitOutcome.ALREADY
    assert database.rows() == [list(row) for row in rows_of_batch]


def test_an_attempt_without_rows_begins_nothing(emulated: Emulated) -> None:
    """An empty transaction would be refused, and its label kept."""
    sink = _opened(emulated.server())
    transaction = sink.begin_transaction(_label())
    assert sink.pre_commit(transaction) is None
    sink.roll_back(transaction)
    assert emulated.cluster.states("shop") == {}


def test_each_table_is_a_transaction_of_its_own(database: Database) -> None:
    """StarRocks has one table in each that can be prepared; so the labels have numbers."""
    sink = _opened(database.server, "", WITH_TABLE, table_field="table")
    label = _label(1, database.run)
    transaction = sink.begin_transaction(label)
    for table, number in ((ORDERS, 1), (CLICKS, 2), (ORDERS, 3)):
        sink.invoke(transaction, _tuple(table, database.run, number, "pen", 3, fields=WITH_TABLE))
    handle = sink.pre_commit(transaction)
    assert handle == [f"{label.text}-0", f"{label.text}-1"]
    assert sink.commit(handle) is CommitOutcome.DONE
    assert database.rows(ORDERS) == [[1, "pen", 3], [3, "pen", 3]]
    assert database.rows(CLICKS) == [[2, "pen", 3]]


def test_outcomes_of_several_tables_become_the_worst_of_them(emulated: Emulated) -> None:
    """Lost before not yet, not yet before done; and already where all were."""
    sink = _opened(emulated.server(), "", WITH_TABLE, table_field="table")

    def handle(number: int) -> Any:
        transaction = sink.begin_transaction(_label(number))
        for table in (ORDERS, CLICKS):
            sink.invoke(transaction, _tuple(table, "r", number, "pen", 3, fields=WITH_TABLE))
        return sink.pre_commit(transaction)

    one, two = handle(1), handle(2)
    sink.client.rollback(one[1])
    assert sink.commit(one) is CommitOutcome.LOST
    emulated.cluster.faults.add(Fault("commit", "before", skip=1))
    assert [sink.commit(two) for _ in range(3)] == [CommitOutcome.RETRY, CommitOutcome.DONE, CommitOutcome.ALREADY]


def test_record_batches_become_the_same_rows(database: Database) -> None:
    """Some columns, under other names."""
    stream = Fields("attempt", "number", "unused", "who", "what")
    how: dict[str, Any] = {"fields": ["who", "number", "what"], "columns": COLUMNS[:3], "rows": JsonRows()}
    sink = _opened(database.server, ORDERS, stream, **how)
    transaction = sink.begin_transaction(_label(1, database.run))
    batch = {"number": [1, 2], "unused": [None, None], "who": [database.run] * 2, "what": ["pen", None]}
    sink.invoke_batch(transaction, pyarrow.RecordBatch.from_pydict(batch))
    handle = sink.pre_commit(transaction)
    assert handle is not None
    sink.commit(handle)
    assert database.rows() == [[1, "pen", None], [2, None, None]]


def test_record_batches_name_their_tables(emulated: Emulated) -> None:
    """In a column."""
    sink = _opened(emulated.server(), "", Fields("attempt", "table", "run", "order_id"), table_field="table")
    transaction = sink.begin_transaction(_label())
    batch = {"table": [ORDERS, CLICKS], "run": ["r", "s"], "order_id": [1, 2]}
    sink.invoke_batch(transaction, pyarrow.RecordBatch.from_pydict(batch))
    sink.commit(sink.pre_commit(transaction) or [])
    assert emulated.cluster.rows("shop", ORDERS) == [("r", 1, None, None)]
    assert emulated.cluster.rows("shop", CLICKS) == [("s", 2, None, None)]


def test_rows_that_are_missing_are_noticed_before_anything_is_decided(
    emulated: Emulated, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was prepared must be what was sent: a load in between that got lost, or came twice, is rolled back."""
    database = emulated.database()
    sink = _opened(database.server)
    transaction = _written(database, sink, (1, "pen", 3), (2, "ink", 4))
    monkeypatch.setattr(sink.rows.__class__, "body", lambda self, rows: self._joined(rows[:1]))
    with pytest.raises(
        StoreUnavailable, match=r"has 1 rows of table 'stormline_orders', .*expected 2; it is rolled back"
    ):
        sink.pre_commit(transaction)
    sink.roll_back(transaction)
    assert list(emulated.cluster.states("shop").values()) == ["ABORTED"]


def test_rows_that_are_filtered_count_where_that_is_wanted(emulated: Emulated) -> None:
    """max_filter_ratio; without it, they are refused."""
    database = emulated.database()
    sink = _opened(database.server, rows=CsvRows(parameters={"max_filter_ratio": "0.5"}))
    handle = sink.pre_commit(_written(database, sink, (1, "pen", 3), (None, "ink", 4)))
    assert sink.commit(handle or []) is CommitOutcome.DONE
    assert database.rows() == [[1, "pen", 3]]
    strict = _opened(database.server)
    with pytest.raises(StarRocksRefused, match=r"too many filtered rows: NULL value in non-nullable column 'order_id'"):
        strict.pre_commit(_written(database, strict, (None, "ink", 4), number=2))


@pytest.mark.parametrize("operation", ["begin", "load", "prepare"])
def test_an_attempt_that_fails_leaves_nothing_and_the_next_one_is_there_once(
    emulated: Emulated, operation: str
) -> None:
    """Also where it was only the answer that got lost."""
    database = emulated.database()
    sink = _opened(database.server)
    emulated.cluster.faults.add(Fault(operation, "after"))
    failed = _written(database, sink, (1, "pen", 3))
    with pytest.raises(StoreUnavailable):
        sink.pre_commit(failed)
    sink.roll_back(failed)
    assert list(emulated.cluster.states("shop").values()) == ["ABORTED"]
    handle = sink.pre_commit(_written(database, sink, (1, "pen", 3), number=2))
    assert sink.commit(handle or []) is CommitOutcome.DONE
    assert database.rows() == [[1, "pen", 3]]


def test_what_cannot_be_rolled_back_now_is_left_to_the_sweep(
    emulated: Emulated, caplog: pytest.LogCaptureFixture
) -> None:
    """It is listed by the topology's prefix, begun or prepared, and dropped."""
    database = emulated.database()
    sink = _opened(database.server)
    transaction = _written(database, sink, (1, "pen", 3))
    sink.pre_commit(transaction)
    emulated.servers.stop("front")
    sink.roll_back(transaction)
    assert "no answer: " in caplog.text
    emulated.servers.start("front")
    begun = _written(database, sink, (2, "ink", 4), number=2)
    sink._flush(begun.loads[ORDERS])
    database.client.begin("somebody-elses", ORDERS)
    database.client.begin(labels_begin("orders") + "nothing-of-ours", ORDERS)
    found = list(sink.list_prepared(labels_begin("orders")) or ())
    assert sorted((one.label, one.handle) for one in found) == [
        (label.text, [f"{label.text}-0"]) for label in (_label(1, database.run), _label(2, database.run))
    ]
    for one in found:
        sink.recover_and_abort(one.handle)
    assert list(sink.list_prepared(labels_begin("orders")) or ()) == []
    assert emulated.cluster.states("shop")["somebody-elses"] == "PREPARE"


def test_a_sink_that_may_not_list_says_so_once(emulated: Emulated, caplog: pytest.LogCaptureFixture) -> None:
    """None: StarRocks' time-outs have to do it."""
    emulated.cluster.users["loader"] = ""
    server = emulated.server()
    sink = _opened(StarRocks(server.url.replace("root@", "loader@")))
    assert [sink.list_prepared("") for _ in range(3)] == [None] * 3
    assert caplog.text.count("user 'loader' may not see what runs (show_proc, which wants cluster_admin)") == 1


def test_the_topology_is_warned_by_the_servers_own_limit() -> None:
    """`prepared_timeout_secs`: a sink of another one has another."""
    assert StreamLoadSink(NOWHERE, ORDERS).prepared_limit_secs == 86_400
    assert StreamLoadSink(StarRocks(NOWHERE.url, prepared_timeout_secs=60), ORDERS).prepared_limit_secs == 60


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"server": "starrocks://…"}, r"server is '.*', expected StarRocks\('starrocks://user@host:8030/database'\)"),
        ({"table": ""}, r"table is '' and table_field None, expected one of them"),
        ({"table_field": "t"}, r"table is 'stormline_orders' and table_field 't', expected one of them"),
        ({"fields": "run"}, r"fields is 'run', expected names in a list"),
        ({"columns": ["a b"]}, r"columns is \['a b'\], expected names in a list, of letters, digits and _"),
        ({"fields": ["a"], "columns": ["a", "b"]}, r"1 fields are to be written into 2 columns"),
        ({"rows": "csv"}, r"rows is 'csv', expected CsvRows\(…\) or JsonRows\(…\)"),
        ({"flush_bytes": 0}, r"flush_bytes is 0, expected a number of bytes, at least 1"),
    ],
)
def test_arguments_that_do_not_go_together_are_refused(how: dict[str, Any], message: str) -> None:
    """When it is declared: nothing runs."""
    given: dict[str, Any] = {"server": NOWHERE, "table": ORDERS, **how}
    with pytest.raises(InvalidStarRocks, match=message):
        StreamLoadSink(**given)


def test_fields_that_are_no_columns_are_refused_before_anything_is_loaded() -> None:
    """When the sink is opened; the message says what to write."""
    with pytest.raises(InvalidStarRocks, match=r"\['run', 'order id'\] for the fields .*say which: fields="):
        _opened(NOWHERE, ORDERS, Fields("attempt", "run", "order id"))
    with pytest.raises(InvalidStarRocks, match=r"has the columns \['run'\] for the fields \['run', 'order_id'\]"):
        _opened(NOWHERE, ORDERS, Fields("attempt", "run", "order_id"), columns=["run"])


def test_two_streams_with_other_fields_do_not_mix_in_one_table() -> None:
    """Their loads would have other parameters, which StarRocks refuses."""
    sink = _opened(NOWHERE)
    transaction = sink.begin_transaction(_label())
    sink.invoke(transaction, _tuple("r", 1, "pen", 3))
    with pytest.raises(InvalidStarRocks, match=r"is given the columns \['run', .*by another stream; all loads"):
        sink.invoke(transaction, _tuple(1, "r", fields=Fields("attempt", "order_id", "run")))


def test_a_table_that_is_no_name_and_too_many_of_them_are_refused() -> None:
    """Each is a transaction of StarRocks'."""
    sink = _opened(NOWHERE, "", Fields("attempt", "table", "a"), table_field="table")
    transaction = sink.begin_transaction(_label())
    for wrong in (None, "a/b", 3):
        with pytest.raises(RowUnwritable, match=r"field 'table' holds .*, expected the name of a table"):
            sink.invoke(transaction, _tuple(wrong, 1, fields=Fields("attempt", "table", "a")))
    for number in range(1000):
        sink.invoke(transaction, _tuple(f"t{number}", 1, fields=Fields("attempt", "table", "a")))
    with pytest.raises(StarRocksRefused, match=r"writes into 1000 tables and 't1000', .*write into fewer tables"):
        sink.invoke(transaction, _tuple("t1000", 1, fields=Fields("attempt", "table", "a")))
    longest = TransactionLabel(
        label_scope("t" * 128, "c" * 64), 10**12 - 1, 10**9 - 1, 10**16 - 1, 10**6 - 1, 2**64 - 1
    )
    assert len(f"{longest.text}-999") <= 128
