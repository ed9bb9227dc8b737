"""TxidMap: a map of consecutive txids that never changes; a changed copy shares with it all but what differs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeVar

V = TypeVar("V")

CHUNK = 64


class TxidMap(Mapping[int, V]):
    """Consecutive txids, ascending, each with a value.

    To change one of n entries costs a copy of its chunk and of the list of chunks: CHUNK + n / CHUNK places, not n.
    """

    __slots__ = ("_chunks", "_first", "_next")

    def __init__(self, first: int = 0) -> None:
        """Make an empty map: `first` will be its lowest txid."""
        self._first = self._next = first
        self._chunks: dict[int, tuple[V | None, ...]] = {}

    @property
    def first(self) -> int:
        """The lowest txid; of an empty map, that of the next one."""
        return self._first

    @property
    def following(self) -> int:
        """The txid after the highest."""
        return self._next

    def __getitem__(self, txid: int) -> V:
        if not self._first <= txid < self._next:
            raise KeyError(txid)
        value = self._chunks[txid // CHUNK][txid % CHUNK]
        assert value is not None
        return value

    def __iter__(self) -> Iterator[int]:
        return iter(range(self._first, self._next))

    def __len__(self) -> int:
        return self._next - self._first

    def updated(self, changed: Mapping[int, V]) -> TxidMap[V]:
        """Return a copy with other values, and with the txids that follow upon the last."""
        first, following = self._first, self._next
        changes: dict[int, list[V | None]] = {}
        chunks = dict(self._chunks)
        for txid, value in changed.items():
            number, place = divmod(txid, CHUNK)
            chunk = changes.get(number)
            if chunk is None:
                chunk = changes[number] = list(chunks.get(number, ()))
            if txid == following:
                chunk += [None] * (place - len(chunk))
                chunk.append(value)
                following += 1
            else:
                assert first <= txid < following, (txid, first, following)
                chunk[place] = value
        chunks.update({number: tuple(chunk) for number, chunk in changes.items()})
        return self._made(first, following, chunks)

    def without_first(self) -> TxidMap[V]:
        """Return a copy without its lowest txid."""
        assert self
        number, place = divmod(self._first, CHUNK)
        chunks = dict(self._chunks)
        if place == CHUNK - 1 or len(self) == 1:
            del chunks[number]
        else:
            chunks[number] = (*[None] * (place + 1), *chunks[number][place + 1 :])
        return self._made(self._first + 1, self._next, chunks)

    def _made(self, first: int, following: int, chunks: dict[int, tuple[V | None, ...]]) -> TxidMap[V]:
        made: TxidMap[V] = TxidMap()
        made._first, made._next, made._chunks = first, following, chunks
        return made
