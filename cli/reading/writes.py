"""Writes to state that outlives a call: of a module, of a class, or of the object itself."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from types import FunctionType, ModuleType

from stormline.cli.reading.code import is_users
from stormline.cli.reading.live import is_a
from stormline.cli.reading.reach import Place
from stormline.cli.reading.state import GATHERING, is_container, is_namespace
from stormline.cli.reading.values import Foreign, Function, Inside, Known, Object, UserClass, Value

_FIRST_ARGUMENT = {"heapq.heappush", "heapq.heappushpop", "bisect.insort", "bisect.insort_left", "bisect.insort_right"}


class Kind(StrEnum):
    """How a write goes: `SET` gives a value whatever was there, `ADD` builds on what was there."""

    SET = "set"
    ADD = "add"


@dataclass(frozen=True, slots=True)
class Write:
    """One write. `root` is what holds the state; an `Object` where it is the object itself, by `attribute`."""

    place: Place
    root: Known | Object
    kind: Kind
    target: ast.expr
    value: ast.expr | None = None
    attribute: str = ""
    call: bool = False

    @property
    def text(self) -> str:
        """What is written, as in the source."""
        return ast.unparse(self.target)

    @property
    def shared(self) -> bool:
        """Whether a module or a class holds the state."""
        return isinstance(self.root, Known) and not self.root.copied

    @property
    def copied(self) -> bool:
        """Whether it changes a copy of what a module holds."""
        return isinstance(self.root, Known) and self.root.copied


def writes_at(place: Place) -> Iterator[Write]:
    """Yield the writes that a node itself is."""
    node = place.node
    if isinstance(node, ast.Assign):
        for target in node.targets:
            for one in target.elts if isinstance(target, ast.Tuple | ast.List) else [target]:
                yield from _assigned(place, one, node.value, Kind.SET)
    elif isinstance(node, ast.AnnAssign | ast.NamedExpr) and node.value is not None:
        yield from _assigned(place, node.target, node.value, Kind.SET)
    elif isinstance(node, ast.AugAssign):
        yield from _assigned(place, node.target, node.value, Kind.ADD)
    elif isinstance(node, ast.Call):
        yield from _called(place, node)


def _assigned(place: Place, target: ast.expr, value: ast.expr, kind: Kind) -> Iterator[Write]:
    scope = place.scope
    if isinstance(target, ast.Name):
        known = scope.module_name(target.id)
        if known is not None:
            yield Write(place, known, kind, target, value)
        elif kind is Kind.ADD and isinstance(held := scope.value(target), Known) and is_container(held.value):
            yield Write(place, held, kind, target, value)
    elif isinstance(target, ast.Attribute):
        owner = scope.value(target.value)
        root = _owner(owner, place)
        if root is not None:
            yield Write(place, root, kind, target, value)
        elif isinstance(owner, Object) and owner.itself:
            yield Write(place, owner, kind, target, value, target.attr)
        yield from _through(place, target.value, target, value, kind)
    elif isinstance(target, ast.Subscript):
        owner = scope.value(target.value)
        if isinstance(owner, Known) and is_container(owner.value):
            yield Write(place, owner, kind, target, value)
        elif isinstance(owner, Inside):
            yield Write(place, owner.root, kind, target, value)
        elif isinstance(owner, Foreign) and owner.dotted == "globals()":
            yield Write(
                place, Known(None, ast.unparse(target), f"module {scope.code.file.module}"), kind, target, value
            )
        yield from _through(place, target.value, target, value, kind)


def _through(
    place: Place, owner: ast.expr, target: ast.expr, value: ast.expr | None, kind: Kind, call: bool = False
) -> Iterator[Write]:
    """Yield the write to an attribute of the object itself that a change within the attribute's value is."""
    while isinstance(owner, ast.Attribute | ast.Subscript):
        if isinstance(owner, ast.Attribute):
            itself = place.scope.value(owner.value)
            if isinstance(itself, Object) and itself.itself:
                yield Write(place, itself, kind, target, value, owner.attr, call)
                return
        owner = owner.value


def _owner(owner: Value | None, place: Place) -> Known | None:
    """Return what holds an attribute that is assigned: a class, module, function or object that outlives the call."""
    match owner:
        case UserClass(view=view):
            return Known(view.identity, view.name, f"class {view.name}")
        case Function(code=code):
            return Known(code.node, code.name, f"function {code.name}")
        case Inside(root=root):
            return root
        case Known(value=value) if is_a(value, (ModuleType, FunctionType)):
            return owner
        case Known(value=value):
            cls = type(value)
            users = is_users(cls.__module__, "", place.scope.packages) or is_namespace(value)
            return owner if users else None
    return None


def _called(place: Place, node: ast.Call) -> Iterator[Write]:
    scope, function = place.scope, node.func
    if isinstance(function, ast.Name):
        yield from _by_builtin(place, node, function.id)
    if not isinstance(function, ast.Attribute):
        return
    callee = scope.value(function)
    if isinstance(callee, Foreign) and callee.dotted in _FIRST_ARGUMENT and node.args:
        held = scope.value(node.args[0])
        root = held.root if isinstance(held, Inside) else held
        if isinstance(root, Known):
            yield Write(place, root, Kind.ADD, node, None, call=True)
        yield from _through(place, node.args[0], node, None, Kind.ADD, True)
    if function.attr not in GATHERING:
        return
    owner = scope.value(function.value)
    if isinstance(owner, Known) and is_container(owner.value):
        yield Write(place, owner, Kind.ADD, node, None, call=True)
    elif isinstance(owner, Inside):
        yield Write(place, owner.root, Kind.ADD, node, None, call=True)
    elif (not isinstance(owner, Object | Foreign) and not isinstance(callee, Function)) or (
        isinstance(owner, Foreign) and owner.dotted.rstrip("()").rpartition(".")[2] in _MADE
    ):
        yield from _through(place, function.value, node, None, Kind.ADD, True)


_MADE = {"dict", "list", "set", "Counter", "defaultdict", "OrderedDict", "deque", "bytearray", "array"}


def _by_builtin(place: Place, node: ast.Call, name: str) -> Iterator[Write]:
    if name == "setattr" and len(node.args) == 3:
        owner = place.scope.value(node.args[0])
        root = _owner(owner, place)
        attribute = node.args[1].value if isinstance(node.args[1], ast.Constant) else "?"
        if root is not None:
            yield Write(place, root, Kind.SET, node, node.args[2])
        elif isinstance(owner, Object) and owner.itself:
            yield Write(place, owner, Kind.SET, node, node.args[2], str(attribute))
    elif name == "next" and node.args:
        held = place.scope.value(node.args[0])
        if isinstance(held, Known) and type(held.value).__module__ == "itertools":
            yield Write(place, held, Kind.ADD, node, None, call=True)
