"""Part: a bolt, coordinator or emitter of a topology, to be read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from stormline.cli.reading.classes import ClassView
from stormline.cli.reading.code import Code
from stormline.cli.reading.reach import Place, reached
from stormline.cli.reading.scope import Scope
from stormline.cli.reading.values import Object
from stormline.topology.gathering import gathered_by
from stormline.topology.plan import Placement, Plan, PlannedComponent


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """`kind` is 'bolt', 'spout', 'coordinator' or 'emitter'; the last two as the spout's `get_…` makes them."""

    component: PlannedComponent
    kind: str
    itself: Object
    packages: frozenset[str]

    @property
    def who(self) -> str:
        """What a person calls it."""
        spout = "" if self.kind in ("bolt", "spout") else " of spout"
        return f"{self.kind}{spout} {self.component.id!r}"

    @property
    def declared(self) -> Any:
        """The object that the topology was built with."""
        return self.component.component.obj

    @property
    def view(self) -> ClassView:
        """Its class."""
        return self.itself.view

    @property
    def gathers(self) -> tuple[str, ...] | None:
        """The attributes that a deferred bolt says it gathers; None: it does not say, or is not deferred."""
        return gathered_by(self.declared) if self.component.deferred else None

    @property
    def in_workers(self) -> bool:
        """Whether it runs in Spark's Python workers."""
        if self.kind == "bolt":
            return not self.component.deferred or self.component.commit_placement is Placement.EXECUTORS
        return self.kind == "emitter" and self.declared.emits_on_executors is True

    def method(self, name: str) -> Code | None:
        """Return a method, where it is the user's own."""
        return self.view.method(name)

    def scope(self, code: Code) -> Scope:
        """Return the scope of a method as Stormline calls it."""
        return Scope.of_method(code, self.itself, self.packages)

    def reached(self, *methods: str) -> Iterator[Place]:
        """Yield all that runs when these methods are called."""
        found = [self.view.method(name) for name in methods]
        return reached([self.scope(code) for code in found if code is not None])


def untold(part: Part) -> Iterator[str]:
    """Yield the methods by which a spout makes what reading cannot tell."""
    for method in ("get_coordinator", "get_emitter") if part.kind == "spout" else ():
        code = part.method(method)
        if code is not None:
            scope = part.scope(code)
            values = [scope.value(node) for node in scope.returned()]
            if any(value is None for value in values):
                yield method


def parts_of(plan: Plan, packages: frozenset[str]) -> Iterator[Part]:
    """Yield the parts of a topology that are the user's own, in the order of declaration."""
    for component in plan.components.values():
        kind = "spout" if component is plan.spout else "bolt"
        cls = type(component.component.obj)
        itself = Object(ClassView.of(cls, packages), component.component.obj, itself=True)
        if not itself.view.layers:
            continue
        part = Part(component, kind, itself, packages)
        yield part
        if kind == "spout":
            for name in ("coordinator", "emitter"):
                for made in _made_by(part, f"get_{name}"):
                    yield Part(component, name, made, packages)


def _made_by(spout: Part, method: str) -> Iterator[Object]:
    code = spout.method(method)
    if code is None:
        return
    scope = spout.scope(code)
    for node in scope.returned():
        value = scope.value(node)
        if isinstance(value, Object) and value.view.layers:
            yield Object(value.view, value.live, value.made, itself=True)
