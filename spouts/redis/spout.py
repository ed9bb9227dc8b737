"""RedisStreamTransactionalSpout: the entries of Redis Streams, each in exactly one batch."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from stormline.spouts.iterator.positioned import ATTEMPT_FIELD, checked_fields
from stormline.spouts.redis.errors import InvalidRedisSpout
from stormline.topology.context import TopologyContext
from stormline.topology.contracts import (
    Conf,
    IPartitionedCoordinator,
    IPartitionedEmitter,
    IPartitionedTransactionalSpout,
)
from stormline.topology.errors import MissingExtra, did_you_mean, shown
from stormline.topology.fields import Fields
from stormline.topology.secrets import is_reference
from stormline.topology.streams import OutputFieldsDeclarer

if TYPE_CHECKING:
    from stormline.spouts.redis.client import Client


class RedisStreamTransactionalSpout(IPartitionedTransactionalSpout):
    """Reads the entries of Redis Streams; every entry is in exactly one batch, the same after any restart.

    A batch is a range of ids of each stream, which is stored with the number of its entries and their checksum: a
    replay reads exactly these, so nothing may trim or delete them before the batch is committed. No consumer group is
    used, and nothing written. Entries that were trimmed or deleted before they were read, a stream that was made anew,
    and a server that has lost what it had are found out, by what Redis 7 counts of each stream, and told.

    Its emitters run on the executors, task i of t reads the streams i, i + t, …

    Args:
        url (str): Where the server is, `redis://user@host:port/0` or `rediss://…`, without a password.
        streams (str | Sequence[str]): The name of a stream, or several. One that is not there yet is read when it is.
        fields (Sequence[str]): What to take of an entry: "entry_id", "stream", and names of its own fields. The
            attempt, which comes before them as "tx", is put there by the spout.
        types (Mapping[str, Callable[[str], Any]] | None): For some fields, what makes a value of the text, as
            {"amount": int}; `bytes`: as it is. Others are text, in UTF-8.
        defaults (Mapping[str, Any] | None): For some fields, what to emit where an entry lacks them.
        start (str): Where a topology begins that has no state yet: "earliest", or "latest", what comes from the start
            on.
        entries_per_stream (int): Entries that a batch has of one stream at most.
        on_bad_entry (str): What happens to an entry that lacks a field, or whose text makes no value. "stop": the
            topology stops, naming it. "skip": it is left out, logged and counted as "unreadable".
        on_lost (str): What happens when entries are gone before they were read. "stop": the topology stops, and says
            how many. "continue": it says so, counts "gaps", and goes on with what there is. A batch that was begun and
            needs them again stops it in any case.
        password (str): A reference to the password, `env:NAME` or `file:PATH`, read where the connection is made;
            empty: there is none.
        timeout_secs (float): How long to wait for an answer before an attempt fails and is tried again.

    Raises:
        InvalidRedisSpout: arguments do not go together, or one is out of range.
        InvalidStream: `fields` are no distinct names, or "tx" is one of them.
        MissingExtra: redis is not installed.
    """

    emits_on_executors = True

    def __init__(
        self,
        url: str,
        streams: str | Sequence[str],
        fields: Sequence[str],
        *,
        types: Mapping[str, Callable[[str], Any]] | None = None,
        defaults: Mapping[str, Any] | None = None,
        start: str = "earliest",
        entries_per_stream: int = 1000,
        on_bad_entry: str = "stop",
        on_lost: str = "stop",
        password: str = "",
        timeout_secs: float = 10.0,
    ) -> None:
        _check_url(url, password)
        names = [streams] if isinstance(streams, str) else streams
        if not isinstance(names, Sequence) or not names or not all(isinstance(one, str) and one for one in names):
            raise InvalidRedisSpout(f"streams is {shown(streams)}, expected the name of a stream, or a list of names")
        for argument, given, known in (
            ("start", start, ("earliest", "latest")),
            ("on_bad_entry", on_bad_entry, ("stop", "skip")),
            ("on_lost", on_lost, ("stop", "continue")),
        ):
            if given not in known:
                raise InvalidRedisSpout(
                    f"{argument} is {shown(given)}, expected one of {known}{did_you_mean(given, known)}"
                )
        if type(entries_per_stream) is not int or entries_per_stream < 1:
            raise InvalidRedisSpout(
                f"entries_per_stream is {entries_per_stream!r}, expected a whole number of at least 1"
            )
        if isinstance(timeout_secs, bool) or not isinstance(timeout_secs, (int, float)) or not 0 < timeout_secs < 1e6:
            raise InvalidRedisSpout(f"timeout_secs is {timeout_secs!r}, expected a number of seconds, more than 0")
        self._fields = checked_fields("a RedisStreamTransactionalSpout", fields)
        for argument, of_fields in (("types", types), ("defaults", defaults)):
            for name in of_fields or {}:
                if name not in self._fields:
                    raise InvalidRedisSpout(
                        f"{argument} names {name!r}, which is none of the fields {self._fields.to_list()}"
                        + did_you_mean(name, self._fields)
                    )
        if importlib.util.find_spec("redis") is None:
            raise MissingExtra.of("redis", type(self).__name__, "redis")
        self._url = url
        self._streams = tuple(dict.fromkeys(names))
        self._types = dict(types or {})
        self._defaults = dict(defaults or {})
        self._latest = start == "latest"
        self._entries_max = entries_per_stream
        self._skips = on_bad_entry == "skip"
        self._lost_stops = on_lost == "stop"
        self._password = password
        self._timeout_secs = float(timeout_secs)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._url!r}, {list(self._streams)!r})"

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """Declare the attempt and `fields`."""
        declarer.declare(Fields(ATTEMPT_FIELD, *self._fields))

    def get_coordinator(self, conf: Conf, context: TopologyContext) -> IPartitionedCoordinator:
        """Return the coordinator."""
        from stormline.spouts.redis.reading import StreamCoordinator

        return StreamCoordinator(self._client(), self._streams, self._latest, self._entries_max)

    def get_emitter(self, conf: Conf, context: TopologyContext) -> IPartitionedEmitter:
        """Return the emitter of one task."""
        from stormline.spouts.redis.entries import EntrySettings
        from stormline.spouts.redis.reading import StreamEmitter

        return StreamEmitter(
            self._client(),
            EntrySettings(tuple(self._fields), self._types, self._defaults),
            self._entries_max,
            self._lost_stops,
            self._skips,
            context.register_counter("gaps").inc,
            context.register_counter("unreadable").inc,
        )

    def _client(self) -> Client:
        from stormline.spouts.redis.client import Client

        return Client(self._url, self._password, self._timeout_secs)


def _check_url(url: Any, password: Any) -> None:
    try:
        parts = urlsplit(url)
        right = parts.scheme in ("redis", "rediss") and bool(parts.hostname) and parts.password is None
        right = right and parts.port != 0
    except (ValueError, AttributeError, TypeError):
        right = False
    if not right or (password and not is_reference(password)):
        raise InvalidRedisSpout(
            "a RedisStreamTransactionalSpout is given a URL or a password that is not shown here, expected "
            "redis://host:port/0 without a password, and password='env:NAME' or 'file:PATH'"
        )
