"""What came of the parts: how many tests, what failed, and where the time went."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from tests.suite.lanes import Ended

SLOWEST = 15
OUTCOMES = ("failure", "error", "skipped")


@dataclass(frozen=True, slots=True)
class Case:
    """One test that was run. `outcome`: passed, or one of OUTCOMES."""

    name: str
    secs: float
    outcome: str
    why: str


def cases_of(junit: Path) -> list[Case]:
    """Return the tests that pytest's own report holds; none where it was not written.

    One that an interrupt has broken off is in it without a name, and is left out.
    """
    if not junit.exists():
        return []
    return [_case(case) for case in ElementTree.parse(junit).iter("testcase") if case.get("name")]


def _case(case: ElementTree.Element) -> Case:
    found = [(kind, told) for kind in OUTCOMES if (told := case.find(kind)) is not None]
    outcome, why = (found[0][0], found[0][1].get("message", "")) if found else ("passed", "")
    name = f"{case.get('classname', '')}::{case.get('name', '')}"
    return Case(name, float(case.get("time", "0")), outcome, why)


def summary(ended: Ended, cases: Sequence[Case]) -> str:
    """Return one line about a part, and one for each reason to skip tests."""
    counts = Counter(case.outcome for case in cases)
    told = [f"{counts[outcome]:,} {outcome}" for outcome in ("passed", *OUTCOMES) if counts[outcome]]
    told += [_secs(ended), *([ended.why] if ended.why else [])]
    lines = [f"{'FAILED' if ended.failed else 'ok':6} {ended.job.part.name}: {', '.join(told)}"]
    skipped = Counter(case.why for case in cases if case.outcome == "skipped")
    return "\n".join([*lines, *(f"       skipped {count}: {why}" for why, count in skipped.items())])


def _secs(ended: Ended) -> str:
    return f"{ended.secs:.0f} s"


def where_time_went(ended: Sequence[Ended], cases: Sequence[Case], secs: float) -> str:
    """Return the parts and the slowest tests, the longest first."""
    lines = ["", "slowest tests:"]
    lines += [f"  {case.secs:6.1f} s  {case.name}" for case in sorted(cases, key=lambda case: -case.secs)[:SLOWEST]]
    lines += ["", "parts:"]
    lines += [f"  {one.secs:6.0f} s  {one.job.part.name}" for one in sorted(ended, key=lambda one: -one.secs)]
    lines += [f"  {secs:6.0f} s  in all, of {sum(one.secs for one in ended):.0f} s side by side; {len(cases):,} tests"]
    return "\n".join(lines)
