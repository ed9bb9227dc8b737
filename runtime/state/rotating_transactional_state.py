"""RotatingTransactionalState: a durable map txid → value of user code, whose old end is cleaned up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from stormline.runtime.errors import InvalidPath, NotNext, StateCorrupt
from stormline.runtime.state.transactional_state import TransactionalState
from stormline.topology.errors import shown
from stormline.topology.storm_names import storm_names

TXID_MAX = (1 << 63) - 1
DELETES_MAX = 500
"""Values removed by one write: any number of them would be too large for one at some time."""


class StateInitializer(Protocol):
    """Storm's form of what gives the first value of a txid."""

    def init(self, txid: int, last_state: Any) -> Any:
        """Return it, from the value of the txid before; None where there is none."""


Init = Callable[[int, Any], Any] | StateInitializer


@storm_names()
class RotatingTransactionalState:
    """A durable map txid → value of user code, below a directory of a `TransactionalState`; its old end is cleaned up.

    Storm 1.2.4: RotatingTransactionalState. With `strict_order` txids come into being one after another, 1, 2, 3, …;
    asking for another is an error. Without it txids may be left out, and one that was left out gets None for ever once
    a later one exists.

    Args:
        state (TransactionalState): keeps the values.
        sub_dir (str): path of the directory, such as "batches/3"; nothing else may be below it.
        strict_order (bool): whether txids must follow one another.

    Raises:
        StateCorrupt: there is something else below it.
    """

    def __init__(self, state: TransactionalState, sub_dir: str, strict_order: bool = False) -> None:
        self._state = state
        self._sub_dir = sub_dir
        self._strict_order = strict_order
        state.mkdir(sub_dir)
        self._txids()

    def get_state(self, txid: int, init: Init) -> Any:
        """Return the value of a transaction; the first time, store the one that `init` gives.

        Where the process dies in between, `init` is called again for it.

        Args:
            txid (int): id of the transaction.
            init (Init): called with the txid and the value of the txid before (None where there is none), returns the
                value; a function, or an object with a method `init`, as in Storm.

        Raises:
            NotNext: with `strict_order`, `txid` has no value and is not the next one.
            InvalidPath: `txid` is no whole number from 1.
        """
        path, txids = self._path(txid), self._txids()
        if txid in txids:
            return self._state.get_data(path)
        self._check_next(txid, txids)
        value = None
        if not txids or txid > txids[-1]:
            value = (init if callable(init) else init.init)(txid, self.get_last_state())
        self._state.set_data(path, value)
        return self._state.get_data(path)

    def get_state_or_create(self, txid: int, init: Init) -> Any:
        """Return the value of a transaction; None where it had none before: then it is created, as by `get_state`.

        Args:
            txid (int): id of the transaction.
            init (Init): as for `get_state`.

        Raises:
            NotNext: with `strict_order`, `txid` has no value and is not the next one.
            InvalidPath: `txid` is no whole number from 1.
        """
        if self.has_cache(txid):
            return self._state.get_data(self._path(txid))
        self.get_state(txid, init)
        return None

    def has_cache(self, txid: int) -> bool:
        """Return whether a transaction has a value.

        Args:
            txid (int): id of the transaction.

        Raises:
            InvalidPath: `txid` is no whole number from 1.
        """
        self._path(txid)
        return txid in self._txids()

    def get_last_state(self) -> Any:
        """Return the value of the latest txid; None where there is none."""
        txids = self._txids()
        return self._state.get_data(self._path(txids[-1])) if txids else None

    def override_state(self, txid: int, value: Any) -> None:
        """Store a value for a transaction, whatever it has now.

        Args:
            txid (int): id of the transaction.
            value (Any): plain data, or an object of a registered class.

        Raises:
            InvalidPath: `txid` is no whole number from 1.
        """
        self._state.set_data(self._path(txid), value)

    def remove_state(self, txid: int) -> None:
        """Forget the value of a transaction, if it has one.

        Args:
            txid (int): id of the transaction.

        Raises:
            InvalidPath: `txid` is no whole number from 1.
        """
        self._state.delete(self._path(txid))

    def cleanup_before(self, txid: int) -> None:
        """Forget all values of earlier transactions.

        Args:
            txid (int): the values of txids below it go; 0 is below all, as an emitter is told before the first commit.

        Raises:
            InvalidPath: `txid` is no whole number from 0.
        """
        if txid != 0 or type(txid) is not int:
            self._path(txid)
        old = [self._path(before) for before in self._txids() if before < txid]
        for n in range(0, len(old), DELETES_MAX):
            self._state.delete_all(old[n : n + DELETES_MAX])

    def _txids(self) -> list[int]:
        """Return the txids that have a value, ascending."""
        names = self._state.list(self._sub_dir)
        foreign = [name for name in names if not _is_txid(name)]
        if foreign:
            raise StateCorrupt(
                f"{self._sub_dir}/{foreign[0]} of the user's state is not named after a transaction, as all is below a "
                "RotatingTransactionalState; nothing was changed. Give this one a directory of its own"
            )
        return sorted(map(int, names))

    def _path(self, txid: int) -> str:
        if type(txid) is not int or not 0 < txid <= TXID_MAX:
            raise InvalidPath(
                f"txid {shown(txid)} for {self._sub_dir} of the user's state: expected a whole number from 1 to "
                f"{TXID_MAX}, such as attempt.transaction_id"
            )
        return f"{self._sub_dir}/{txid}"

    def _check_next(self, txid: int, txids: list[int]) -> None:
        expected = txids[-1] + 1 if txids else 1
        if self._strict_order and txid != expected:
            raise NotNext(
                f"transaction {txid} has no value in {self._sub_dir} and is not the next one, {expected}; it holds "
                f"{f'{txids[0]} to {txids[-1]}' if txids else 'none'}"
            )


def _is_txid(name: str) -> bool:
    return name.isascii() and name.isdecimal() and name[0] != "0" and int(name) <= TXID_MAX
