"""What runs when a method is called: its own nodes, and those of the user's functions that it calls."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from stormline.cli.reading.scope import Scope
from stormline.cli.reading.source import own_nodes
from stormline.cli.reading.values import Function, Object, UserClass, key_of

WAYS_MAX = 1_000
"""So many calls are followed from one method; a program that has more is not read to its end."""


@dataclass(frozen=True, slots=True)
class Place:
    """A node that runs, the scope of the call that it is in, and the calls that lead there from the method."""

    node: ast.AST
    scope: Scope
    via: tuple[tuple[Scope, ast.Call], ...] = ()

    def above(self) -> Iterator[ast.AST]:
        """Yield what the node stands in, from the inside, up to its function."""
        parents = self.scope.code.file.parents
        node: ast.AST | None = self.node
        while (node := parents.get(node) if node is not None else None) is not None and node is not self.function:
            yield node

    @property
    def function(self) -> ast.AST:
        """The function that the node is in."""
        return self.scope.code.node

    @property
    def line(self) -> int:
        """Line of the node."""
        return int(getattr(self.node, "lineno", 0))


def reached(starts: Iterable[Scope]) -> Iterator[Place]:
    """Yield all that runs, each function once for each way in which it is called."""
    seen: set[object] = set()
    for start in starts:
        yield from _reached(start, (), seen)


def _reached(scope: Scope, via: tuple[tuple[Scope, ast.Call], ...], seen: set[object]) -> Iterator[Place]:
    way = (scope.code.node, frozenset((name, value and key_of(value)) for name, value in scope.bound.items()))
    if way in seen or len(seen) > WAYS_MAX:
        return
    seen.add(way)
    for node in own_nodes(scope.code.node):
        yield Place(node, scope, via)
        if isinstance(node, ast.Call):
            for function, call in called(node, scope):
                inner = scope.enter(function, call)
                if inner is not None:
                    yield from _reached(inner, (*via, (scope, node)), seen)


def called(node: ast.Call, scope: Scope) -> Iterator[tuple[Function, ast.Call | None]]:
    """Yield the user's functions that a call runs: the one that is called, and those that are handed over."""
    callee = scope.value(node.func)
    match callee:
        case Function():
            yield callee, node
        case UserClass(view=view):
            init = view.method("__init__")
            if init is not None:
                yield Function(init, Object(view, made=(node, scope))), node
        case Object(view=view):
            method = view.method("__call__")
            if method is not None:
                yield Function(method, callee), node
    for arg in (*node.args, *(keyword.value for keyword in node.keywords)):
        if isinstance(arg, ast.Name | ast.Attribute):
            value = scope.value(arg)
            if isinstance(value, Function):
                yield value, None
