"""The contract of two-phase sinks on a real PostgreSQL and a real MariaDB: whatever gets lost, the outcome is told."""

from __future__ import annotations

import contextlib
import copy
import pickle
from collections.abc import Iterator
from typing import Any

import psycopg
import pyarrow
import pytest

from stormline import CommitOutcome, TransactionLabel
from stormline.errors import StoreFailed, StoreMismatch, StoreUnavailable
from stormline.state.xa import ledger
from stormline.state.xa.sink import ROWS_MAX, SQLTwoPhaseSink
from tests.cluster.two_phase_databases import MADE, TwoPhaseDatabase, row
from tests.kits.components import eventually

DONE, ALREADY, RETRY, LOST = CommitOutcome.DONE, CommitOutcome.ALREADY, CommitOutcome.RETRY, CommitOutcome.LOST


@pytest.fixture(params=["postgresql", "mariadb"])
def base(request: pytest.FixtureRequest) -> Iterator[TwoPhaseDatabase]:
    made = MADE[request.param](request.getfixturevalue(f"on_{request.param}"))
    yield made
    made.close()


@pytest.fixture
def sink(base: TwoPhaseDatabase) -> SQLTwoPhaseSink:
    return base.sink()


def label_of(handle: Any) -> TransactionLabel:
    label = TransactionLabel.read(handle[0])
    assert label is not None
    return label


def test_rows_are_visible_from_the_commit_on_which_another_process_may_do(base: TwoPhaseDatabase) -> None:
    handle = base.prepared(base.sink(), ["ann", 1], ["bob", 2])
    assert base.rows() == []
    assert base.sink().commit(handle) is DONE
    assert base.rows() == [("ann", 1), ("bob", 2)]
    assert base.left() == []


def test_what_is_committed_twice_was_committed_before(base: TwoPhaseDatabase, sink: SQLTwoPhaseSink) -> None:
    handle = base.prepared(sink, ["ann", 1])
    assert [sink.commit(handle), sink.commit(handle), base.sink().recover_and_commit(handle)] == [
        DONE,
        ALREADY,
        ALREADY,
    ]
    assert base.rows() == [("ann", 1)]


def test_what_is_aborted_is_proven_lost_and_can_be_aborted_again(base: TwoPhaseDatabase, sink: SQLTwoPhaseSink) -> None:
    handle = base.prepared(sink, ["ann", 1])
    sink.abort(handle)
    sink.abort(handle)
    base.sink().recover_and_abort(handle)
    assert sink.commit(handle) is LOST
    assert base.rows() == []


def test_what_is_committed_stays_so_when_it_is_aborted(base: TwoPhaseDatabase, sink: SQLTwoPhaseSink) -> None:
    handle = base.prepared(sink, ["ann", 1])
    assert sink.commit(handle) is DONE
    sink.abort(handle)
    assert sink.commit(handle) is ALREADY
    assert base.rows() == [("ann", 1)]


def test_what_somebody_rolled_back_by_hand_is_lost_and_the_log_says_so(
    base: TwoPhaseDatabase, sink: SQLTwoPhaseSink, caplog: pytest.LogCaptureFixture
) -> None:
    handle = base.prepared(sink, ["ann", 1])
    base.end_by_hand(label_of(handle))
    assert sink.commit(handle) is LOST
    assert "and its ledger no committed one: it was rolled back, by hand or with a copy" in caplog.text
    assert handle[0] in caplog.text


def test_a_transaction_that_wrote_nothing_has_no_handle(base: TwoPhaseDatabase) -> None:
    def look(db: Any, rows: Any) -> None:
        with db.cursor() as cursor:
            cursor.execute("SELECT * FROM entries")

    assert base.prepared(base.sink()) is None
    assert base.prepared(base.sink(None, write=look), ["ann", 1]) is None
    assert base.left() == []


def test_what_is_prepared_is_listed_with_its_handle_and_its_age(base: TwoPhaseDatabase, sink: SQLTwoPhaseSink) -> None:
    handles = [base.prepared(sink, ["ann", txid], txid=txid) for txid in (1, 2)]
    base.prepared(base.sink(), ["bob", 3], txid=3)
    listed = {found.label: found for found in sink.list_prepared(base.scope)}
    assert len(listed) == 3
    for handle in handles:
        found = listed[handle[0]]
        assert found.handle == handle
        assert found.age_secs is not None
        assert 0 <= found.age_secs < 600
    assert [found.label for found in sink.list_prepared(handles[0][0])] == [handles[0][0]]
    assert list(sink.list_prepared("somebody_else-")) == []


def test_a_reply_to_prepare_that_is_lost_leaves_nothing_after_the_roll_back(base: TwoPhaseDatabase) -> None:
    proxy = base.proxy(base.prepares)
    sink = base.sink(port=proxy.port)
    transaction = sink.begin_transaction(base.label())
    sink.invoke(transaction, row(1, "ann", 1))
    proxy.lose("reply")
    with pytest.raises(StoreUnavailable, match="is not available"):
        sink.pre_commit(transaction)
    assert proxy.lost == 1
    eventually(lambda: base.left() == [transaction.label.text])
    sink.roll_back(transaction)
    assert base.left() == []
    assert base.rows() == []


def test_a_request_to_prepare_that_is_lost_leaves_nothing(base: TwoPhaseDatabase) -> None:
    proxy = base.proxy(base.prepares)
    sink = base.sink(port=proxy.port)
    proxy.lose("request")
    with pytest.raises(StoreUnavailable, match="is not available"):
        base.prepared(sink, ["ann", 1])
    assert proxy.lost == 1
    assert base.left() == []


@pytest.mark.parametrize(("lost", "outcome"), [("request", DONE), ("reply", ALREADY)])
def test_a_commit_that_is_lost_on_its_way_is_asked_for_again(
    base: TwoPhaseDatabase, lost: str, outcome: CommitOutcome
) -> None:
    proxy = base.proxy(base.commits)
    sink = base.sink(port=proxy.port)
    handle = base.prepared(base.sink(), ["ann", 1])
    proxy.lose(lost)
    with pytest.raises(StoreUnavailable, match="is not available"):
        sink.commit(handle)
    assert proxy.lost == 1
    eventually(lambda: base.rows() == ([] if lost == "request" else [("ann", 1)]))
    assert sink.commit(handle) is outcome
    assert base.rows() == [("ann", 1)]


@pytest.mark.parametrize("lost", ["request", "reply"])
def test_an_abort_that_is_lost_on_its_way_is_asked_for_again(base: TwoPhaseDatabase, lost: str) -> None:
    proxy = base.proxy(base.aborts)
    sink = base.sink(port=proxy.port)
    handle = base.prepared(base.sink(), ["ann", 1])
    proxy.lose(lost)
    with pytest.raises(StoreUnavailable, match="is not available"):
        sink.abort(handle)
    assert proxy.lost == 1
    sink.abort(handle)
    assert base.left() == []
    assert sink.commit(handle) is LOST


def test_connections_that_are_cut_are_replaced(base: TwoPhaseDatabase) -> None:
    proxy = base.proxy(b"none of them")
    writer, driver = base.sink(port=proxy.port), base.sink(port=proxy.port)
    assert driver.commit(base.prepared(writer, ["ann", 1], txid=1)) is DONE
    proxy.cut()
    assert driver.commit(base.prepared(writer, ["bob", 2], txid=2)) is DONE
    assert base.rows() == [("ann", 1), ("bob", 2)]


def test_a_handle_of_another_database_is_never_taken_for_lost(base: TwoPhaseDatabase, sink: SQLTwoPhaseSink) -> None:
    handle = base.prepared(sink, ["ann", 1])
    other = type(base.database)(base.database.server)  # type: ignore[arg-type]
    elsewhere = type(base)(other)  # type: ignore[call-arg]
    try:
        for call in (elsewhere.sink().commit, elsewhere.sink().abort):
            with pytest.raises(StoreMismatch, match=r"was prepared in the database of id '.*let the store lead to"):
                call(handle)
        assert list(elsewhere.sink().list_prepared(base.scope)) == []
    finally:
        elsewhere.close()
        other.close()
    assert sink.commit(handle) is DONE


def test_what_no_such_sink_has_pre_committed_is_told(base: TwoPhaseDatabase, sink: SQLTwoPhaseSink) -> None:
    for handle in ("orders", ["no label", "x"], [base.label().text, 5], None):
        with pytest.raises(StoreMismatch, match=r"is no handle of \w+Sink, which is a label and a database's id"):
            sink.commit(handle)


def test_a_label_that_is_in_use_is_refused(base: TwoPhaseDatabase, sink: SQLTwoPhaseSink) -> None:
    label = base.label()
    base.prepare_by_hand(label)

    def write() -> None:
        transaction = sink.begin_transaction(label)
        try:
            sink.invoke(transaction, row(1, "ann", 1))
            sink.pre_commit(transaction)
        finally:
            sink.roll_back(transaction)

    with pytest.raises(StoreFailed, match=r"already (in use|exists)"):
        write()
    with contextlib.suppress(psycopg.errors.UndefinedObject):  # who rolls back takes it for its own
        base.end_by_hand(label)
    assert base.rows() == []


def test_batches_that_write_the_same_key_block_one_another_until_the_later_one_fails(base: TwoPhaseDatabase) -> None:
    base.make_table("keyed")
    early = base.prepared(base.sink("keyed"), ["ann", 1], txid=1)
    with pytest.raises(StoreUnavailable, match=rf"locked by somebody else \({base.locked}.*max.spout.pending to 1, or"):
        base.prepared(base.sink("keyed"), ["ann", 2], txid=2)
    assert base.left() == [early[0]], "the later one is rolled back, the earlier one is as it was"
    assert base.sink().commit(early) is DONE
    assert base.rows("keyed") == [("ann", 1)]


def test_own_sql_that_waits_for_a_lock_is_a_replay(base: TwoPhaseDatabase) -> None:
    def raise_amount(db: Any, rows: Any) -> None:
        with db.cursor() as cursor:
            for who, amount in rows:
                cursor.execute("UPDATE keyed SET amount = amount + %s WHERE who = %s", [amount, who])

    base.make_table("keyed")
    base.sql("INSERT INTO keyed VALUES ('ann', 0)")
    early = base.prepared(base.sink(None, write=raise_amount), ["ann", 1], txid=1)
    later = base.sink(None, write=raise_amount)
    with pytest.raises(StoreUnavailable, match=rf"locked by somebody else \({base.locked}"):
        base.prepared(later, ["ann", 2], txid=2)
    assert base.sink().commit(early) is DONE
    assert base.sink().commit(base.prepared(later, ["ann", 2], txid=2)) is DONE
    assert base.rows("keyed") == [("ann", 3)]


@pytest.mark.parametrize("ends", ["COMMIT", "commit()"])
def test_own_sql_that_ends_the_transaction_stops_the_topology(base: TwoPhaseDatabase, ends: str) -> None:
    def write(db: Any, rows: Any) -> None:
        with db.cursor() as cursor:
            cursor.execute("INSERT INTO entries VALUES ('ann', 1)")
            if ends == "COMMIT":
                cursor.execute("COMMIT")
            else:
                db.commit()

    with pytest.raises(Exception, match=r"the transaction, by commit\(\)|XAER_RMFAIL"):
        base.prepared(base.sink(None, write=write), ["ann", 1])
    assert base.left() == []


def test_a_row_that_the_table_does_not_take_stops_the_topology(base: TwoPhaseDatabase, sink: SQLTwoPhaseSink) -> None:
    with pytest.raises(StoreFailed, match=r"fails in writing table 'entries': "):
        base.prepared(sink, ["ann", "many"])
    with pytest.raises(StoreFailed, match=r"fails in writing table 'nowhere': .*make the table before: the bolt only"):
        base.prepared(base.sink("nowhere"), ["ann", 1])
    assert base.left() == []


def test_a_role_without_rights_is_told_what_to_grant(base: TwoPhaseDatabase, sink: SQLTwoPhaseSink) -> None:
    handle = base.prepared(sink, ["ann", 1])
    user = f"poor_{base.scope[4:12]}"
    base.make_user(user)
    with pytest.raises(StoreFailed, match=r"in looking at the ledger: .*denied.*; grant the role"):
        base.prepared(base.sink(user=user), ["bob", 2])
    with pytest.raises(StoreFailed, match=r"in looking at the ledger: .*denied.*; grant the role"):
        base.sink(user=user).commit(handle)
    assert sink.commit(handle) is DONE


def test_a_server_that_is_away_is_a_replay(base: TwoPhaseDatabase) -> None:
    away = base.sink(port=1)
    with pytest.raises(StoreUnavailable, match="is not available"):
        away.begin_transaction(base.label())
    handle = base.prepared(base.sink(), ["ann", 1])
    for call in (away.commit, away.abort):
        with pytest.raises(StoreUnavailable, match="is not available"):
            call(handle)


def test_many_rows_and_several_streams_of_other_fields(base: TwoPhaseDatabase) -> None:
    sink = base.sink(columns=None)
    transaction = sink.begin_transaction(base.label())
    from stormline import Tuple

    for i in range(ROWS_MAX + 5):
        sink.invoke(transaction, Tuple.of([0, f"w{i}", i], ["tx", "who", "amount"]))
    sink.invoke(transaction, Tuple.of([0, -1, "last"], ["tx", "amount", "who"], stream="other"))
    sink.invoke(transaction, Tuple.of([0, "nobody"], ["tx", "who"], stream="third"))
    assert sink.commit(sink.pre_commit(transaction)) is DONE
    found = base.sql("SELECT count(*), min(amount), max(amount), count(amount) FROM entries")
    assert [tuple(found[0])] == [(ROWS_MAX + 7, -1, ROWS_MAX + 4, ROWS_MAX + 6)]


MANY = 1500


@pytest.mark.parametrize(
    ("values", "stored"),
    [
        (lambda i: (f"w{i}", i), ("w7", 7)),
        (lambda i: (i, i), ("7", 7)),
        (lambda i: (f"w{i}", str(i)), ("w7", 7)),
        (lambda i: (f"w{i}", 7 if i == 7 else None), ("w7", 7)),
    ],
    ids=["of their types", "a number as text", "a text as number", "nothing"],
)
def test_many_rows_are_stored_as_few_are_whatever_their_types(
    base: TwoPhaseDatabase, sink: SQLTwoPhaseSink, values: Any, stored: Any
) -> None:
    for txid in (1, 2):  # the second goes as the first had to
        assert sink.commit(base.prepared(sink, *map(values, range(MANY)), txid=txid)) is DONE
    assert len(base.rows()) == 2 * MANY
    assert base.rows().count(stored) == 2


def test_among_many_rows_one_that_the_table_does_not_take_stops_the_topology(base: TwoPhaseDatabase) -> None:
    base.sql("CREATE TABLE narrow (who varchar(5), amount integer)")
    good = [(f"w{i}", i) for i in range(MANY)]
    for bad in (("w", 2**31), ("w", -(2**40)), ("too long", 1)):
        with pytest.raises(StoreFailed, match="fails in writing table 'narrow': "):
            base.prepared(base.sink("narrow"), *good, bad)
    assert base.left() == []
    assert base.sink().commit(base.prepared(base.sink("narrow"), *good, ("last", 2**31 - 1))) is DONE
    assert base.sql("SELECT count(*), max(amount) FROM narrow") in ([(MANY + 1, 2**31 - 1)], ((MANY + 1, 2**31 - 1),))


def test_record_batches_are_written(base: TwoPhaseDatabase) -> None:
    sink = base.sink(columns=None)
    transaction = sink.begin_transaction(base.label())
    sink.invoke_batch(transaction, pyarrow.record_batch({"who": ["ann", "bob"], "amount": [1, None]}))
    assert sink.commit(sink.pre_commit(transaction)) is DONE
    assert base.sql("SELECT count(*), count(amount) FROM entries") in ([(2, 1)], ((2, 1),))


def test_several_transactions_are_written_side_by_side(base: TwoPhaseDatabase, sink: SQLTwoPhaseSink) -> None:
    begun = [sink.begin_transaction(base.label(txid)) for txid in (1, 2, 3)]
    for i, transaction in enumerate(begun):
        sink.invoke(transaction, row(0, "ann", i))
    sink.roll_back(begun[1])
    handles = [sink.pre_commit(transaction) for transaction in (begun[2], begun[0])]
    assert [sink.commit(handle) for handle in handles] == [DONE, DONE]
    assert base.rows() == [("ann", 0), ("ann", 2)]


def test_a_declared_sink_is_plain_data(base: TwoPhaseDatabase, sink: SQLTwoPhaseSink) -> None:
    for made in (copy.deepcopy(sink), pickle.loads(pickle.dumps(sink))):
        assert made.commit(base.prepared(made, ["ann", 1])) is DONE
        made.close()


def test_old_rows_of_the_ledger_are_removed_and_those_that_may_be_asked_for_stay(
    base: TwoPhaseDatabase, sink: SQLTwoPhaseSink, monkeypatch: pytest.MonkeyPatch
) -> None:
    from stormline.state.xa import sink as module

    monkeypatch.setattr(module, "FORGET_EVERY", 4)
    monkeypatch.setattr(module, "KEPT_TXIDS", 3)
    last = base.prepared(sink, ["ann", 99], txid=99)  # what is prepared holds no lock in the way of the others
    handles = [base.prepared(sink, ["ann", txid], txid=txid) for txid in range(1, 14)]
    assert {sink.commit(handle) for handle in handles} == {DONE}
    found = base.sql(f"SELECT txid FROM {ledger.LEDGER} WHERE scope = '{base.scope}' ORDER BY txid")
    assert [txid for (txid,) in found] == [10, 11, 12, 13]
    assert sink.commit(handles[-1]) is ALREADY
    assert sink.commit(last) is DONE


def test_a_ledger_that_was_emptied_is_another_database(base: TwoPhaseDatabase, sink: SQLTwoPhaseSink) -> None:
    handle = base.prepared(sink, ["ann", 1])
    assert sink.commit(handle) is DONE
    base.sql(f"DELETE FROM {ledger.LEDGER}")
    with pytest.raises(StoreMismatch, match="let the store lead to the database that it led to"):
        base.sink().commit(handle)
