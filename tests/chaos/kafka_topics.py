"""The topics of a topology that reads or writes Kafka, and what a record of its source is."""

from __future__ import annotations

from tests.chaos.numbers import key_of


def numbers_of(topology: str) -> str:
    """Return where the numbers of a topology are."""
    return f"{topology}-numbers"


def entries_of(topology: str) -> str:
    """Return where a topology writes of each committing task one record a transaction."""
    return f"{topology}-entries"


def sums_of(topology: str) -> str:
    """Return where a topology writes of each transaction and key one record."""
    return f"{topology}-sums"


def decode(data: bytes) -> dict[str, int]:
    """Return number and key of a record of the source."""
    number = int(data)
    return {"number": number, "key": key_of(number)}
