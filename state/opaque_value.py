"""OpaqueValue: Trident's, for code that keeps its state by itself; an `OpaqueMap` does the same in columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from stormline.state.errors import StoreMismatch


@dataclass(frozen=True, slots=True)
class OpaqueValue:
    """A value, the transaction that stored it, and the value before: a replay computes anew from that one.

    Args:
        txid (int): The number of the transaction that stored it; 0: none.
        value (Any): What it stored.
        prev (Any): What was there before; None: nothing.
    """

    txid: int
    value: Any
    prev: Any = None

    def get(self, txid: int) -> Any:
        """Return what a transaction is to begin with.

        Args:
            txid (int): The number of the transaction at hand.

        Raises:
            StoreMismatch: A later transaction has stored it.
        """
        if self.txid > txid:
            raise StoreMismatch(
                f"an opaque value was stored by transaction {self.txid}, and this is transaction {txid}: the "
                "topology's state was set back or removed; bring it back, or remove the value too"
            )
        return self.prev if self.txid == txid else self.value

    def update(self, txid: int, value: Any) -> OpaqueValue:
        """Return what a transaction stores in its place.

        Args:
            txid (int): The number of the transaction at hand.
            value (Any): Its value.

        Raises:
            StoreMismatch: A later transaction has stored it.
        """
        return OpaqueValue(txid, value, self.get(txid))
