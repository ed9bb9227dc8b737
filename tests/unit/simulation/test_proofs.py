"""What a driver may begin after a pause: what its committer may have decided before it, and nothing else."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tests.simulation.proofs import COMMITTER, Proofs

WITHIN_SECS = 0.7


@pytest.mark.parametrize(
    ("answers", "paused_at", "looked"),
    [
        ([(1.0, 1.1, COMMITTER)], 1.2, True),
        ([(1.0, 1.1, COMMITTER), (1.15, 9.0, "the loop")], 1.2, True),  # it waited for nothing
        ([(1.0, 1.1, COMMITTER), (1.15, 9.0, COMMITTER)], 1.2, False),  # it waited, and has decided afterwards
        ([(1.0, 1.1, COMMITTER)], 1.8, False),  # it was too old already
        ([(1.0, 1.1, COMMITTER), (1.9, 9.0, "the loop")], 1.95, False),
    ],
    ids=["decided", "beside another's answer", "waited", "old", "old, beside another's answer"],
)
def test_a_committer_may_have_looked_before_a_pause(
    answers: list[tuple[float, float, str]], paused_at: float, looked: bool
) -> None:
    world = SimpleNamespace(now=0.0)
    process: Any = SimpleNamespace(world=world, paused_at=0.0)
    proofs = Proofs(process)
    for sent_at, came_at, thread in answers:
        if came_at > paused_at:
            process.paused_at = paused_at
        world.now = came_at
        proofs.answered(thread)
        proofs.came(sent_at)
    process.paused_at = paused_at
    assert proofs.committer_looked(WITHIN_SECS) is looked
    assert proofs.late == sum(came_at - sent_at > 0.5 for sent_at, came_at, _ in answers)
