"""Whether a write only fills in what is missing: a connection made once a process, a value looked up once."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from stormline.cli.reading.libraries import CLOCK
from stormline.cli.reading.scope import Scope
from stormline.cli.reading.source import own_nodes
from stormline.cli.reading.values import Foreign, Object, Role, UserClass
from stormline.cli.reading.writes import Kind, Write

_TELLING = {"debug", "info", "warning", "warn", "error", "exception", "critical", "log", "print"}
_ABSENT = {"KeyError", "AttributeError", "NameError", "LookupError", "IndexError"}


def fills_in(write: Write) -> bool:
    """Return whether a write is one that each process may well do for itself, as far as can be told.

    It gives a value where there is none yet; fetches anew what it keeps; notes that something has been done, or when.
    """
    if _tells_once(write) or is_from(write.value, write.place.scope, CLOCK):
        return True
    if write.value is None or builds_on(write):
        return False
    if isinstance(write.value, ast.Constant) and isinstance(write.target, ast.Subscript):
        return False  # what has been seen
    return _is_guarded(write) or _fetches(write)


def _is_guarded(write: Write) -> bool:
    names = _names_of(write)
    assert write.value is not None
    if isinstance(write.value, ast.BoolOp) and _mentions(write.value.values[0], names):
        return True
    inside = list(write.place.above())
    for node in own_nodes(write.place.function):
        if isinstance(node, ast.If | ast.IfExp | ast.While) and asks_for_absence(node.test, names):
            body = node.body if isinstance(node.body, list) else []
            if node in inside or (body and isinstance(body[-1], ast.Return | ast.Continue)):
                return True
        if isinstance(node, ast.Try) and _looks_up(node, names):
            return True
    return False


def _fetches(write: Write) -> bool:
    """Return whether the value is what a function gives, under a condition, or without a look at the tuples."""
    value = write.value
    if isinstance(value, ast.Name):
        made = write.place.scope.assigned.get(value.id, [])
        value = made[0] if len(made) == 1 else value
    if not isinstance(value, ast.Call) or isinstance(write.place.scope.value(value.func), UserClass):
        return False
    callee = write.place.scope.value(value.func)
    if isinstance(callee, Role) or (isinstance(callee, Foreign) and "." not in callee.dotted):  # int, max, list
        return False
    conditional = any(isinstance(node, ast.If) for node in write.place.above())
    return conditional or not any(_is_data(node, write) for node in ast.walk(value))


def _is_data(node: ast.AST, write: Write) -> bool:
    """Return whether a name may stand for a tuple, or a part of one."""
    if not isinstance(node, ast.Name):
        return False
    scope = write.place.scope
    return node.id in scope.assigned or (node.id in scope.code.parameters and not isinstance(scope.value(node), Object))


def _tells_once(write: Write) -> bool:
    """Return whether the write only sees to it that something is logged once."""
    block = next((node for node in write.place.above() if isinstance(node, ast.If)), None)
    if block is None:
        return False
    others = [statement for statement in block.body if not _holds(statement, write)]
    return bool(others) and all(
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Call)
        and ast.unparse(statement.value.func).rpartition(".")[2] in _TELLING
        for statement in others
    )


def _holds(statement: ast.stmt, write: Write) -> bool:
    return any(child is write.place.node for child in ast.walk(statement))


def asks_for_absence(test: ast.expr, names: set[str]) -> bool:
    """Return whether a condition asks if something is there: `x is None`, `not x`, `key in x`, `hasattr(x, …)`."""
    for node in ast.walk(test):
        match node:
            case ast.Compare(left=left, ops=[ast.Is() | ast.IsNot() | ast.Eq() | ast.NotEq()], comparators=[right]):
                nothing = isinstance(right, ast.Constant) and right.value is None
                if nothing and _mentions(left, names):
                    return True
            case ast.Compare(ops=[ast.In() | ast.NotIn()], comparators=[right]) if _mentions(right, names):
                return True
            case ast.UnaryOp(op=ast.Not(), operand=operand) if _plain(operand) and _mentions(operand, names):
                return True
            case ast.Call(func=ast.Name(id="hasattr" | "getattr" | "isinstance"), args=[first, *_]):
                if _mentions(first, names):
                    return True
    return _plain(test) and _mentions(test, names)


def _names_of(write: Write) -> set[str]:
    """Return what the state is called here: the target without its key, and local names for what is looked up there."""
    target: ast.expr = write.target
    while isinstance(target, ast.Subscript):
        target = target.value
    names = {ast.unparse(target)}
    for name, values in write.place.scope.assigned.items():
        if any(_mentions(value, names) for value in values):
            names.add(name)
    return names


def _mentions(node: ast.AST, names: set[str]) -> bool:
    return any(isinstance(child, ast.Name | ast.Attribute) and ast.unparse(child) in names for child in ast.walk(node))


def builds_on(write: Write) -> bool:
    """Return whether what is written is made from what was there, as a sum is."""
    return write.kind is Kind.ADD or (write.value is not None and _made_from(write.value, _names_of(write), write, 0))


def _made_from(value: ast.expr, names: set[str], write: Write, depth: int) -> bool:
    if isinstance(value, ast.Name):
        made = write.place.scope.assigned.get(value.id, ()) if depth < 3 else ()
        return any(_made_from(one, names, write, depth + 1) for one in made)
    if isinstance(value, ast.BoolOp) and _plain(value.values[0]):  # what was there, or what is made
        return any(_mentions(one, names) for one in value.values[1:])
    return not _plain(value) and _mentions(value, names)


def _plain(node: ast.expr) -> bool:
    """Return whether a condition is a name, an attribute, or what is got by a key."""
    if isinstance(node, ast.NamedExpr):
        return _plain(node.value)
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Attribute) and node.func.attr == "get"
    return isinstance(node, ast.Name | ast.Attribute | ast.Subscript)


def _looks_up(node: ast.Try, names: set[str]) -> bool:
    """Return whether it tries to get what is there, and catches that it is not."""
    return any(_mentions(child, names) for child in node.body) and any(
        _caught(handler) & _ABSENT for handler in node.handlers
    )


def _caught(handler: ast.ExceptHandler) -> set[str]:
    return set(_exceptions(handler.type))


def _exceptions(node: ast.expr | None) -> Iterator[str]:
    for child in ast.walk(node) if node is not None else ():
        if isinstance(child, ast.Name):
            yield child.id


def is_from(node: ast.expr | None, scope: Scope, functions: frozenset[str]) -> bool:
    """Return whether an expression is what one of these functions of libraries gives, also by way of a name."""
    if isinstance(node, ast.Name) and len(made := scope.assigned.get(node.id, [])) == 1:
        node = made[0]
    callee = scope.value(node.func) if isinstance(node, ast.Call) else None
    return isinstance(callee, Foreign) and callee.dotted in functions
