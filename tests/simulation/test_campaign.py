"""Thousands of histories full of faults. What fails here is repeated by the command that the message ends with."""

from __future__ import annotations

import os

from tests.simulation.campaign import failure_text, run_campaign

SEEDS = 20_000
FAULTS_MIN = 200_000


def test_no_law_is_broken_in_twenty_thousand_histories_full_of_faults() -> None:
    summary = run_campaign(0, SEEDS, processes=max(2, os.cpu_count() or 2))
    assert not summary.failed, failure_text(summary.failed[0])
    assert summary.seeds == SEEDS
    assert summary.faults.total() >= FAULTS_MIN
    assert summary.takeovers > SEEDS / 4, "drivers take over from others"
    assert summary.turned_away > 0, "zombies act late"
    assert summary.replays > SEEDS, "batches are replayed"
