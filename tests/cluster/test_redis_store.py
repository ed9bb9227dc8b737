"""The contract of stores on a real Redis, and what only a server does."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest
import redis

from stormline.errors import CorruptRow, InvalidStore, StoreFailed, StoreMismatch, StoreUnavailable, TableMismatch
from stormline.state import RedisStore, TransactionalMap
from tests.contracts.grouped_commits import GroupedCommitsContract
from tests.contracts.inspected_store import InspectedStoreContract
from tests.contracts.store import StoreContract, got, incremented, process, successor, words
from tests.contracts.store_fences import StoreFencesContract
from tests.contracts.stored_values import StoredValuesContract
from tests.contracts.unread_puts import UnreadPutsContract
from tests.kits.stores import Process
from tests.services.redis import Redis

__all__ = ["process", "successor"]

_numbers = itertools.count(1)


@pytest.fixture
def store(redis_server: Redis) -> RedisStore:
    """A database of the test's own."""
    return RedisStore(f"redis://127.0.0.1:{redis_server.port}/{next(_numbers)}", timeout_secs=3)


@pytest.fixture
def client(store: RedisStore) -> Iterator[Any]:
    with redis.Redis.from_url(store.url) as made:
        yield made


class TestRedisStore(
    StoreContract, StoreFencesContract, StoredValuesContract, UnreadPutsContract, GroupedCommitsContract
):
    def test_own_commands_are_done_with_the_commit_and_once(
        self, store: RedisStore, process: Process, successor: Process, client: Any
    ) -> None:
        def own(context: Any, attempt: Any) -> None:
            incremented(words(store), {"cat": 1})(context, attempt)
            with store.transaction(context, attempt) as pipeline:
                pipeline.incr("commits")

        def fails(context: Any, attempt: Any) -> None:
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            process.commit(1, own, fails)
        assert (client.get("commits"), client.keys()) == (None, [])
        process.commit(1, own)
        successor.commit(1, own)
        assert client.get("commits") == b"1"
        assert words(store).items() == {"cat": 1}

    @pytest.mark.parametrize("ends", ["execute", "reset"])
    def test_own_commands_that_are_run_or_forgotten_beforehand_stop_the_topology(
        self, store: RedisStore, process: Process, successor: Process, client: Any, ends: str
    ) -> None:
        def own(context: Any, attempt: Any) -> None:
            with store.transaction(context, attempt) as pipeline:
                pipeline.incr("commits")
                getattr(pipeline, ends)()

        with pytest.raises(StoreFailed, match=r"a pipeline of transaction\(\) of redis:.* is run or emptied, .*; l"):
            process.commit(1, own)
        assert client.get("commits") is None
        successor.commit(1, incremented(words(store), {"cat": 1}))
        assert words(store).items() == {"cat": 1}

    def test_where_two_drivers_store_at_once_one_is_replayed_and_finds_what_the_other_has_stored(
        self, store: RedisStore, process: Process, successor: Process
    ) -> None:
        counts = words(store)
        phase = process.begin(1)
        incremented(counts, {"cat": 1})(phase, phase.attempt)
        successor.commit(1, incremented(counts, {"cat": 1}))
        failure = phase.participants.commit(lambda: True)
        assert failure is not None
        assert "StoreUnavailable in commit of 'redis://" in failure.message
        assert "WatchError" in failure.message
        with pytest.raises(StoreMismatch, match="another driver has taken over"):
            process.commit(1, incremented(counts, {"cat": 1}))
        assert counts.items() == {"cat": 1}

    def test_a_server_that_was_killed_and_came_back_has_all_that_was_committed(
        self, store: RedisStore, process: Process, redis_server: Redis
    ) -> None:
        counts = words(store)
        process.commit(1, incremented(counts, {"cat": 1}))
        redis_server.kill()
        with pytest.raises(StoreUnavailable, match=r"is not available: ConnectionError: .*; the batch is replayed unt"):
            process.commit(2, incremented(counts, {"cat": 1}))
        redis_server.start()
        process.commit(2, incremented(counts, {"cat": 1}))
        assert counts.items() == {"cat": 2}

    def test_a_server_that_was_emptied_stops_the_topology(
        self, store: RedisStore, process: Process, client: Any
    ) -> None:
        process.commit(1, incremented(words(store), {"cat": 1}))
        client.flushdb()
        with pytest.raises(StoreMismatch, match=r"\(0: nothing\), and the next one to commit is 3: the database was r"):
            process.commit(3, incremented(words(store), {"cat": 1}))

    @pytest.mark.parametrize(
        ("held", "why"),
        [
            (b"many", r"'words' of redis://.* holds for key \('cat',\) what its map cannot have written"),
            (b"\x94\x91\xa1x\x01\xc0\xc0", r"column 'count' is a str, expected exactly int"),
            (b"\x94\x91\x01\xc0\xc0\xc0", r"no number of a transaction"),
        ],
    )
    def test_a_row_that_no_map_writes_stops_the_topology(
        self, store: RedisStore, process: Process, client: Any, held: bytes, why: str
    ) -> None:
        process.commit(1, incremented(words(store), {"cat": 1}))
        client.hset("words", "cat", held)
        with pytest.raises(CorruptRow, match=why):
            process.commit(2, got(words(store), ["cat"]))

    def test_what_others_have_put_there_is_told(self, store: RedisStore, process: Process, client: Any) -> None:
        client.set("words", "x")
        with pytest.raises(TableMismatch, match=r"key 'words' of redis://.* is a string, expected a hash, or nothing"):
            process.commit(1, incremented(words(store), {"cat": 1}))
        client.set("stormline_fence:topo:", "x")
        with pytest.raises(CorruptRow, match=r"key 'stormline_fence:topo:' of redis://.* holds b'x', expected four nu"):
            process.commit(1, incremented(words(store), {"cat": 1}))

    def test_a_key_that_no_map_writes_is_told(self, store: RedisStore, client: Any) -> None:
        client.hset("pairs", "x", "y")
        pairs = TransactionalMap(store, "pairs", key={"a": int, "b": int}, value={"x": int})
        with pytest.raises(CorruptRow, match=r"table 'pairs' of redis://.* holds a field b'x' that its map cannot hav"):
            pairs.items()

    def test_a_password_that_is_wrong_stops_the_topology(
        self, store: RedisStore, process: Process, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("STORE_PASSWORD", "hunter22hunter22")
        wrong = RedisStore(store.url.replace("//", "//nobody@"), password="env:STORE_PASSWORD")
        with pytest.raises(StoreFailed, match=r"fails in connecting: AuthenticationError"):
            process.commit(1, incremented(words(wrong), {"cat": 1}))


@pytest.mark.parametrize(
    "made",
    [
        lambda: RedisStore("redis://me:hunter22@db/0"),
        lambda: RedisStore("redis://db/0", password="hunter22"),
        lambda: RedisStore("mysql://me@db/x"),
        lambda: RedisStore("redis://db:port/0"),
        lambda: RedisStore(5),  # type: ignore[arg-type]
    ],
)
def test_a_url_that_is_none_or_holds_a_password_is_refused_and_not_shown(made: Any) -> None:
    with pytest.raises(InvalidStore, match=r"not shown here, expected redis://host:port/0") as caught:
        made()
    assert "hunter22" not in str(caught.value)


class TestInspectedRedisStore(InspectedStoreContract):
    pass
