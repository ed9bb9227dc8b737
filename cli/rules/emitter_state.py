"""emitter-state: an emitter that may run on any executor keeps something from batch to batch."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from stormline.cli.reading.guards import builds_on, fills_in
from stormline.cli.reading.parts import Part
from stormline.cli.reading.reach import Place
from stormline.cli.reading.values import Object
from stormline.cli.reading.writes import Kind, Write, writes_at
from stormline.cli.rules.finding import Finding, found_at
from stormline.cli.rules.static_state import told

RULE = "emitter-state"
REMEDY = (
    "with emits_on_executors any process may emit the next batch, by another object: put it into the metadata, or "
    "leave emits_on_executors out, so that one emitter a task lives in the driver"
)
METHODS = ("emit_batch", "emit_partition_batch", "emit_partition_batch_new", "cleanup_before", "num_partitions")


def find(part: Part) -> Iterator[Finding]:
    """Yield each attribute, or state of a module or class, that emitting writes and later emitting reads."""
    if part.kind != "emitter" or not part.in_workers:
        return
    places = list(part.reached(*METHODS))
    for place in places:
        for write in writes_at(place):
            if fills_in(write) or _kept_by_key(write):
                continue
            if write.shared:
                yield found_at(RULE, part, place, told(write), REMEDY)
            elif (write.kind is Kind.ADD or _read_before(write, places)) and not _begun_anew(part, write.attribute):
                yield found_at(RULE, part, place, f"keeps self.{write.attribute} for later batches", REMEDY)


def _kept_by_key(write: Write) -> bool:
    """Return whether the attribute is given a value only where a condition on its like says so, as a cache is."""
    if write.shared or builds_on(write):
        return False
    owner = ast.unparse(write.target.value) if isinstance(write.target, ast.Attribute) else ""
    for node in write.place.above():
        if isinstance(node, ast.If) and any(
            isinstance(child, ast.Attribute) and ast.unparse(child) == f"{owner}.{write.attribute}"
            for child in ast.walk(node.test)
        ):
            return True
    return False


def _read_before(write: Write, places: list[Place]) -> bool:
    """Return whether the attribute is read where the write has not come yet: above it, or in another method."""
    for place in places:
        node = place.node
        reads = _is_attribute(place, write.attribute) and isinstance(getattr(node, "ctx", None), ast.Load)
        if reads and (place.function is not write.place.function or place.line <= write.place.line):
            return True
    return False


def _begun_anew(part: Part, attribute: str) -> bool:
    """Return whether each method gives the attribute a new value before it uses it."""
    for method in METHODS:
        first = next((place for place in part.reached(method) if _is_attribute(place, attribute)), None)
        if first is not None and not _is_new(first, attribute):
            return False
    return True


def _is_new(place: Place, attribute: str) -> bool:
    if not isinstance(getattr(place.node, "ctx", None), ast.Store):
        return False
    for node in place.above():
        if isinstance(node, ast.If | ast.AugAssign | ast.For | ast.While | ast.Try):
            return False
        if isinstance(node, ast.Assign) and any(
            isinstance(child, ast.Attribute) and child.attr == attribute for child in ast.walk(node.value)
        ):
            return False
    return True


def _is_attribute(place: Place, attribute: str) -> bool:
    node = place.node
    if not isinstance(node, ast.Attribute) or node.attr != attribute:
        return False
    owner = place.scope.value(node.value)
    return isinstance(owner, Object) and owner.itself
