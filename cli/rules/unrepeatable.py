"""unrepeatable-batch: what an emitter emits depends on chance or on the clock, so a replay gives other tuples."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from stormline.cli.reading.attempts import origins_of
from stormline.cli.reading.libraries import CHANCE, CHANCE_MODULES, CLOCK, CLOCK_WITHOUT_ARGUMENTS, NO_CHANCE
from stormline.cli.reading.parts import Part
from stormline.cli.reading.reach import Place
from stormline.cli.reading.scope import Scope
from stormline.cli.reading.source import own_nodes
from stormline.cli.reading.values import Foreign, Function, Known, Object, Role
from stormline.cli.rules.finding import Finding, found_at

RULE = "unrepeatable-batch"
REMEDY = (
    "every attempt of a batch must give the same tuples: draw it where the metadata is made, and take it from there, "
    "or seed a random.Random with the txid"
)
_METHODS = ("emit_batch", "emit_partition_batch", "emit_partition_batch_new")
_EMITS = frozenset({"emit", "emit_all", "emit_direct", "emit_batch"})
_PUTS = frozenset({"append", "add", "extend", "insert", "update", "setdefault"})
_DEPTH_MAX = 5

Source = tuple[ast.Call, Scope]


def find(part: Part) -> Iterator[Finding]:
    """Yield each use of random numbers or of the clock that reaches what is emitted.

    What is returned as metadata, too, is known to a replay. The clock may well decide how long to go on.
    """
    if part.kind != "emitter":
        return
    seen: set[tuple[str, int]] = set()
    for method in _METHODS:
        code = part.method(method)
        if code is None:
            continue
        scope = part.scope(code)
        if method == "emit_partition_batch_new" and any(any(_drawn(node, scope)) for node in scope.returned()):
            continue
        places = list(part.reached(method))
        if any(_seeds(place) for place in places):
            continue
        for place in places:
            for call, inner in _sources(place):
                where = (inner.code.file.path, call.lineno)
                if where not in seen:
                    seen.add(where)
                    led = () if inner is place.scope or not isinstance(place.node, ast.Call) else (place.node,)
                    at = Place(call, inner, (*place.via, *((place.scope, by) for by in led)))
                    yield found_at(RULE, part, at, f"emits what {ast.unparse(call)} gives", REMEDY)


def _sources(place: Place) -> Iterator[Source]:
    node, scope = place.node, place.scope
    if isinstance(node, ast.Call) and _is_emit(node, scope):
        for arg in (*node.args, *(keyword.value for keyword in node.keywords)):
            yield from _drawn(arg, scope)
    elif isinstance(node, ast.If | ast.While | ast.For) and _decides(node, scope):
        yield from _drawn(node.iter if isinstance(node, ast.For) else node.test, scope, chance_only=True)


def _is_emit(node: ast.Call, scope: Scope) -> bool:
    callee = scope.value(node.func)
    if isinstance(callee, Role):
        return callee.name.startswith("collector.emit")
    return callee is None and isinstance(node.func, ast.Attribute) and node.func.attr in _EMITS


def _decides(node: ast.If | ast.While | ast.For, scope: Scope) -> bool:
    """Return whether it depends on the condition what is emitted."""
    inner = [child for statement in (*node.body, *node.orelse) for child in ast.walk(statement)]
    ends = not isinstance(node, ast.For) and any(
        isinstance(child, ast.Continue | ast.Break | ast.Return) for child in inner
    )
    return ends or any(isinstance(child, ast.Call) and _is_emit(child, scope) for child in inner)


def _drawn(node: ast.AST, scope: Scope, depth: int = 0, chance_only: bool = False) -> Iterator[Source]:
    """Yield the calls of chance and clock that an expression is made from."""
    for child in ast.walk(node):
        drawn = isinstance(child, ast.Call) and (
            _is_chance(child, scope) or (not chance_only and _is_clock(child, scope))
        )
        if drawn:
            yield child, scope  # type: ignore[misc]
        elif depth < _DEPTH_MAX:
            for made, inner in _made_from(child, scope):
                yield from _drawn(made, inner, depth + 1, chance_only)


def _made_from(node: ast.AST, scope: Scope) -> Iterator[tuple[ast.expr, Scope]]:
    """Yield the expressions that give a name, an attribute or a call of the user's its value."""
    if isinstance(node, ast.Call):
        callee = scope.value(node.func)
        inner = scope.enter(callee, node) if isinstance(callee, Function) else None
        for returned in inner.returned() if inner is not None else ():
            yield returned, inner  # type: ignore[misc]
    elif isinstance(node, ast.Name | ast.Attribute):
        yield from origins_of(node, scope)
        for put in _put_into(node.id, scope) if isinstance(node, ast.Name) else ():
            yield put, scope


def _put_into(name: str, scope: Scope) -> Iterator[ast.expr]:
    """Yield what a function puts into what a local name stands for, and the call that mixes it up."""
    for node in own_nodes(scope.code.node):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=held), attr=put)) if held == name and put in _PUTS:
                yield from (*node.args, *(keyword.value for keyword in node.keywords))
            case ast.Call(func=ast.Attribute(attr="shuffle"), args=[ast.Name(id=held), *_]) if held == name:
                yield node
            case ast.Call(func=ast.Name(id="shuffle"), args=[ast.Name(id=held), *_]) if held == name:
                yield node
            case ast.Assign(targets=[ast.Subscript(value=ast.Name(id=held))], value=value) if held == name:
                yield value


def _is_clock(call: ast.Call, scope: Scope) -> bool:
    callee = scope.value(call.func)
    if not isinstance(callee, Foreign):
        return False
    if callee.dotted in CLOCK_WITHOUT_ARGUMENTS or callee.dotted == "time.strftime":
        return len(call.args) == (callee.dotted == "time.strftime")
    return callee.dotted in CLOCK


def _is_chance(call: ast.Call, scope: Scope) -> bool:
    callee = scope.value(call.func)
    if not isinstance(callee, Foreign):
        return False
    dotted, last = callee.dotted, callee.dotted.rpartition(".")[2]
    if dotted in CHANCE:
        return True
    if last.rstrip("()") in NO_CHANCE or not dotted.startswith(CHANCE_MODULES):
        return False
    if "()" not in dotted:  # of the module itself
        return True
    if dotted.startswith("random.SystemRandom()"):
        return True
    if callee.call is None:  # an object that a module holds: drawn on by every batch in turn
        return isinstance(callee.receiver, Known)
    return not (callee.call.args or callee.call.keywords) or _outlives_batch(call, scope)


def _outlives_batch(call: ast.Call, scope: Scope) -> bool:
    """Return whether a generator is an attribute that is not made anew where batches are emitted."""
    generator = call.func.value if isinstance(call.func, ast.Attribute) else None
    if not isinstance(generator, ast.Attribute):
        return False
    owner = scope.value(generator.value)
    if not isinstance(owner, Object):
        return False
    made = owner.view.assigned.get(generator.attr, [])
    return bool(made) and all(assigned.code.name == "__init__" for assigned in made)


def _seeds(place: Place) -> bool:
    """Return whether a generator is set to a known state while a batch is emitted."""
    match place.node:
        case ast.Call(func=ast.Attribute(attr="seed" | "setstate"), args=[_, *_]):
            return True
        case ast.Call(func=ast.Name() as function, args=[_, *_]):
            callee = place.scope.value(function)
            return isinstance(callee, Foreign) and callee.dotted in ("random.seed", "numpy.random.seed")
    return False
