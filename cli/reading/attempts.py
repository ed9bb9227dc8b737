"""Where an attempt, its txid or its commit id goes."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from stormline.cli.reading.scope import Scope
from stormline.cli.reading.values import Object, Role

_DEPTH_MAX = 4


def mentions_attempt(node: ast.AST, scope: Scope, *, surely: bool = False, depth: int = 0) -> bool:
    """Return whether an expression is made from the attempt, or from its txid or commit id, also by way of a name.

    Without `surely`, also from a field of a tuple that only has a name like that of the attempt: `tup["id"]`.
    """
    for child in ast.walk(node):
        if not isinstance(child, ast.Name | ast.Attribute | ast.Subscript | ast.Call):
            continue
        value = scope.value(child)
        if isinstance(value, Role) and is_attempt(value) and not (surely and value.name == "attempt?"):
            return True
        if depth < _DEPTH_MAX and any(
            mentions_attempt(made, inner, surely=surely, depth=depth + 1) for made, inner in origins_of(child, scope)
        ):
            return True
    return False


def origins_of(node: ast.expr, scope: Scope) -> Iterator[tuple[ast.expr, Scope]]:
    """Yield what a local name, or an attribute of an object of the user's, gets its value from."""
    if isinstance(node, ast.Name):
        for made in scope.assigned.get(node.id, ()):
            yield made, scope
    elif isinstance(node, ast.Attribute) and isinstance(owner := scope.value(node.value), Object):
        for assigned in owner.view.assigned.get(node.attr, ()):
            yield assigned.value, scope.scope_of(assigned.code, owner)


def is_attempt(role: Role) -> bool:
    """Return whether a role is the attempt, a part of it, or the commit id."""
    return role.name == "txid" or role.name.startswith("attempt") or role.name == "context.commit_id()"
