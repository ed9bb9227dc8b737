"""What time, restarts and lost answers do to transactions, and what the client says then."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest

from stormline.state.errors import StoreUnavailable
from stormline.state.starrocks.client import Counted, LoadState, StreamLoadClient
from stormline.state.starrocks.errors import LabelTaken, OutcomeUnknown
from stormline.topology.two_phase_commit import CommitOutcome
from tests.starrocks.conftest import Database, Emulated
from tests.starrocks.faults import Fault, When

ORDERS = "stormline_orders"


def _begun(database: Database, label: str = "one") -> StreamLoadClient:
    database.client.begin(label, ORDERS)
    database.client.load(label, ORDERS, database.csv((1, "pen", 3)), {})
    return database.client


def _prepared(database: Database, label: str = "one") -> StreamLoadClient:
    client = _begun(database, label)
    assert client.prepare(label) == Counted(1, 0)
    return client


# ---------------------------------------------------------------------------------------- time


def test_what_is_not_prepared_in_time_is_aborted(emulated: Emulated) -> None:
    """`timeout` of begin: 600 s, unless it says otherwise."""
    _begun(emulated.database(), "as-ever")
    _begun(emulated.database(load_timeout_secs=60), "soon")
    emulated.cluster.advance(61)
    assert emulated.cluster.states("shop") == {"as-ever": "PREPARE", "soon": "ABORTED"}
    emulated.cluster.advance(540)
    assert emulated.cluster.states("shop") == {"as-ever": "ABORTED", "soon": "ABORTED"}


def test_what_is_idle_is_rolled_back_and_a_load_begins_to_count_anew(emulated: Emulated) -> None:
    """`idle_transaction_timeout`: what a killed process left is gone soon."""
    database = emulated.database(idle_timeout_secs=60)
    client = _begun(database)
    emulated.cluster.advance(40)
    client.load("one", ORDERS, database.csv((2, "ink", 4)), {})
    emulated.cluster.advance(40)
    assert client.state("one") == (LoadState.PREPARE, "")
    emulated.cluster.advance(21)
    assert client.state("one") == (LoadState.ABORTED, "idle transaction timeout")
    with pytest.raises(
        StoreUnavailable, match=r"TXN_NOT_EXISTS: .*took longer than its time-outs; the batch is replayed"
    ):
        client.load("one", ORDERS, database.csv((3, "cap", 5)), {})


def test_what_is_prepared_and_not_committed_in_time_is_lost(
    emulated: Emulated, caplog: pytest.LogCaptureFixture
) -> None:
    """`prepared_timeout`: a day, unless the server is declared with another; the one case that is LOST."""
    client = _prepared(emulated.database(prepared_timeout_secs=3600))
    _prepared(emulated.database(), "day")
    emulated.cluster.advance(3601)
    assert client.commit("one") is CommitOutcome.LOST
    assert "Can not commit ABORTED transaction" in caplog.text
    assert "it was aborted: prepared timeout by txn manager" in caplog.text
    assert client.commit("day") is CommitOutcome.DONE


def test_a_label_that_is_forgotten_makes_the_outcome_unknown(emulated: Emulated) -> None:
    """By age, 12 hours, or by count, 1000: then a begin succeeds again, and a commit must not say anything."""
    client = _prepared(emulated.database())
    assert client.commit("one") is CommitOutcome.DONE
    emulated.cluster.advance(43_199)
    assert client.commit("one") is CommitOutcome.ALREADY
    emulated.cluster.advance(2)
    with pytest.raises(OutcomeUnknown, match=r"No transaction found.*; its state is UNKNOWN"):
        client.commit("one")
    client.begin("one", ORDERS)
    emulated.cluster.limits.label_keep_max_num = 2
    for label in ("two", "three", "four"):
        _prepared(emulated.database(), label).commit(label)
    emulated.cluster.advance(1)
    states = {"one": "PREPARE", "three": "VISIBLE", "four": "VISIBLE"}
    assert emulated.cluster.states("shop") == states  # what runs is never forgotten


def test_too_many_running_transactions_are_told_of_with_the_remedy(emulated: Emulated) -> None:
    """Aborted and committed ones do not count."""
    emulated.cluster.limits.max_running_txn_num_per_db = 2
    _prepared(emulated.database(), "one")
    _begun(emulated.database(), "two")
    client = emulated.database().client
    with pytest.raises(StoreUnavailable, match=r"larger than limit 2; .*below max_running_txn_num_per_db"):
        client.begin("three", ORDERS)
    client.commit("one")
    client.begin("three", ORDERS)


def test_what_is_committed_and_not_yet_visible_is_done(emulated: Emulated) -> None:
    """A publish that takes long is answered FAILED; but nobody can take it back."""
    database = emulated.database()
    client = _prepared(database)
    emulated.cluster.publish(False)
    assert client.commit("one") is CommitOutcome.DONE
    assert client.state("one") == (LoadState.COMMITTED, "")
    assert client.commit("one") is CommitOutcome.ALREADY
    assert database.rows() == []
    emulated.cluster.publish(True)
    assert database.rows() == [[1, "pen", 3]]


# ---------------------------------------------------------------------------------------- restarts


def test_a_back_end_that_restarts_forgets_what_is_not_prepared(emulated: Emulated) -> None:
    """The front end shows PREPARE until a time-out; rollback is done by _cancel, and the label is free."""
    database = emulated.database()
    client = _begun(database)
    emulated.cluster.restart_back_end(0)
    assert client.state("one") == (LoadState.PREPARE, "")
    for attempt in (lambda: client.load("one", ORDERS, b"x\n", {}), lambda: client.prepare("one")):
        with pytest.raises(StoreUnavailable, match=r"the back end that held it was restarted, or it took longer"):
            attempt()
    client.rollback("one", ORDERS)
    assert client.state("one") == (LoadState.ABORTED, "user cancel")
    client.begin("one", ORDERS)


def test_what_is_prepared_outlives_both_ends(emulated: Emulated) -> None:
    """That is what a prepare is for."""
    database = emulated.database()
    client = _prepared(database)
    emulated.cluster.restart_back_end(0)
    emulated.cluster.restart_front_end()
    assert client.state("one") == (LoadState.PREPARED, "")
    assert client.commit("one") is CommitOutcome.DONE
    assert database.rows() == [[1, "pen", 3]]


def test_a_front_end_that_restarts_forgets_what_is_not_prepared(emulated: Emulated) -> None:
    """It writes a transaction first when it is prepared; so there is nothing to roll back."""
    client = _begun(emulated.database())
    emulated.cluster.restart_front_end()
    assert client.state("one") == (LoadState.UNKNOWN, "")
    with pytest.raises(StoreUnavailable, match=r"Can't find the transaction .*the batch is replayed"):
        client.prepare("one")
    client.rollback("one")


def test_nobody_is_there_and_then_it_goes_on(emulated: Emulated) -> None:
    """The front end away: each call says that it is tried again, as a commit is."""
    database = emulated.database()
    client = _prepared(database)
    emulated.servers.stop("front")
    for attempt in (lambda: client.commit("one"), lambda: client.rollback("one"), lambda: client.begin("two", ORDERS)):
        with pytest.raises(StoreUnavailable, match=r"no answer: .*; it is tried again"):
            attempt()
    emulated.servers.start("front")
    assert client.commit("one") is CommitOutcome.DONE


def test_a_back_end_that_is_away_is_told_of(emulated: Emulated) -> None:
    """The redirect leads to nobody; what is prepared does not need it."""
    client = _prepared(emulated.database())
    emulated.servers.stop("back-0")
    emulated.servers.stop("back-1")
    with pytest.raises(StoreUnavailable, match="no answer: "):
        client.begin("two", ORDERS)
    assert client.commit("one") is CommitOutcome.DONE


# ---------------------------------------------------------------------------------------- lost answers


OPERATIONS = ("begin", "load", "prepare", "commit")


@pytest.mark.parametrize(("operation", "when"), list(itertools.product(OPERATIONS, ("before", "after"))))
def test_whatever_answer_is_lost_rows_are_there_once_or_it_is_known_that_they_are_not(
    emulated: Emulated, operation: str, when: When
) -> None:
    """As the sink does it: what fails before the decision is rolled back and done anew; a commit is asked again."""
    database = emulated.database()
    emulated.cluster.faults.add(Fault(operation, when))
    if operation == "commit":
        client = _prepared(database)
        outcome = client.commit("one")
        assert outcome is (CommitOutcome.RETRY if when == "before" else CommitOutcome.DONE)
        if outcome is CommitOutcome.RETRY:
            assert client.commit("one") is CommitOutcome.DONE
    else:
        with pytest.raises(StoreUnavailable, match=rf"{operation} of 'one': no answer: "):
            _prepared(database)
        database.client.rollback("one", ORDERS)
        assert database.client.state("one")[0] in (LoadState.ABORTED, LoadState.UNKNOWN)
        assert _prepared(database, "two").commit("two") is CommitOutcome.DONE
    assert database.rows() == [[1, "pen", 3]]


def test_a_commit_is_not_believed_lost_while_the_front_end_cannot_be_asked(emulated: Emulated) -> None:
    """The answer lost, and the question about it too: tried again, and found done."""
    client = _prepared(emulated.database())
    emulated.cluster.faults.add(Fault("commit", "after"))
    emulated.cluster.faults.add(Fault("get_load_state", "before"))
    with pytest.raises(StoreUnavailable, match=r"get_load_state of 'one': no answer"):
        client.commit("one")
    assert client.commit("one") is CommitOutcome.ALREADY


def test_a_commit_that_is_refused_for_now_is_tried_again(emulated: Emulated) -> None:
    """TXN_IN_PROCESSING, or whatever else it says while it is PREPARED."""
    client = _prepared(emulated.database())
    emulated.cluster.faults.add(Fault("commit", "before", status="TXN_IN_PROCESSING", message="busy"))
    assert client.commit("one") is CommitOutcome.RETRY
    assert client.commit("one") is CommitOutcome.DONE


def _lost_rollback(emulated: Emulated) -> None:
    emulated.cluster.faults.add(Fault("rollback", "after"))


def _lost_cancel(emulated: Emulated) -> None:
    emulated.cluster.restart_back_end(0)
    emulated.cluster.faults.add(Fault("cancel", "after"))


def _refused_cancel(emulated: Emulated) -> None:
    emulated.cluster.restart_back_end(0)
    emulated.cluster.faults.add(Fault("cancel", "after", status="FAILED", message="somebody else was faster"))


@pytest.mark.parametrize("fault", [_lost_rollback, _lost_cancel, _refused_cancel])
def test_a_rollback_whose_answer_is_lost_is_done_where_the_state_says_so(
    emulated: Emulated, fault: Callable[[Emulated], None]
) -> None:
    """Also where _cancel says something else, and another job has aborted it."""
    client = _begun(emulated.database())
    fault(emulated)
    client.rollback("one", ORDERS)
    assert client.state("one")[0] is LoadState.ABORTED


def test_a_rollback_that_cannot_be_done_says_why(emulated: Emulated) -> None:
    """The first error, not that of _cancel; and it can be tried again."""
    client = _begun(emulated.database())
    emulated.cluster.restart_back_end(0)
    emulated.cluster.faults.add(Fault("cancel", "before", status="FAILED", message="not now"))
    with pytest.raises(StoreUnavailable, match=r"TXN_NOT_EXISTS: .*; its state is PREPARE; it is tried again"):
        client.rollback("one")
    client.rollback("one")
    prepared = _prepared(emulated.database(), "two")
    emulated.cluster.faults.add(Fault("rollback", "before", status="FAILED", message="not now"))
    with pytest.raises(StoreUnavailable, match=r"FAILED: not now; its state is PREPARED; it is tried again"):
        prepared.rollback("two")


def test_who_may_not_see_what_runs_is_not_told_a_lie(emulated: Emulated) -> None:
    """None: it cannot be known; not an empty list."""
    emulated.cluster.users["loader"] = ""
    server = emulated.server()
    loader = type(server)(server.url.replace("root@", "loader@")).open_client()
    loader.begin("one", ORDERS)
    assert loader.running("") is None
    assert emulated.database().client.running("o") == [("one", LoadState.PREPARE)]
    with pytest.raises(LabelTaken, match=r"\(RUNNING\)"):
        loader.begin("one", ORDERS)
