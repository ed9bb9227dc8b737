"""ClassView: a user's class and the user's classes that it inherits from; also one that is defined in a function."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from stormline.cli.reading.code import Code, code_of, is_users
from stormline.cli.reading.live import is_a
from stormline.cli.reading.source import own_nodes
from stormline.cli.reading.values import UserClass

if TYPE_CHECKING:
    from stormline.cli.reading.scope import Scope


@dataclass(frozen=True)
class Assigned:
    """A value that a method gives to an attribute of its object."""

    code: Code
    value: ast.expr
    line: int


class Layer:
    """One class of those that a class consists of. `identity` is the class, or its node where nothing was run."""

    def __init__(self, name: str, identity: object, attributes: Mapping[str, Any], codes: Mapping[str, Code]) -> None:
        self.name = name
        self.identity = identity
        self.attributes = attributes
        self.codes = codes


class ClassView:
    """The layers of a class, itself first. `bases` are the dotted names of what it inherits from elsewhere."""

    def __init__(self, name: str, identity: object, layers: list[Layer], packages: frozenset[str]) -> None:
        self.name = name
        self.identity = identity
        self.layers = layers
        self.packages = packages

    @classmethod
    def of(cls, found: type, packages: frozenset[str]) -> ClassView:
        """Return the view of a class that exists."""
        layers = [_layer(base, packages) for base in found.__mro__ if _owned(base, packages)]
        return cls(found.__name__, found, layers, packages)

    @classmethod
    def of_node(cls, node: ast.ClassDef, scope: Scope) -> ClassView:
        """Return the view of a class that a function defines."""
        codes = {
            child.name: Code(child, scope.code.file, scope.code.globals, child.name, node, _kind_of(child), outer=scope)
            for child in node.body
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)
        }
        layers = [Layer(node.name, node, {}, codes)]
        for base in node.bases:
            value = scope.value(base)
            if isinstance(value, UserClass):
                layers += value.view.layers
        return cls(node.name, node, layers, scope.packages)

    def method(self, name: str, after: object = None) -> Code | None:
        """Return a method as the class or a base of it has it; with `after`, as `super()` in that class does."""
        for layer in self._after(after):
            if name in layer.codes:
                return layer.codes[name]
            if name in layer.attributes:
                return None
        return None

    def methods(self) -> Iterator[Code]:
        """Yield every method that an object of the class has, also those that `super()` alone leads to."""
        for layer in self.layers:
            yield from layer.codes.values()

    def class_value(self, name: str) -> tuple[Any, str] | None:
        """Return what the class holds under a name, and the name of the class that has it in its body."""
        for layer in self.layers:
            if name in layer.attributes:
                return layer.attributes[name], layer.name
        return None

    @cached_property
    def assigned(self) -> Mapping[str, list[Assigned]]:
        """What methods give to each attribute, as `self.name = value`."""
        found: dict[str, list[Assigned]] = {}
        for code in self.methods():
            if not code.parameters or code.kind != "method":
                continue
            for node in own_nodes(code.node):
                for target, value in pairs_of(node):
                    if (
                        isinstance(target, ast.Attribute)
                        and isinstance(target.value, ast.Name)
                        and target.value.id == code.parameters[0]
                    ):
                        found.setdefault(target.attr, []).append(Assigned(code, value, target.lineno))
        return found

    def _after(self, identity: object) -> list[Layer]:
        if identity is None:
            return self.layers
        for index, layer in enumerate(self.layers):
            if layer.identity is identity:
                return self.layers[index + 1 :]
        return []


def pairs_of(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield each target of an assignment with its value, where it is assigned as it is."""
    if isinstance(node, ast.Assign):
        for target in node.targets:
            yield from _matched(target, node.value)
    elif isinstance(node, ast.AnnAssign | ast.NamedExpr) and node.value is not None:
        yield node.target, node.value
    elif isinstance(node, ast.withitem) and node.optional_vars is not None:
        yield node.optional_vars, node.context_expr


def _matched(target: ast.expr, value: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    if not isinstance(target, ast.Tuple | ast.List):
        yield target, value
    elif isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(target.elts):
        for one, its in zip(target.elts, value.elts, strict=True):
            yield from _matched(one, its)
    else:
        for index, one in enumerate(target.elts):  # a, b = c
            item = ast.Subscript(value=value, slice=ast.Constant(index), ctx=ast.Load())
            yield one, ast.copy_location(item, value)


def _owned(cls: type, packages: frozenset[str]) -> bool:
    module = sys.modules.get(cls.__module__)
    return is_users(cls.__module__, getattr(module, "__file__", None) or "", packages) and cls is not object


def _layer(cls: type, packages: frozenset[str]) -> Layer:
    codes = {}
    for name, found in vars(cls).items():
        if is_a(found, type):
            continue
        code = code_of(found, packages, cls, name)
        if code is not None:
            codes[name] = code
    attributes = {name: value for name, value in vars(cls).items() if name not in codes}
    return Layer(cls.__name__, cls, attributes, codes)


def _kind_of(node: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    names = {decorator.id for decorator in node.decorator_list if isinstance(decorator, ast.Name)}
    return "static" if "staticmethod" in names else "class" if "classmethod" in names else "method"
