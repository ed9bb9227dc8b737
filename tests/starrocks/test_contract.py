"""What the client promises of a StarRocks: the emulator, or a real server, whose URL is in STARROCKS_URL."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Any

import pytest

from stormline.state.errors import StoreUnavailable
from stormline.state.starrocks import CsvRows, JsonRows, Rows, StarRocks
from stormline.state.starrocks.client import Counted, LoadState
from stormline.state.starrocks.errors import LabelTaken, OutcomeUnknown, StarRocksRefused
from stormline.topology.two_phase_commit import CommitOutcome
from tests.kits.components import eventually
from tests.starrocks.conftest import COLUMNS, Database

ORDERS = "stormline_orders"
CSV = {"format": "csv", "column_separator": "\\x09"}


def _prepared(database: Database, *rows: tuple[Any, ...]) -> str:
    label = database.label()
    database.client.begin(label, ORDERS)
    database.client.load(label, ORDERS, database.csv(*rows), CSV)
    assert database.client.prepare(label) == Counted(len(rows), 0)
    return label


def _state(database: Database, label: str) -> LoadState:
    return database.client.state(label)[0]


def test_rows_become_visible_when_their_transaction_is_committed_and_not_before(database: Database) -> None:
    """Begin, load twice, prepare, commit: by any client, also one that has not begun it."""
    label = database.label()
    assert _state(database, label) is LoadState.UNKNOWN
    database.client.begin(label, ORDERS)
    database.client.load(label, ORDERS, database.csv((1, "pen", 3)), CSV)
    database.client.load(label, ORDERS, database.csv((2, "ink", 4), (3, "cap", 5)), CSV)
    assert _state(database, label) is LoadState.PREPARE
    assert database.client.prepare(label) == Counted(3, 0)
    assert (_state(database, label), database.rows()) == (LoadState.PREPARED, [])
    assert database.client.commit(label) is CommitOutcome.DONE
    eventually(lambda: _state(database, label) is LoadState.VISIBLE)
    assert database.rows() == [[1, "pen", 3], [2, "ink", 4], [3, "cap", 5]]


def test_to_commit_again_finds_that_it_is_committed(database: Database) -> None:
    """That is what makes a retry safe."""
    label = _prepared(database, (1, "pen", 3))
    assert database.client.commit(label) is CommitOutcome.DONE
    assert database.client.commit(label) is CommitOutcome.ALREADY
    eventually(lambda: database.rows() == [[1, "pen", 3]])


def test_what_is_rolled_back_is_lost_and_can_be_rolled_back_again(database: Database) -> None:
    """Prepared or not; and commit says LOST, never that it is done."""
    prepared, begun = _prepared(database, (1, "pen", 3)), database.label()
    database.client.begin(begun, ORDERS)
    for label in (prepared, begun, prepared, begun, database.label()):
        database.client.rollback(label)
    assert _state(database, prepared) is _state(database, begun) is LoadState.ABORTED
    assert database.client.commit(prepared) is CommitOutcome.LOST
    assert database.rows() == []


def test_what_is_committed_is_not_rolled_back(database: Database) -> None:
    """It says so: no driver of ours aborts what one has decided."""
    label = _prepared(database, (1, "pen", 3))
    database.client.commit(label)
    with pytest.raises(
        StarRocksRefused, match=r"rollback of '.*': it is (COMMITTED|VISIBLE): somebody has committed it"
    ):
        database.client.rollback(label)


def test_a_label_is_used_once_unless_its_transaction_was_aborted(database: Database) -> None:
    """RUNNING or FINISHED; an aborted one's label is free."""
    label = _prepared(database, (1, "pen", 3))
    with pytest.raises(LabelTaken, match=r"LABEL_ALREADY_EXISTS: .*\(.*\); each label can be used once"):
        database.client.begin(label, ORDERS)
    database.client.commit(label)
    with pytest.raises(LabelTaken):
        database.client.begin(label, ORDERS)
    other = _prepared(database, (2, "ink", 4))
    database.client.rollback(other)
    database.client.begin(other, ORDERS)
    database.client.rollback(other)


def test_nothing_to_prepare_is_an_error_that_aborts(database: Database) -> None:
    """Who has written nothing must not begin."""
    label = database.label()
    database.client.begin(label, ORDERS)
    with pytest.raises(StoreUnavailable, match=r"prepare of '.*hasn't send any data yet"):
        database.client.prepare(label)
    eventually(lambda: _state(database, label) is LoadState.ABORTED)


def test_what_is_prepared_takes_no_more_rows(database: Database) -> None:
    """The load fails, the transaction does not."""
    label = _prepared(database, (1, "pen", 3))
    with pytest.raises(StoreUnavailable, match="the batch is replayed"):
        database.client.load(label, ORDERS, database.csv((2, "ink", 4)), CSV)
    assert database.client.commit(label) is CommitOutcome.DONE
    eventually(lambda: database.rows() == [[1, "pen", 3]])


def test_all_loads_of_a_transaction_have_the_same_parameters(database: Database) -> None:
    """Another separator aborts it."""
    label = database.label()
    database.client.begin(label, ORDERS)
    database.client.load(label, ORDERS, database.csv((1, "pen", 3)), CSV)
    with pytest.raises(StarRocksRefused, match="load request not equal last"):
        database.client.load(label, ORDERS, b"x", {**CSV, "column_separator": ","})
    eventually(lambda: _state(database, label) is LoadState.ABORTED)


def test_a_transaction_has_one_table(database: Database) -> None:
    """Another one's rows are refused, and it goes on."""
    label = database.label()
    database.client.begin(label, ORDERS)
    with pytest.raises(StarRocksRefused, match=r"INVALID_ARGUMENT: .*table stormline_clicks not equal"):
        database.client.load(label, "stormline_clicks", database.csv((1, "pen", 3)), CSV)
    database.client.load(label, ORDERS, database.csv((1, "pen", 3)), CSV)
    assert database.client.prepare(label) == Counted(1, 0)
    database.client.rollback(label)


def test_rows_that_do_not_fit_are_refused_unless_some_may_be_left_out(database: Database) -> None:
    """A NULL for a column that has none; the numbers say how many."""
    lines = database.csv((1, "pen", 3)) + f"{database.run}\t\\N\tink\t4\n".encode()
    label, filtering = database.label(), database.label()
    database.client.begin(label, ORDERS)
    database.client.load(label, ORDERS, lines, CSV)
    with pytest.raises(StarRocksRefused, match=r"too many filtered rows.*a replay would send the same rows"):
        database.client.prepare(label)
    database.client.begin(filtering, ORDERS)
    database.client.load(filtering, ORDERS, lines, {**CSV, "max_filter_ratio": "0.5"})
    assert database.client.prepare(filtering) == Counted(1, 1)
    database.client.rollback(filtering)


def test_an_unknown_label_is_not_taken_for_a_lost_one(database: Database) -> None:
    """It may have been committed, and forgotten since."""
    with pytest.raises(
        OutcomeUnknown, match=r"its state is UNKNOWN.*label_keep_max_num.*look for its rows in the table"
    ):
        database.client.commit(database.label())


def test_what_is_not_over_is_listed_by_its_prefix(database: Database) -> None:
    """By who may see it: root may."""
    begun, prepared, aborted = database.label(), _prepared(database, (1, "pen", 3)), _prepared(database, (2, "ink", 4))
    database.client.begin(begun, ORDERS)
    database.client.rollback(aborted)
    listed = database.client.running(f"stormline-{database.run}-")
    assert sorted(listed or ()) == [(begun, LoadState.PREPARE), (prepared, LoadState.PREPARED)]
    assert database.client.running(f"stormline-{database.run}-2-") == []
    for label in (begun, prepared):
        database.client.rollback(label)
    assert database.client.running(f"stormline-{database.run}-") == []


def test_a_table_or_a_database_that_is_not_there_is_refused(database: Database) -> None:
    """A replay would find none either."""
    with pytest.raises(StarRocksRefused, match="check database, tables, and that the user may INSERT"):
        database.client.begin(database.label(), "stormline_nowhere")
    host, port = database.server.front_ends[0]
    elsewhere = StarRocks(
        f"starrocks://{database.server.user}@{host}:{port}/stormline_nowhere", database.server.password
    )
    with pytest.raises(StarRocksRefused, match="stormline_nowhere"):
        elsewhere.open_client().begin(database.label(), ORDERS)


def test_a_stranger_is_refused(database: Database) -> None:
    """With what to check."""
    host, port = database.server.front_ends[0]
    stranger = StarRocks(f"starrocks://stormline_nobody@{host}:{port}/{database.server.database}").open_client()
    with pytest.raises(StarRocksRefused, match=r"check (user and password|database, tables)"):
        stranger.begin(database.label(), ORDERS)


FORMATS: dict[str, Rows] = {
    "csv": CsvRows(),
    "other separators": CsvRows(column_separator="\x01", row_delimiter="\x02\r\n"),
    "commas": CsvRows(column_separator=","),
    "csv, gzip": CsvRows(compression="gzip"),
    "csv, lz4": CsvRows(compression="lz4_frame"),
    "csv, unquoted": CsvRows(column_separator="\x01", row_delimiter="\x02", quoted=False),
    "json": JsonRows(),
    "json, gzip": JsonRows(compression="gzip"),
    "json, lz4": JsonRows(compression="lz4_frame"),
}
TEXTS = ["pen", "", 'a "pen"', "pen,\tink\ncap\\", "Füller 🖋", None, "2026-11-23 00:00:00", "1.50", " pen ", "\\x01"]


@pytest.mark.parametrize("rows", FORMATS.values(), ids=FORMATS)
def test_a_row_comes_out_as_it_went_in_by_each_format(database: Database, rows: Rows) -> None:
    """Also one that holds separators, quotation marks, nothing, or other scripts; in several loads."""
    values: list[Any] = [*TEXTS[:6], datetime(2026, 11, 23), Decimal("1.50"), *TEXTS[8:]]
    label = database.label()
    database.client.begin(label, ORDERS)
    lines = [rows.encode(COLUMNS, (database.run, number, value, number)) for number, value in enumerate(values)]
    for part in (lines[:3], lines[3:4], lines[4:]):
        database.client.load(label, ORDERS, rows.body(part), rows.headers(COLUMNS))
    assert database.client.prepare(label) == Counted(len(values), 0)
    database.client.commit(label)
    eventually(lambda: database.rows() == [[number, text, number] for number, text in enumerate(TEXTS)])
