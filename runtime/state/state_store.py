"""StateStore: the durable state of one topology, owned by one driver at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol

from stormline.runtime.errors import InvalidPath, StateTooLarge
from stormline.topology.errors import StormlineError
from stormline.topology.identifiers import is_part

VALUE_BYTES_MAX = 1_000_000
WRITE_BYTES_MAX = 1_000_000
OP_BYTES = 64  # what an op costs on the wire beside its path and value, rounded up; access is open to all

OnLost = Callable[[StormlineError], None]

CheckState = Callable[[Any, Any, "ReadableState", str, str], None]
"""Raises where a topology cannot go on with the state of another: the descriptions that are stored (None: nothing is)
and declared, the state, the topology's id, and where that is."""


class ValueReader(Protocol):
    """State as one reads it who need not own it."""

    def get(self, path: str) -> Any:
        """Return the value at `path`; raise `KeyError` where there is none."""


class ReadableState(ValueReader, Protocol):
    """State before anybody owns it: it can be read."""

    def children(self, path: str) -> list[str]:
        """Return the sorted names directly below `path`."""


def any_state(stored: Any, declared: Any, state: ReadableState, topology_id: str, node: str) -> None:
    """Go on with any state."""


@dataclass(frozen=True, slots=True)
class Put:
    """Create or replace the value at `path`."""

    path: str
    value: Any


@dataclass(frozen=True, slots=True)
class Delete:
    """Remove the value at `path`, which must exist."""

    path: str


Op = Put | Delete


class StateStore(Protocol):
    """The state of one topology: values at paths such as 'batches/000000000012'.

    Between open and close this driver owns the topology: nobody else's write is applied, or every later
    write here raises and changes nothing. A path holds a value or has others below it, never both.
    Safe to call from several threads; writes happen one after another.
    """

    @property
    def epoch(self) -> int:
        """Number of this ownership: 1, 2, 3, …, raised at each open."""

    def get(self, path: str) -> Any:
        """Return a fresh copy of the value at `path`.

        Raises:
            KeyError: there is none.
        """

    def children(self, path: str) -> list[str]:
        """Return the sorted names directly below `path`; an empty list where there are none."""

    def write(self, ops: Sequence[Op]) -> None:
        """Apply all of `ops`, or none of them; when this returns they are durable.

        A write without ops checks the ownership and nothing else.

        Raises:
            Fenced: another driver owns the topology now; nothing was written.
            SessionLost: the session has ended; the next open knows whether a write under way was applied.
            StateTooLarge: nothing was sent. Split the write, or store less.
            KeyError: a `Delete` of a path that has no value; nothing was sent.
            InvalidPath: a path cannot be used, or comes twice; nothing was sent.
            UnregisteredClass: a value of a class that was not registered; nothing was sent.
        """

    def connected(self) -> bool:
        """Return whether the ownership is certain now; while it is not, the caller starts no commit."""

    def close(self) -> None:
        """Give the ownership up; the next driver may open at once. May be called again."""


def check_part(part: str, what: str) -> str:
    """Return `part` if it can be one part of a path.

    Raises:
        InvalidPath: it cannot.
    """
    if not is_part(part):
        raise InvalidPath(
            f"{what} {part!r}: expected 1 to 128 characters out of A-Z a-z 0-9 _ . - that begin with "
            "a letter, a digit or _"
        )
    return part


@lru_cache(maxsize=4096)
def check_path(path: str) -> str:
    """Return `path` if a value can be stored there.

    Raises:
        InvalidPath: it cannot.
    """
    for part in path.split("/"):
        check_part(part, f"part of the state path {path!r},")
    return path


def parents(path: str) -> list[str]:
    """Return the paths above `path`, the shortest first."""
    parts = path.split("/")
    return ["/".join(parts[:n]) for n in range(1, len(parts))]


def check_sizes(sizes: Sequence[tuple[str, int]], beside_bytes: int = 0) -> None:
    """Check one write, given each znode path with the bytes of its value, and what else is sent with all of them.

    ZooKeeper answers a request that is too large by closing the connection, which cannot be told from a
    network fault and would be repeated for ever.

    Raises:
        StateTooLarge: a value, or the write as a whole, is too large.
    """
    for path, size in sizes:
        if size > VALUE_BYTES_MAX:
            raise StateTooLarge(
                f"the value for {path} has {size:,} bytes, at most {VALUE_BYTES_MAX:,} fit in a znode; "
                "keep less in the metadata, for instance a position instead of the data itself"
            )
    total = sum(size + len(path) + OP_BYTES for path, size in sizes) + beside_bytes
    if total > WRITE_BYTES_MAX:
        path, size = max(sizes, key=lambda item: item[1])
        raise StateTooLarge(
            f"one write of {len(sizes)} values has {total:,} bytes, at most {WRITE_BYTES_MAX:,} fit in a "
            f"ZooKeeper request; the largest value is that of {path} with {size:,} bytes; write less at once"
        )
