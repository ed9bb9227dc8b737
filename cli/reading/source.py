"""SourceFile: a file of the user's, parsed once. The text comes from where tracebacks have it, so zips work too."""

from __future__ import annotations

import ast
import linecache
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


@dataclass(frozen=True)
class SourceFile:
    """A parsed file, the name of the module that it is, and that of its package."""

    path: str
    module: str
    package: str
    tree: ast.Module

    @property
    def shown(self) -> str:
        """The path as a person would type it here."""
        relative = os.path.relpath(self.path)
        return self.path if relative.startswith("..") else relative

    @cached_property
    def parents(self) -> Mapping[ast.AST, ast.AST]:
        """What each node stands in."""
        return {child: node for node in ast.walk(self.tree) for child in ast.iter_child_nodes(node)}

    @cached_property
    def _functions(self) -> Mapping[tuple[int, str], list[FunctionNode]]:
        found: dict[tuple[int, str], list[FunctionNode]] = {}
        for node in ast.walk(self.tree):
            if isinstance(node, FunctionNode):
                name = "<lambda>" if isinstance(node, ast.Lambda) else node.name
                found.setdefault((first_line(node), name), []).append(node)
        return found

    def function(self, line: int, name: str) -> FunctionNode | None:
        """Return the function that begins there; None where none does, or several lambdas do."""
        found = self._functions.get((line, name), [])
        return found[0] if len(found) == 1 else None

    @cached_property
    def imports(self) -> Mapping[str, str]:
        """The dotted name of each imported one; without those that stand for several."""
        found: dict[str, set[str]] = {}
        for node in ast.walk(self.tree):
            for name, dotted in _imported(node, self.package):
                found.setdefault(name, set()).add(dotted)
        return {name: next(iter(dotted)) for name, dotted in found.items() if len(dotted) == 1}

    def class_line(self, cls_name: str, attribute: str) -> int | None:
        """Return the line where the body of a class names an attribute."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.ClassDef) and node.name == cls_name:
                for statement in node.body:
                    if attribute in assigned_names(statement):
                        return statement.lineno
        return None


_read: dict[str, SourceFile | None] = {}


def read_source(path: str, module_globals: Mapping[str, Any]) -> SourceFile | None:
    """Return the file that a module was made of; None where there is none, or none that can be read."""
    if path not in _read:
        lines = linecache.getlines(path, dict(module_globals))
        module = str(module_globals.get("__name__", "?"))
        try:
            tree = ast.parse("".join(lines))
        except (SyntaxError, ValueError):
            lines = []
        _read[path] = SourceFile(path, module, str(module_globals.get("__package__") or ""), tree) if lines else None
    return _read[path]


def forget() -> None:
    """Let go of all files: a run goes on for long after its check."""
    _read.clear()


def first_line(node: FunctionNode) -> int:
    """Return the line that a function's code names as its first: that of its first decorator."""
    decorators = [] if isinstance(node, ast.Lambda) else node.decorator_list
    return min([node.lineno, *(decorator.lineno for decorator in decorators)])


def assigned_names(statement: ast.stmt) -> set[str]:
    """Return the plain names that a statement of a class's body assigns or annotates."""
    targets: list[ast.expr] = []
    if isinstance(statement, ast.Assign):
        targets = statement.targets
    elif isinstance(statement, ast.AnnAssign):
        targets = [statement.target]
    return {node.id for target in targets for node in ast.walk(target) if isinstance(node, ast.Name)}


def own_nodes(function: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes that run with a function, in the source's order: lambdas too, not what else is defined in it."""
    body = [function.body] if isinstance(function, ast.Lambda) else getattr(function, "body", [])
    todo = list(reversed(body))
    while todo:
        node = todo.pop()
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            todo.extend(reversed(list(ast.iter_child_nodes(node))))


def _imported(node: ast.AST, package: str) -> Iterator[tuple[str, str]]:
    if isinstance(node, ast.Import):
        for alias in node.names:
            yield (
                alias.asname or alias.name.partition(".")[0],
                (alias.name if alias.asname else alias.name.partition(".")[0]),
            )
    elif isinstance(node, ast.ImportFrom):
        base = node.module or ""
        if node.level:
            above = package.split(".")
            above = above[: len(above) - node.level + 1]
            base = ".".join([*above, base] if base else above)
        for alias in node.names:
            yield alias.asname or alias.name, f"{base}.{alias.name}" if base else alias.name
