"""What a sweep may abort, by what a driver knows: rules R1, R5 and R8 as tables."""

from __future__ import annotations

import pytest

from stormline.runtime.coordination.sink_sweep import Kept, SinkKnowledge
from stormline.topology.transaction_label import TransactionLabel

BASE = 1_000_000_000  # attempts of epoch 2 begin above it


def label(txid: int, attempt: int, epoch: int = 2, execution: int = 1) -> TransactionLabel:
    """Return the label of one task in one execution."""
    return TransactionLabel("t-sink", txid, epoch, attempt, 3, execution)


DECIDED = label(5, 4, epoch=1)
FIXED = label(6, BASE + 2)
KNOWN = SinkKnowledge(
    epoch=2,
    committed=4,
    newest={5: BASE + 1, 6: BASE + 2, 7: BASE + 3},
    kept={5: Kept(0, frozenset({DECIDED.text})), 6: Kept(BASE + 2, frozenset({FIXED.text}))},
)


@pytest.mark.parametrize(
    ("found", "left_behind"),
    [
        (DECIDED, False),  # a driver before has decided it
        (label(5, 4, epoch=1, execution=2), True),  # another execution of what was decided
        (label(4, 1, epoch=1), True),  # of a transaction that is recorded
        (label(9, 1, epoch=1), True),  # of an older driver, on no record
        (FIXED, False),
        (label(6, BASE + 2, execution=2), True),  # R1: another execution of it counts
        (label(6, BASE + 1), True),  # an attempt that has failed
        (label(7, BASE + 3), False),  # at work now
        (label(7, BASE + 4), False),  # begun after this was known
        (label(8, BASE + 1), False),  # begun after this was known
        (label(4, BASE + 1), True),  # of this driver, late
        (label(4, 1, epoch=3), False),  # R8: of a newer driver
        (label(9, 1, epoch=3), False),
    ],
)
def test_only_what_nobody_will_ever_commit_was_left_behind(found: TransactionLabel, left_behind: bool) -> None:
    assert KNOWN.left_behind(found) is left_behind
