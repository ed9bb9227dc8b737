"""The opaque value: a replay computes from what was before, however often."""

from __future__ import annotations

import pytest

from stormline.errors import StoreMismatch
from stormline.state import OpaqueValue


def test_a_replay_computes_from_what_was_before() -> None:
    first = OpaqueValue(1, 10).update(2, 15)
    assert (first, first.get(2), first.get(3)) == (OpaqueValue(2, 15, 10), 10, 15)
    again = first.update(2, first.get(2) + 7).update(2, 12)
    assert again == OpaqueValue(2, 12, 10)
    assert again.update(5, 13) == OpaqueValue(5, 13, 12)


def test_a_later_value_is_not_touched() -> None:
    with pytest.raises(StoreMismatch, match=r"stored by transaction 5, and this is transaction 4: the topology's stat"):
        OpaqueValue(5, 1).update(4, 2)
