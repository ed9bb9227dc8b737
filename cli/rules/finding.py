"""Finding: one thing that will not do what it seems, and where."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from stormline.cli.reading.parts import Part
from stormline.cli.reading.reach import Place


@dataclass(frozen=True, slots=True)
class Finding:
    """`rule` is the rule's name in docs/check.md, `what` what happens there, `remedy` what to do instead."""

    rule: str
    path: str
    line: int
    component: str
    what: str
    remedy: str

    def text(self, remedy: bool = True) -> str:
        """Return it in two lines, or in one without the remedy."""
        said = f"{self.path}:{self.line}: {self.what} [{self.rule}]"
        return f"{said}\n    {self.remedy}" if remedy else said

    def as_json(self) -> dict[str, Any]:
        """Return it as plain data."""
        return asdict(self)


def found_at(rule: str, part: Part, place: Place, what: str, remedy: str) -> Finding:
    """Return a finding of a place that a method of a part leads to."""
    first = place.via[0] if place.via else None
    scope = place.scope if first is None else first[0]
    owner = getattr(scope.code.owner, "__name__", None) or getattr(scope.code.owner, "name", part.view.name)
    by = "" if first is None else f", by the call in line {first[1].lineno}"
    said = f"{part.who}: {owner}.{scope.code.name}{by} {what}"
    return Finding(rule, place.scope.code.file.shown, place.line, part.component.id, said, remedy)
