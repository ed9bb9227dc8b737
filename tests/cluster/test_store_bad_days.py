"""Bad days of the servers that stores are on: each ends in a replay, after which every word counts once."""

from __future__ import annotations

import pytest

from tests.cluster.store_databases import StoreDatabase
from tests.kits.bad_days import Counts, Troubles, bad_day, counts_once, found_stored
from tests.kits.components import eventually

SHORT_SECS = 2.0
"""A store's time-out where a test waits for it."""


# ---------------------------------------------------------------------------------------- around the commit


@pytest.mark.parametrize(("lost", "found"), [("request", [False, False]), ("reply", [False, True])])
def test_a_connection_that_is_cut_around_the_commit_is_a_replay_which_finds_out_by_the_fence(
    database: StoreDatabase, lost: str, found: list[bool]
) -> None:
    with bad_day(database.store(), stored=lambda bolt: database.proxy.lose(lost)) as day:
        pass
    assert database.proxy.lost == 1
    assert (day.replays, found_stored(2)) == (1, found)
    counts_once(database.direct())


@pytest.mark.parametrize(
    ("lost", "stored"), [pytest.param("silent request", False, marks=pytest.mark.proof), ("silent reply", True)]
)
def test_a_connection_that_falls_silent_around_the_commit_is_given_up_in_time(
    database: StoreDatabase, lost: str, stored: bool
) -> None:
    """Nobody tells the server that its client has gone: it lets the fence go after a while by itself."""
    with bad_day(database.store(SHORT_SECS), stored=lambda bolt: database.proxy.lose(lost)) as day:
        pass
    assert database.proxy.lost == 1
    assert day.replays >= 1
    assert stored in found_stored(2)[1:]
    counts_once(database.direct())


# ---------------------------------------------------------------------------------------- the server


def test_a_server_that_is_killed_in_a_commit_and_comes_back_is_a_replay(database: StoreDatabase) -> None:
    with bad_day(database.store(), stored=lambda bolt: database.server.kill()) as day:
        eventually(lambda: day.replays >= 2)
        database.server.start()
    counts_once(database.direct())


@pytest.mark.proof
@pytest.mark.parametrize("point", ["begins", "stored"])
def test_a_server_that_answers_nothing_for_a_while_is_a_replay(database: StoreDatabase, point: str) -> None:
    troubles: Troubles = {point: lambda bolt: database.server.pause()}
    with bad_day(database.store(SHORT_SECS), None, **troubles) as day:
        try:
            eventually(lambda: day.replays >= 1)
        finally:
            database.server.resume()
    counts_once(database.direct())


def test_a_server_that_is_slow_is_waited_for(database: StoreDatabase) -> None:
    database.proxy.delay_secs = 0.01
    with bad_day(database.store()) as day:
        pass
    assert day.replays == 0
    counts_once(database.direct())


@pytest.mark.proof
def test_a_server_that_is_slower_than_the_time_out_is_a_replay_until_it_is_quicker(database: StoreDatabase) -> None:
    def slow(bolt: Counts) -> None:
        database.proxy.delay_secs = 2 * SHORT_SECS

    with bad_day(database.store(SHORT_SECS), begins=slow) as day:
        eventually(lambda: day.replays >= 1)
        database.proxy.delay_secs = 0.0
    counts_once(database.direct())


# ---------------------------------------------------------------------------------------- connections


def test_a_connection_that_the_server_closed_while_it_was_idle_is_replaced_without_a_replay(
    database: StoreDatabase,
) -> None:
    with bad_day(database.store(), begins=lambda bolt: database.close_connections()) as day:
        pass
    assert day.replays == 0
    counts_once(database.direct())


@pytest.mark.parametrize("point", ["begun", "stored"])
def test_a_connection_that_the_server_closed_in_a_commit_is_a_replay(database: StoreDatabase, point: str) -> None:
    troubles: Troubles = {point: lambda bolt: database.close_connections()}
    with bad_day(database.store(), None, **troubles) as day:
        pass
    assert (day.replays, found_stored(2)) == (1, [False, False])
    counts_once(database.direct())
