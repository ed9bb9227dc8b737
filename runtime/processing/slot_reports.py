"""Puts the reports of all slots of a wave together, and makes sure that none is missing."""

from __future__ import annotations

from collections.abc import Iterable

from stormline.runtime.messages.wave import AttemptResult, DeferredTask, Failure, Wave, WaveResult
from stormline.runtime.processing.slot_layout import Layout
from stormline.runtime.processing.slot_report import SlotReport
from stormline.topology.readings import merge_into


def merge_reports(wave: Wave, layout: Layout, reports: Iterable[SlotReport]) -> WaveResult:
    """Return the wave's result. An attempt has failed whose reports are not all there, or are not of one execution of
    each slot (law 5, complete input; law 7, one execution)."""
    by_place = {(report.stage, report.slot): report for report in reports}
    expected = [(stage, slot) for stage, slots in enumerate(layout.slots) for slot in range(slots)]
    missing = [place for place in expected if place not in by_place]
    result = WaveResult(wave, [AttemptResult(wave_attempt.attempt) for wave_attempt in wave.attempts])
    for place in expected:
        report = by_place.get(place)
        if report is None:
            continue
        result.busy_secs_of[place[0]] = result.busy_secs_of.get(place[0], 0.0) + report.busy_secs
        result.overfull |= report.overfull
        for stage, rows in report.rows_of.items():
            result.rows_of[stage] = result.rows_of.get(stage, 0) + rows
        for merged, part in zip(result.attempts, report.attempts, strict=True):
            assert merged.attempt == part.attempt, (merged.attempt, part.attempt)
            merged.failure = worse(merged.failure, part.failure)
            merged.partitions.update(part.partitions)
            merged.rows += part.rows
            merge_into(merged.metrics, part.metrics)
            merged.handles += part.handles
            for task, deferred in part.deferred.items():
                merged.deferred[task] = _together(merged.deferred.get(task), deferred)
    spout = layout.plan.spout.id
    if missing:
        _fail_all(result, spout, f"the reports of {len(missing)} of {len(expected)} Spark tasks have not arrived")
    for report in by_place.values():
        for place, execution in report.read_from.items():
            if place in by_place and by_place[place].execution != execution:
                what = f"slot {report.slot} of stage {report.stage} read another execution of slot {place[1]}"
                _fail_all(result, spout, f"{what} of stage {place[0]} than others did")
    return result


def _fail_all(result: WaveResult, component: str, what: str) -> None:
    for merged in result.attempts:
        merged.failure = worse(merged.failure, Failure(component, None, what, counts=False))


def _together(one: DeferredTask | None, other: DeferredTask) -> DeferredTask:
    """Return what several slots have of one deferred task: each its own tuples, and one what the task gathered."""
    if one is None:
        return other
    assert one.gathered is None or other.gathered is None, "what a task gathered is in one slot"
    return DeferredTask(one.gathered or other.gathered, [*one.tuples, *other.tuples])


def worse(one: Failure | None, other: Failure | None) -> Failure | None:
    """Return the failure that says more: a fatal one, then one of user code, then the earlier."""
    if one is None or other is None:
        return one or other
    return max(one, other, key=lambda failure: (failure.fatal, failure.counts))
