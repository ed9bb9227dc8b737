"""RotatingState: a durable map txid → value whose old end is cleaned up as transactions commit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stormline.runtime.errors import InvalidPath, NotNext, StateCorrupt
from stormline.runtime.state.state_store import Delete, Put, StateStore, check_path

TXID_DIGITS = 12


def path_of(directory: str, txid: int) -> str:
    """Return the path of a txid's value below a directory of a store."""
    if not 0 < txid < 10**TXID_DIGITS:
        raise InvalidPath(f"txid {txid}: expected a whole number from 1 to {10**TXID_DIGITS - 1}")
    return f"{directory}/{txid:0{TXID_DIGITS}}"


class RotatingState:
    """The values below one directory of a state store, by txid; as old as the store, and as durable.

    Txids come into being one after another, 1, 2, 3, …. It only says what is to be written: the caller writes it,
    together with what else belongs to it.
    """

    def __init__(self, store: StateStore, directory: str) -> None:
        self._store = store
        self._directory = check_path(directory)

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

    def put_ops(self, values: Mapping[int, Any]) -> list[Put]:
        """Return what writes all of `values`, new or not.

        Raises:
            NotNext: a txid is neither there nor the next one.
        """
        txids = self.txids()
        present = set(txids)
        for txid in sorted(values):
            if txid not in present:
                self._check_next(txid, txids)
                txids.append(txid)
        return [Put(self.path(txid), values[txid]) for txid in sorted(values)]

    def cleanup_ops(self, txid: int) -> list[Delete]:
        """Return what removes all values below `txid`."""
        return [Delete(self.path(old)) for old in self.txids() if old < txid]

    def path(self, txid: int) -> str:
        """Return the path of a txid's value in the store."""
        return path_of(self._directory, txid)

    def _check_next(self, txid: int, txids: list[int]) -> None:
        expected = txids[-1] + 1 if txids else 1
        if txid != expected:
            raise NotNext(
                f"transaction {txid} has no value in {self._directory} and is not the next one, {expected}; it holds "
                f"{f'{txids[0]} to {txids[-1]}' if txids else 'none'}"
            )
