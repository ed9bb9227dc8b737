"""Where an attempt, its txid or its commit id goes."""

from __future__ import annotations

import ast

from stormline.cli.reading.scope import Scope
from stormline.cli.reading.values import Object, Role

_DEPTH_MAX = 4


def mentions_attempt(node: ast.AST, scope: Scope, depth: int = 0) -> bool:
    """Tell whether an expression is made from the attempt, or from its txid or commit id, also by way of a name."""
    for child in ast.walk(node):
        if not isinstance(child, ast.Name | ast.Attribute | ast.Subscript | ast.Call):
            continue
        value = scope.value(child)
        if isinstance(value, Role) and is_attempt(value):
            return True
        if depth >= _DEPTH_MAX:
            continue
        if isinstance(child, ast.Name):
            if any(mentions_attempt(made, scope, depth + 1) for made in scope.assigned.get(child.id, ())):
                return True
        elif isinstance(child, ast.Attribute):
            owner = scope.value(child.value)
            if isinstance(owner, Object):
                for assigned in owner.view.assigned.get(child.attr, ()):
                    if mentions_attempt(assigned.value, scope.scope_of(assigned.code, owner), depth + 1):
                        return True
    return False


def is_attempt(role: Role) -> bool:
    """Tell whether a role is the attempt, a part of it, or the commit id."""
    return role.name == "txid" or role.name.startswith("attempt") or role.name == "context.commit_id()"
