"""TransactionAttempt: which try of which transaction."""

from __future__ import annotations

from dataclasses import dataclass

from stormline.topology.storm_names import storm_names


@storm_names()
@dataclass(frozen=True, slots=True, order=True)
class TransactionAttempt:
    """One try of one transaction: the first field of every tuple.

    An attempt id is never used twice for one txid, not even by a restarted driver; a later attempt has a greater id. It
    is printed `txid:attempt`.

    Attributes:
        transaction_id (int): the txid: 1, 2, 3, …
        attempt_id (int): number of the try.
    """

    transaction_id: int
    attempt_id: int

    def __reduce__(self) -> tuple[type[TransactionAttempt], tuple[int, int]]:
        return TransactionAttempt, (self.transaction_id, self.attempt_id)  # a frozen dataclass's own way takes 5 µs

    def get_transaction_id(self) -> int:
        """Return the txid."""
        return self.transaction_id

    def get_attempt_id(self) -> int:
        """Return the attempt id."""
        return self.attempt_id

    def __str__(self) -> str:
        return f"{self.transaction_id}:{self.attempt_id}"
