"""Puts the reports of all slots of a wave together, and makes sure that none is missing."""

from __future__ import annotations

import pickle
from collections.abc import Iterable

from stormline.runtime.layout import Layout
from stormline.runtime.stage_runner import SlotReport
from stormline.runtime.wave import AttemptResult, Failure, Wave, WaveResult


def read_report(block: bytes) -> SlotReport:
    """Return a report that came back in Spark's own channel."""
    report = pickle.loads(memoryview(block)[1:])
    assert isinstance(report, SlotReport), report
    return report


def merge_reports(wave: Wave, layout: Layout, reports: Iterable[SlotReport]) -> WaveResult:
    """Return the wave's result; an attempt whose reports are not all there has failed (law 5)."""
    by_place = {(report.stage, report.slot): report for report in reports}
    expected = [(stage, slot) for stage, slots in enumerate(layout.slots) for slot in range(slots)]
    missing = [place for place in expected if place not in by_place]
    result = WaveResult(wave, [AttemptResult(wave_attempt.attempt) for wave_attempt in wave.attempts])
    for place in expected:
        report = by_place.get(place)
        if report is None:
            continue
        result.cannot_travel.update(report.cannot_travel)
        result.busy_secs += report.busy_secs
        for merged, part in zip(result.attempts, report.attempts, strict=True):
            assert merged.attempt == part.attempt, (merged.attempt, part.attempt)
            merged.failure = worse(merged.failure, part.failure)
            merged.partitions.update(part.partitions)
            merged.rows += part.rows
            merged.deferred.update(part.deferred)
            merged.emitters = {**merged.emitters, **report.emitters}
    if missing:
        what = f"the reports of {len(missing)} of {len(expected)} Spark tasks have not arrived"
        for merged in result.attempts:
            spout = layout.plan.spout.id
            merged.failure = worse(merged.failure, Failure(spout, None, what, counts=False))
    return result


def worse(one: Failure | None, other: Failure | None) -> Failure | None:
    """Return the failure that says more: a fatal one, then one of user code, then the earlier."""
    if one is None or other is None:
        return one or other
    return max(one, other, key=lambda failure: (failure.fatal, failure.counts))
