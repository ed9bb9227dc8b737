"""Thousands of histories full of faults. What fails here is repeated by the command that the message ends with."""

from __future__ import annotations

import os

import pytest

from tests.simulation.campaign import failure_text, run_campaign

FAULTS_A_SEED_MIN = 10


@pytest.mark.parametrize(
    ("first", "seeds"),
    [(0, 1_000), pytest.param(1_000, 19_000, marks=pytest.mark.proof)],
    ids=["a thousand", "the rest"],
)
def test_no_law_is_broken_in_twenty_thousand_histories_full_of_faults(first: int, seeds: int) -> None:
    summary = run_campaign(first, seeds, processes=max(2, os.cpu_count() or 2))
    assert not summary.failed, failure_text(summary.failed[0])
    assert summary.seeds == seeds
    assert summary.faults.total() >= FAULTS_A_SEED_MIN * seeds
    assert summary.takeovers > seeds / 4, "drivers take over from others"
    assert summary.turned_away > 0, "zombies act late"
    assert summary.replays > seeds, "batches are replayed"
