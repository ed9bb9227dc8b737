"""RotatingState: a durable map txid → value whose old end is cleaned up as transactions commit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from stormline.runtime.errors import InvalidPath, NotNext, StateCorrupt
from stormline.runtime.state_store import Delete, Put, StateStore, check_path

TXID_DIGITS = 12

Initializer = Callable[[int, Any], Any]
"""Gives the first value of a txid, from the txid and the value of the txid before it (None where there is none)."""


class RotatingState:
    """The values below one directory of a state store, by txid; as old as the store, and as durable.

    `strict`: txids come into being one after another, 1, 2, 3, …; asking for another is an error. Not strict:
    txids may be left out, and one that was left out gets None for ever once a later one exists.
    """

    def __init__(self, store: StateStore, directory: str, *, strict: bool = True) -> None:
        self._store = store
        self._directory = check_path(directory)
        self._strict = strict

    def __len__(self) -> int:
        return len(self._store.children(self._directory))

    def __contains__(self, txid: int) -> bool:
        return self._name(txid) in self._store.children(self._directory)

    def __getitem__(self, txid: int) -> Any:
        return self._store.get(self.path(txid))

    def txids(self) -> list[int]:
        """Return the txids that have a value, ascending."""
        names = self._store.children(self._directory)
        foreign = [name for name in names if len(name) != TXID_DIGITS or not (name.isascii() and name.isdecimal())]
        if foreign:
            raise StateCorrupt(
                f"{self._directory}/{foreign[0]} is not named after a transaction ({TXID_DIGITS} digits); nothing "
                "was changed. Remove it if it is yours, or restore the state from a backup"
            )
        return [int(name) for name in names]

    def get(self, txid: int, initializer: Initializer) -> Any:
        """Return the value of `txid`; the first time, write the one that `initializer` gives.

        Raises:
            NotNext: strict, and `txid` has no value and is not the next one.
        """
        if txid in self:
            return self[txid]
        txids = self.txids()
        self._check_next(txid, txids)
        left_out = bool(txids) and txid < txids[-1]
        value = None if left_out else initializer(txid, self[txids[-1]] if txids else None)
        self._store.write([Put(self.path(txid), value)])
        return value

    def put_all(self, values: Mapping[int, Any]) -> None:
        """Write all of `values`, new or not, or none of them.

        Raises:
            NotNext: strict, and a txid is neither there nor the next one.
        """
        self._store.write(self.put_ops(values))

    def put_ops(self, values: Mapping[int, Any]) -> list[Put]:
        """Return what `put_all` would write, for a write of the caller's own; raises as it does."""
        txids = self.txids()
        present = set(txids)
        for txid in sorted(values):
            if txid not in present:
                self._check_next(txid, txids)
                txids.append(txid)
        return [Put(self.path(txid), values[txid]) for txid in sorted(values)]

    def replace(self, txid: int, value: Any) -> None:
        """Write another value for a txid that has one.

        Raises:
            KeyError: it has none.
        """
        if txid not in self:
            raise KeyError(f"transaction {txid} has no value in {self._directory} to replace")
        self._store.write([Put(self.path(txid), value)])

    def cleanup_before(self, txid: int) -> None:
        """Forget all values below `txid`."""
        ops = self.cleanup_ops(txid)
        if ops:
            self._store.write(ops)

    def cleanup_ops(self, txid: int) -> list[Delete]:
        """Return what `cleanup_before` would write, for a write of the caller's own."""
        return [Delete(self.path(old)) for old in self.txids() if old < txid]

    def path(self, txid: int) -> str:
        """Return the path of a txid's value in the store."""
        return f"{self._directory}/{self._name(txid)}"

    def _name(self, txid: int) -> str:
        if not 0 < txid < 10**TXID_DIGITS:
            raise InvalidPath(f"txid {txid}: expected a whole number from 1 to {10**TXID_DIGITS - 1}")
        return f"{txid:0{TXID_DIGITS}}"

    def _check_next(self, txid: int, txids: list[int]) -> None:
        expected = txids[-1] + 1 if txids else 1
        if self._strict and txid != expected:
            raise NotNext(
                f"transaction {txid} has no value in {self._directory} and is not the next one, {expected}; it holds "
                f"{f'{txids[0]} to {txids[-1]}' if txids else 'none'}"
            )
