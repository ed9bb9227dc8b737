"""sleeping-is-ready: the coordinator's is_ready waits."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from stormline.cli.reading.libraries import SLEEPS, SLEEPS_WITH_TIMEOUT
from stormline.cli.reading.parts import Part
from stormline.cli.reading.values import Foreign
from stormline.cli.rules.finding import Finding, found_at

RULE = "sleeping-is-ready"
REMEDY = (
    "return False at once: Stormline waits between questions by itself, and no new batch begins while this one waits"
)


def find(part: Part) -> Iterator[Finding]:
    """Yield each call by which `is_ready` sleeps, or waits for an event with a time-out."""
    if part.kind != "coordinator":
        return
    for place in part.reached("is_ready"):
        if isinstance(place.node, ast.Call):
            callee = place.scope.value(place.node.func)
            if isinstance(callee, Foreign) and _waits(callee.dotted, place.node):
                yield found_at(RULE, part, place, f"waits in {ast.unparse(place.node)}", REMEDY)


def _waits(dotted: str, call: ast.Call) -> bool:
    given = [keyword.value for keyword in call.keywords if keyword.arg == "timeout"]
    if dotted in SLEEPS_WITH_TIMEOUT:
        return any(_is_long(time) for time in given or call.args[1:2])
    return dotted in SLEEPS and all(_is_long(time) for time in given or call.args[:1])


def _is_long(time: ast.expr) -> bool:
    return not (isinstance(time, ast.Constant) and not time.value)
