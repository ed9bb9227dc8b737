"""RedisStreamTransactionalSpout with a real Redis: each entry once; what is trimmed, deleted or made anew is told."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import redis

from stormline import FailedException, InProcessCluster
from stormline.errors import (
    BadEntry,
    CorruptData,
    EntriesLost,
    InvalidRedisSpout,
    InvalidStream,
    StormlineError,
    TopologyFailed,
)
from stormline.spouts.redis import RedisStreamTransactionalSpout
from stormline.spouts.redis.client import Client
from stormline.spouts.redis.positions import Range, streams_of
from stormline.testing import MemoryStateServer
from tests.kits.components import eventually
from tests.kits.sources import Sink, drain, new_sink, topology
from tests.services.free_port import free_port
from tests.services.redis import Redis

_numbers = itertools.count(450)
Add = Callable[..., list[str]]


@pytest.fixture
def url(redis_server: Redis) -> str:
    return redis_server.url(next(_numbers) % 500)


@pytest.fixture
def client(url: str) -> Iterator[Any]:
    with redis.Redis.from_url(url) as made:
        made.flushdb()
        yield made


@pytest.fixture
def sink() -> Sink:
    return new_sink()


def add(client: Any, *numbers: int, stream: str = "s") -> list[str]:
    return [client.xadd(stream, {"n": number, "word": f"w{number}"}).decode() for number in numbers]


def spout(url: str, streams: Any = "s", fields: Any = ("n",), **how: Any) -> RedisStreamTransactionalSpout:
    return RedisStreamTransactionalSpout(url, streams, fields, **{"types": {"n": int}, "entries_per_stream": 5, **how})


def stops(made: Any, match: str, server: MemoryStateServer | None = None) -> None:
    with pytest.raises(StormlineError, match=match):
        drain(made, server=server)


@pytest.mark.parametrize("tasks", [1, 2])
def test_each_entry_is_in_one_batch_though_batches_fail_and_commits_crash(
    url: str, client: Any, sink: Sink, tasks: int
) -> None:
    for stream in "abc":
        add(client, *range(13), stream=stream)
    server = MemoryStateServer()
    sink.crash_at = {1, 2}

    def made() -> Any:
        return spout(url, list("abc"), ["stream", "n", "word"])

    for _ in range(2):
        with pytest.raises(TopologyFailed, match="Crash"):
            drain(made(), tasks, server)
    drain(made(), tasks, server)
    add(client, 13, stream="b")
    drain(made(), tasks, server)
    expected = [(stream, n, f"w{n}") for stream in "abc" for n in range(13)] + [("b", 13, "w13")]
    assert sorted(sink.rows) == sorted(expected)
    assert len(sink.stored) == 4


def test_what_is_committed_may_be_trimmed(url: str, client: Any, sink: Sink) -> None:
    server = MemoryStateServer()
    ids = add(client, *range(12))
    drain(spout(url, fields=["entry_id", "n"]), server=server)
    assert sink.rows == list(zip(ids, range(12), strict=True))
    client.xtrim("s", minid=ids[9], approximate=False)
    client.xdel("s", ids[10])
    add(client, *range(12, 30))
    drain(spout(url, fields=["entry_id", "n"]), server=server)
    client.xtrim("s", maxlen=0, approximate=False)
    add(client, 30)
    drain(spout(url, fields=["entry_id", "n"]), server=server)
    assert [row[1] for row in sink.rows] == list(range(31))


def test_a_stream_that_had_been_trimmed_and_deleted_from_before_is_read_as_it_is(
    url: str, client: Any, sink: Sink
) -> None:
    ids = add(client, *range(30))
    client.xtrim("s", maxlen=20, approximate=False)
    client.xdel("s", ids[15], ids[29])
    drain(spout(url))
    assert sink.rows == [n for n in range(10, 29) if n != 15]


@pytest.mark.parametrize(("start", "first"), [("earliest", 0), ("latest", 5)])
def test_a_topology_begins_where_it_is_told_for_ever(url: str, client: Any, sink: Sink, start: str, first: int) -> None:
    server = MemoryStateServer()
    add(client, *range(5))
    drain(spout(url, start=start), server=server)
    add(client, *range(5, 9))
    drain(spout(url, start=start), server=server)
    assert sink.rows == list(range(first, 9))


def test_a_stream_that_is_not_there_yet_is_read_when_it_is(url: str, client: Any, sink: Sink) -> None:
    server = MemoryStateServer()
    drain(spout(url), server=server)
    add(client, 1, 2)
    drain(spout(url, ["s", "later"]), server=server)
    add(client, 3, stream="later")
    drain(spout(url, ["later", "s"], start="latest"), server=server)
    assert sink.rows == [1, 2, 3]


class TestGaps:
    """20 entries, of which 10 have been read; what happens then to the others."""

    @pytest.fixture
    def server(self, url: str, client: Any, sink: Sink) -> MemoryStateServer:
        server = MemoryStateServer()
        self.ids = add(client, *range(10))
        drain(spout(url), server=server)
        self.ids += add(client, *range(10, 20))
        return server

    def goes_on(self, url: str, sink: Sink, server: MemoryStateServer, *numbers: int) -> None:
        drain(spout(url, on_lost="continue"), server=server)
        assert sink.rows == [*range(10), *numbers]

    def test_entries_trimmed_before_they_were_read(
        self, url: str, client: Any, sink: Sink, server: MemoryStateServer
    ) -> None:
        client.xtrim("s", maxlen=8, approximate=False)
        why = rf"stream 's': 2 of the 10 entries after {self.ids[9]} are gone, trimmed or deleted before they were read"
        stops(spout(url), why, server)
        assert len(sink.rows) == 10
        self.goes_on(url, sink, server, *range(12, 20))

    def test_an_entry_deleted_in_the_middle(self, url: str, client: Any, sink: Sink, server: MemoryStateServer) -> None:
        client.xdel("s", self.ids[13])
        stops(
            spout(url),
            rf"entries after {self.ids[9]} were deleted before they were read, the last of them {self.ids[13]}",
            server,
        )
        self.goes_on(url, sink, server, *(n for n in range(10, 20) if n != 13))

    def test_an_entry_deleted_in_the_last_batch(
        self, url: str, client: Any, sink: Sink, server: MemoryStateServer
    ) -> None:
        client.xdel("s", self.ids[19])
        stops(spout(url, entries_per_stream=50), r"1 of the 10 entries after .* are gone", server)
        self.goes_on(url, sink, server, *range(10, 19))

    def test_all_of_them_deleted(self, url: str, client: Any, sink: Sink, server: MemoryStateServer) -> None:
        client.xdel("s", *self.ids[10:])
        stops(spout(url), r"10 of the 10 entries after .* are gone", server)
        self.goes_on(url, sink, server)
        add(client, 20)
        self.goes_on(url, sink, server, 20)

    def test_the_stream_deleted(self, url: str, client: Any, sink: Sink, server: MemoryStateServer) -> None:
        client.delete("s")
        stops(
            spout(url),
            r"stream 's' is gone, of which 10 entries had been added; it was deleted; pass on_lost='conti",
            server,
        )

    def test_the_stream_made_anew(self, url: str, client: Any, sink: Sink, server: MemoryStateServer) -> None:
        client.delete("s")
        add(client, *range(100, 103))
        why = rf"stream 's' was read up to {self.ids[9]}, its entry number 10, and now goes up to .*, number 3: it was"
        stops(spout(url), why, server)
        self.goes_on(url, sink, server, 100, 101, 102)

    def test_the_stream_made_anew_with_more_than_it_had(
        self, url: str, client: Any, sink: Sink, server: MemoryStateServer
    ) -> None:
        client.delete("s")
        add(client, *range(100, 130))
        stops(
            spout(url),
            r"stream 's' has 30 entries after .*, and 20 were added since it was read: it was made anew",
            server,
        )

    def test_ids_set_back(self, url: str, client: Any, sink: Sink, server: MemoryStateServer) -> None:
        client.delete("s")
        for number in range(30):
            client.xadd("s", {"n": number + 100}, id=f"1-{number + 1}")
        stops(
            spout(url),
            r"stream 's' was read up to .*, and now goes up to 1-30, number 30: it was deleted and made an",
            server,
        )


@pytest.mark.parametrize("how", ["delete", "trim", "anew"])
def test_a_batch_that_was_begun_needs_its_entries(url: str, client: Any, sink: Sink, how: str) -> None:
    server = MemoryStateServer()
    ids = add(client, *range(12))
    sink.crash_at = {2}
    stops(spout(url), "Crash", server)
    if how == "delete":
        client.xdel("s", ids[7])
    elif how == "trim":
        client.xtrim("s", maxlen=5, approximate=False)
    else:
        client.delete("s")
        for number, entry_id in enumerate(ids):
            client.xadd("s", {"n": number + 100}, id=entry_id)
    why = rf"the entries after {ids[4]} up to {ids[9]} (were 5, and now are [34]|are others than they were).*this state"
    stops(spout(url, on_lost="continue"), why, server)


def test_entries_that_cannot_be_read(url: str, client: Any, sink: Sink) -> None:
    add(client, 1)
    (bad,) = [client.xadd("s", {"n": "x"}).decode()]
    client.xadd("s", {"word": "w"})
    add(client, 2)
    stops(
        spout(url), rf"stream 's', entry {bad}: field 'n' is b'x': ValueError: .*; pass on_bad_entry='skip' to the spou"
    )
    stops(spout(url, fields=["m"], types={}), r"stream 's', entry .*: it has no field 'm', only \['n', 'word'\]; pass")
    assert sink.rows == []
    drain(spout(url, on_bad_entry="skip"))
    assert sink.rows == [1, 2]


def test_fields_may_be_missing_or_bytes(url: str, client: Any, sink: Sink) -> None:
    client.xadd("s", {"a": b"\xff"})
    drain(spout(url, fields=["a", "b"], types={"a": bytes}, defaults={"b": None}))
    assert sink.rows == [(b"\xff", None)]


def has_stored(sink: Sink, count: int) -> bool:
    return len(sink.rows) >= count


def test_connections_that_break_are_made_anew(url: str, client: Any, sink: Sink) -> None:
    with InProcessCluster() as cluster:
        handle = cluster.submit(topology(spout(url)), {})
        for number in range(10):
            add(client, number)
            client.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
            eventually(partial(has_stored, sink, number + 1), 60)
        assert handle.running
    assert sink.rows == list(range(10))


def test_a_server_that_is_away_is_waited_for() -> None:
    away = Client(f"redis://127.0.0.1:{free_port()}/0", "", 1.0)
    with pytest.raises(FailedException, match=r"stream 's' at redis://127.0.0.1:.*: Error 111 connecting"):
        away.state("s")
    away.close()


def test_what_is_no_stream_is_told(url: str, client: Any, sink: Sink) -> None:
    client.set("s", "text")
    stops(
        spout(url), r"stream 's' at redis://.* cannot be read: WRONGTYPE .*is there something else than a stream under"
    )


def test_declarations_are_checked() -> None:
    good = "redis://host:6379/0"
    for url in ("host:6379", "redis://user:secret@host/0", None):
        with pytest.raises(
            InvalidRedisSpout, match=r"a URL or a password that is not shown here, expected redis://host"
        ) as told:
            spout(url)  # type: ignore[arg-type]
        assert "secret" not in str(told.value)
    with pytest.raises(InvalidRedisSpout, match="not shown here"):
        spout(good, password="secret")
    for how, why in (
        ({"streams": []}, r"streams is \[\], expected the name of a stream, or a list of names"),
        ({"start": "latests"}, r"start is 'latests', expected one of .*did you mean 'latest'\?"),
        ({"on_lost": "skip"}, r"on_lost is 'skip', expected one of \('stop', 'continue'\)"),
        ({"on_bad_entry": "emit"}, r"on_bad_entry is 'emit', expected one of \('stop', 'skip'\)"),
        ({"entries_per_stream": 0}, r"entries_per_stream is 0, expected a whole number of at least 1"),
        ({"timeout_secs": 0}, r"timeout_secs is 0, expected a number of seconds, more than 0"),
        ({"defaults": {"m": 1}}, r"defaults names 'm', which is none of the fields \['n'\]; did you mean"),
    ):
        with pytest.raises(InvalidRedisSpout, match=why.removesuffix("; did you mean")):
            spout(good, **how)
    with pytest.raises(InvalidStream, match="the spout itself puts 'tx'"):
        spout(good, fields=["tx"], types={})


def test_other_stored_metadata_is_told() -> None:
    with pytest.raises(CorruptData, match=r"stored metadata of a Redis stream is 'x', expected \[start, end, entries"):
        Range.from_metadata("x")
    with pytest.raises(CorruptData, match=r"stored streams of a Redis spout are \['x'\], expected a list of \[name"):
        streams_of(["x"])


def test_errors_are_those_that_users_catch() -> None:
    assert issubclass(EntriesLost, LookupError)
    assert issubclass(BadEntry, ValueError)


def test_the_example_of_the_page_runs(url: str, client: Any, sink: Sink) -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "sources.md").read_text(encoding="utf-8")
    found = re.search(r"## Redis Streams.*?```text\n(.*?)```", page, re.DOTALL)
    assert found is not None
    block: dict[str, Any] = {}
    exec(found[1].replace("redis://127.0.0.1:6379/0", url), block)
    orders = [client.xadd("orders", {"item": "cat", "amount": n}).decode() for n in range(3)]
    drain(block["spout"])
    assert sink.rows == [("orders", entry_id, "cat", n) for n, entry_id in enumerate(orders)]
