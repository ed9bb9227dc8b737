"""The records of a ledger: what one holds is a `Fence`, in JSON, under a key that says whose it is."""

from __future__ import annotations

import json

from stormline.state.fence import Fence
from stormline.state.kafka.errors import LedgerUnusable


def key_of(topology: str, scope: str) -> bytes:
    """Return the key of a scope's record: an id of a topology has no "/"."""
    return f"{topology}/{scope}".encode()


def to_value(fence: Fence) -> bytes:
    """Return what the record of a fence holds."""
    return json.dumps(fence._asdict()).encode()


def from_value(value: bytes | None, where: str) -> Fence:
    """Return what a record holds.

    Args:
        value: what was read; None: nothing, which a sink never writes.
        where: what messages call the record.

    Raises:
        LedgerUnusable: no sink wrote it.
    """
    try:
        held = json.loads(value or b"")
        *numbers, earlier = (held[name] for name in Fence._fields)
        if type(earlier) is not list or any(type(number) is not int or number < 0 for number in numbers + earlier):
            raise ValueError("expected numbers")
    except (ValueError, TypeError, KeyError):
        raise LedgerUnusable(
            f"{where} holds {value!r:.80}, expected an object of {', '.join(Fence._fields)}: something else writes "
            "there; give the sink a ledger of its own: KafkaSink(…, ledger='…')"
        ) from None
    epoch, txid, attempt, commit_id = numbers
    return Fence(epoch, txid, attempt, commit_id, tuple(earlier))
