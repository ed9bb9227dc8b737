"""Places in a stream: ids, what is stored of a batch, and whether entries are missing after an id. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from stormline.topology.errors import CorruptData, shown

FIRST = "0-0"
"""Before all ids."""

_ID = re.compile(r"\d{1,20}-\d{1,20}")
_REMEDY = "restore the state from a backup, or begin anew under another topology id"


def order_of(entry_id: str) -> tuple[int, int]:
    """Return what an id is ordered by."""
    milliseconds, _, number = entry_id.partition("-")
    return int(milliseconds), int(number)


class Stream(NamedTuple):
    """A stream, and where it begins for the topology: after an id, up to which so many entries had been added.

    What had been deleted up to `deleted`, or was trimmed, is none of ours.
    """

    name: str
    start: str
    added: int
    deleted: str


class Range(NamedTuple):
    """What one batch has of a stream: the entries after `start` up to `end`, how many, their checksum.

    `added`: how many were ever added up to `end`, as the server counts them.
    """

    start: str
    end: str
    entries: int
    checksum: int
    added: int

    @classmethod
    def from_metadata(cls, metadata: Any) -> Range:
        """Return the range that is stored.

        Raises:
            CorruptData: it is none.
        """
        if type(metadata) is list and [type(part) for part in metadata] == [str, str, int, int, int]:
            found = cls(*metadata)
            if _ID.fullmatch(found.start) and _ID.fullmatch(found.end) and found.entries >= 0:
                return found
        raise CorruptData(
            f"stored metadata of a Redis stream is {shown(metadata)}, expected [start, end, entries, checksum, added]; "
            f"{_REMEDY}"
        )


def streams_of(described: Any) -> list[Stream]:
    """Return the streams that are stored with a batch, by their numbers; none for None.

    Raises:
        CorruptData: they are none.
    """
    found = [] if described is None else described
    if type(found) is list and all(
        type(one) is list and [type(part) for part in one] == [str, str, int, str] for one in found
    ):
        return [Stream(*one) for one in found]
    raise CorruptData(
        f"stored streams of a Redis spout are {shown(described)}, expected a list of [name, start, added, deleted]; "
        f"{_REMEDY}"
    )


class State(NamedTuple):
    """A stream as the server tells of it. `first`: the id of its first entry, `last`: the highest id it ever had."""

    length: int
    added: int
    first: str | None
    last: str
    deleted: str


def begun(name: str, state: State | None, latest: bool) -> Stream:
    """Return where a stream begins of which nothing has been read."""
    if state is None:
        return Stream(name, FIRST, 0, FIRST)
    if latest:
        return Stream(name, state.last, state.added, state.deleted)
    return Stream(name, FIRST, state.added - state.length, state.deleted)


class Look(NamedTuple):
    """What was found after an id, in one moment: entries' ids, and whether the entry of that id itself is there."""

    state: State | None
    ids: Sequence[str]
    start_is_there: bool
    at_the_end: bool

    def after(self, start: str) -> int | None:
        """Return how many entries there are after `start`, where that can be told without counting them."""
        if self.state is None or self.at_the_end:
            return len(self.ids)
        first = self.state.first
        return self.state.length if first is not None and order_of(first) > order_of(start) else None

    def added_at_end(self, start: str, added: int) -> int:
        """Return how many entries were ever added up to the last one found."""
        after = self.after(start)
        if self.state is None or after is None:
            return added + len(self.ids)
        return self.state.added - (after - len(self.ids))


def is_another(start: str, added: int, state: State | None) -> bool:
    """Return whether a stream is not the one of which the entry `start` was read, its entry number `added`."""
    return state is None or order_of(state.last) < order_of(start) or state.added < added


def missing(stream: Stream, start: str, added: int, look: Look) -> str:
    """Say what is missing of a stream after an id, up to which so many entries had been added; nothing: ''."""
    name, state = f"stream {stream.name!r}", look.state
    if state is None:
        return f"{name} is gone, of which {added} entries had been added; it was deleted" if added else ""
    if is_another(start, added, state):
        return (
            f"{name} was read up to {start}, its entry number {added}, and now goes up to {state.last}, number "
            f"{state.added}: it was deleted and made anew, or the server has lost what it had acknowledged"
        )
    after, ever = look.after(start), state.added - added
    if after is not None and ever > after:
        return (
            f"{name}: {ever - after} of the {ever} entries after {start} are gone, trimmed or deleted before they were "
            "read"
        )
    if after is not None and ever < after:
        return f"{name} has {after} entries after {start}, and {ever} were added since it was read: it was made anew"
    if after is None and order_of(state.deleted) > max(order_of(start), order_of(stream.deleted)):
        return f"{name}: entries after {start} were deleted before they were read, the last of them {state.deleted}"
    known = look.start_is_there or order_of(state.deleted) >= order_of(start) or start == stream.start
    if after is None and not known:
        return f"{name} has no entry {start}, which was read, and nobody deleted it: the stream was made anew"
    return ""
