"""copied-object: a bolt changes an object of its module that `__init__` was given, so that it has a copy."""

from __future__ import annotations

from collections.abc import Iterator

from stormline.cli.reading.guards import fills_in
from stormline.cli.reading.parts import Part
from stormline.cli.reading.values import Known
from stormline.cli.reading.writes import writes_at
from stormline.cli.rules.finding import Finding, found_at

RULE = "copied-object"
REMEDY = (
    "the declared bolt is copied to where it runs, with all that its __init__ was given: a bolt of the commit phase "
    "takes the object itself in prepare, by its name in the module; any other emits"
)


def find(part: Part) -> Iterator[Finding]:
    """Yield each change of such an object."""
    if part.kind != "bolt":
        return
    for place in part.reached("prepare", "execute", "execute_batch", "finish_batch", "cleanup"):
        for write in writes_at(place):
            if write.copied and isinstance(write.root, Known) and not fills_in(write):
                what = f"changes {write.text}: a copy of {write.root.name} of {write.root.home}"
                yield found_at(RULE, part, place, what, REMEDY)
