"""beside-gathers: a bolt that declares what it gathers changes something else in execute."""

from __future__ import annotations

from collections.abc import Iterator

from stormline.cli.reading.guards import fills_in
from stormline.cli.reading.parts import Part
from stormline.cli.reading.writes import writes_at
from stormline.cli.rules.finding import Finding, found_at
from stormline.cli.rules.static_state import told

RULE = "beside-gathers"
REMEDY = (
    "execute runs on the executors, and only what `gathers` names reaches finish_batch: name it there, or declare no "
    "`gathers`, so that all of the bolt runs at the commit"
)


def find(part: Part) -> Iterator[Finding]:
    """Yield each write of execute to a module, a class, or an attribute that `gathers` does not name."""
    if part.kind != "bolt" or part.gathers is None:
        return
    for place in part.reached("execute", "execute_batch"):
        for write in writes_at(place):
            if write.shared:
                if not fills_in(write):
                    yield found_at(RULE, part, place, told(write), REMEDY)
            elif write.attribute not in part.gathers:
                what = f"changes self.{write.attribute}, which is not in gathers = {part.gathers!r}"
                yield found_at(RULE, part, place, what, REMEDY)
