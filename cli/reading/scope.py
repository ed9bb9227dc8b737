"""Scope: one call of a function of the user's, and what each expression in it stands for."""

from __future__ import annotations

import ast
import builtins
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from types import ModuleType

from stormline.cli.reading.classes import ClassView, pairs_of
from stormline.cli.reading.code import Code, is_users
from stormline.cli.reading.live import attributes_of, is_a
from stormline.cli.reading.objects import agreed, file_of, held_value, item_of, object_value
from stormline.cli.reading.source import own_nodes
from stormline.cli.reading.state import is_container
from stormline.cli.reading.values import Foreign, Function, Inside, Known, Object, Role, UserClass, Value

DEPTH_MAX = 6

_ROLES: Mapping[str, tuple[str, ...]] = {
    "prepare": ("conf", "context", "collector", "attempt"),
    "execute": ("tuple", "collector"),
    "execute_batch": ("batch",),
    "get_coordinator": ("conf", "context"),
    "get_emitter": ("conf", "context"),
    "emit_batch": ("attempt", "metadata", "collector"),
    "emit_partition_batch_new": ("attempt", "collector", "partition", "metadata"),
    "emit_partition_batch": ("attempt", "collector", "partition", "metadata"),
    "commit": ("attempt",),
}
_PASSED_ON = {"contextlib.closing", "contextlib.nullcontext", "copy.copy", "iter", "list", "sorted", "reversed"}
_WITHIN = {"get", "setdefault", "values", "items", "__getitem__", "pop", "popleft"}


class Scope:
    """What names are in one call: parameters by what was passed, the rest as Python looks them up.

    An expression that may stand for several things stands for none: `value` gives None where reading does not tell.
    """

    def __init__(self, code: Code, packages: frozenset[str], bound: Mapping[str, Value | None], depth: int = 0) -> None:
        self.code = code
        self.packages = packages
        self.bound = bound
        self.depth = depth
        self._found: dict[ast.AST, Value | None] = {}

    @classmethod
    def of_method(cls, code: Code, receiver: Object | Known, packages: frozenset[str], depth: int = 0) -> Scope:
        """Return the scope of a method as Stormline calls it, on `receiver`."""
        bound: dict[str, Value | None] = {}
        parameters = list(code.parameters)
        if code.kind != "static" and parameters:
            bound[parameters.pop(0)] = receiver
        bound.update(zip(parameters, map(Role, _ROLES.get(code.name, ())), strict=False))
        return cls(code, packages, bound, depth)

    @cached_property
    def assigned(self) -> Mapping[str, list[ast.expr]]:
        """The values that the function gives to each of its local names."""
        found: dict[str, list[ast.expr]] = {}
        for node in own_nodes(self.code.node):
            for target, value in pairs_of(node):
                if isinstance(target, ast.Name):
                    found.setdefault(target.id, []).append(value)
            if isinstance(node, ast.For | ast.comprehension):
                targets = node.target.elts if isinstance(node.target, ast.Tuple) else [node.target]
                for target in targets:
                    if isinstance(target, ast.Name):
                        found.setdefault(target.id, []).append(node.iter)
        return {name: values for name, values in found.items() if name not in self._declared}

    @cached_property
    def _declared(self) -> frozenset[str]:
        """Names that the function declares as those of the module, or of the function around it."""
        nodes = (node for node in own_nodes(self.code.node) if isinstance(node, ast.Global | ast.Nonlocal))
        return frozenset(name for node in nodes for name in node.names)

    @cached_property
    def _local_definitions(self) -> Mapping[str, ast.AST]:
        kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
        return {node.name: node for node in own_nodes(self.code.node) if isinstance(node, kinds)}

    def value(self, node: ast.expr) -> Value | None:
        """Return what an expression stands for."""
        if node not in self._found:
            self._found[node] = None  # while it is looked for: what leads back to itself tells nothing
            self._found[node] = self._value(node)
        return self._found[node]

    def _value(self, node: ast.expr) -> Value | None:
        match node:
            case ast.Name(id=name):
                return self.name(name)
            case ast.Attribute():
                return self._attribute(node)
            case ast.Call():
                return self._call(node)
            case ast.Subscript(value=base, slice=index):
                return item_of(self.value(base), index)
            case ast.IfExp(body=body, orelse=orelse):
                return self._one_of([body, orelse])
            case ast.BoolOp(values=values):
                return self._one_of(values)
            case ast.NamedExpr(value=value) | ast.Await(value=value):
                return self.value(value)
            case ast.BinOp(left=left, op=ast.Div()):
                path = self.value(left)
                return path if isinstance(path, Foreign) and path.dotted.endswith("Path()") else None
            case ast.Lambda():
                return Function(Code(node, self.code.file, self.code.globals, "<lambda>", self.code.owner, outer=self))
        return None

    def _one_of(self, nodes: list[ast.expr]) -> Value | None:
        values = [self.value(n) for n in nodes if not _is_none(n)]
        return agreed(values)

    def name(self, name: str) -> Value | None:
        """Return what a name stands for here."""
        if name in self.bound:
            return self.bound[name] if name not in self.assigned else None
        if name in self.assigned:
            return self._one_of(self.assigned[name])
        if name in self._local_definitions:
            return self._defined(self._local_definitions[name])
        if name in self.code.parameters or name in {arg.arg for arg in self.code.node.args.kwonlyargs}:
            default = self.code.defaults.get(name)
            home = f"the default of parameter {name!r} of {self.code.name}"
            return None if default is None else object_value(default, name, home, self.packages)
        if self.code.outer is not None and name not in self.code.cells:
            return self.code.outer.name(name)
        if name in self.code.cells:
            return object_value(self.code.cells[name], name, f"the function around {self.code.name}", self.packages)
        return self._global(name)

    def module_name(self, name: str) -> Known | None:
        """Return the variable of the module, or of the function around, that `global` or `nonlocal` speaks of."""
        if name not in self._declared:
            return None
        if name in self.code.cells:
            return Known(self.code.cells[name], name, f"the function around {self.code.name}")
        return Known(self.code.globals.get(name), name, f"module {self.code.file.module}")

    def _defined(self, node: ast.AST) -> Value | None:
        if isinstance(node, ast.ClassDef):
            return UserClass(ClassView.of_node(node, self))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            code = Code(node, self.code.file, self.code.globals, node.name, self.code.owner, "static", outer=self)
            return Function(code)
        return None

    def _global(self, name: str) -> Value | None:
        dotted = self.code.file.imports.get(name)
        if name not in self.code.globals:
            if dotted is not None:  # imported in a function
                return self._imported(dotted)
            if hasattr(builtins, name):
                return Foreign(name)
            return None
        found = self.code.globals[name]
        home = self.code.file.module
        if dotted is not None and dotted.rpartition(".")[0] and dotted.rpartition(".")[0] in sys.modules:
            home = dotted.rpartition(".")[0]
        return object_value(found, name, f"module {home}", self.packages, dotted)

    def _imported(self, dotted: str) -> Value | None:
        module, _, name = dotted.rpartition(".")
        if dotted in sys.modules:
            return object_value(sys.modules[dotted], dotted, "", self.packages, dotted)
        if module in sys.modules:
            found = vars(sys.modules[module]).get(name)
            if found is not None:
                return object_value(found, name, f"module {module}", self.packages, dotted)
        return Foreign(dotted)

    def _attribute(self, node: ast.Attribute) -> Value | None:
        base, attr = self.value(node.value), node.attr
        match base:
            case Known(value=module) if is_a(module, ModuleType):
                if attr not in vars(module):
                    return None
                home = f"module {module.__name__}"
                return object_value(vars(module)[attr], f"{base.name}.{attr}", home, self.packages)
            case Known():
                return self._attribute_of_known(base, attr)
            case UserClass(view=view):
                return self._attribute_of_class(view, attr)
            case Object():
                return self.attribute_of(base, attr)
            case Foreign(dotted=dotted):
                return Foreign(f"{dotted}.{attr}", base.receiver, base.call)
            case Inside():
                return base
            case Role(name="attempt" | "attempt?"):
                return Role("txid" if attr == "transaction_id" else f"attempt.{attr}")
            case Role(name=role):
                return Role(f"{role}.{attr}")
        return None

    def _attribute_of_known(self, base: Known, attr: str) -> Value | None:
        own = attributes_of(base.value)
        if attr in own:
            found = object_value(own[attr], f"{base.name}.{attr}", base.home, self.packages)
            return replace(found, copied=base.copied) if isinstance(found, Known) else found
        cls = type(base.value)
        if is_users(cls.__module__, file_of(cls.__module__), self.packages):
            view = ClassView.of(cls, self.packages)
            code = view.method(attr)
            return None if code is None else Function(code, base)
        return Foreign(f"{cls.__module__}.{cls.__qualname__}().{attr}".removeprefix("builtins."), base)

    def _attribute_of_class(self, view: ClassView, attr: str) -> Value | None:
        code = view.method(attr)
        if code is not None:
            return Function(code, Object(view) if code.kind == "class" else None)
        held = view.class_value(attr)
        return None if held is None else object_value(held[0], f"{held[1]}.{attr}", f"class {held[1]}", self.packages)

    def attribute_of(self, base: Object, attr: str) -> Value | None:
        """Return what an attribute of an object of a user's class stands for."""
        if attr == "__class__":
            return UserClass(base.view)
        code = base.view.method(attr, base.after)
        if code is not None and base.after is not None:
            return Function(code, Object(base.view, base.live, base.made, base.itself))
        if code is not None:
            return Function(code, base)
        if base.after is not None:
            return Foreign(f"super().{attr}")
        values: list[Value | None] = []
        live = attributes_of(base.live)
        for assigned in base.view.assigned.get(attr, ()):
            if assigned.code.name == "__init__" and attr in live:
                continue
            if _is_none(assigned.value):
                continue
            values.append(self.scope_of(assigned.code, base).value(assigned.value))
        if attr in live and live[attr] is not None:
            values.append(held_value(live[attr], attr, self.code.globals, self.packages))
        if values:
            return agreed(values)
        held = None if attr in live or attr in base.view.assigned else base.view.class_value(attr)
        return None if held is None else object_value(held[0], f"{held[1]}.{attr}", f"class {held[1]}", self.packages)

    def scope_of(self, code: Code, receiver: Object | Known) -> Scope:
        """Return the scope of another method of an object, as deep as this one."""
        if code.name == "__init__" and isinstance(receiver, Object) and receiver.made is not None:
            call, scope = receiver.made
            return scope.enter(Function(code, receiver), call) or Scope.of_method(
                code, receiver, self.packages, self.depth + 1
            )
        return Scope.of_method(code, receiver, self.packages, self.depth + 1)

    def _call(self, node: ast.Call) -> Value | None:
        if isinstance(node.func, ast.Name) and node.func.id in ("super", "type"):
            return self._super_or_type(node)
        callee = self.value(node.func)
        match callee:
            case UserClass(view=view):
                return Object(view, made=(node, self))
            case Function():
                inner = self.enter(callee, node)
                return None if inner is None else agreed([inner.value(node) for node in inner.returned()])
            case Foreign(receiver=Known() as root, dotted=dotted) if is_container(root.value):
                return Inside(root) if dotted.rpartition(".")[2] in _WITHIN else None
            case Foreign(dotted=dotted):
                if dotted in _PASSED_ON and node.args:
                    return self.value(node.args[0])
                return Foreign(f"{dotted}()", callee.receiver, node)
            case Inside():
                return callee
            case Role(name="tuple.get_value" | "tuple.get_value_by_field"):
                return item_of(Role("tuple"), node.args[0]) if node.args else None
            case Role(name=name):
                return Role(f"{name}()")
        return None

    def _super_or_type(self, node: ast.Call) -> Value | None:
        assert isinstance(node.func, ast.Name)
        itself = next(iter(self.bound.values()), None)
        if node.func.id == "super" and isinstance(itself, Object):
            return Object(itself.view, itself.live, itself.made, itself.itself, after=self.code.owner)
        if node.func.id == "type" and len(node.args) == 1:
            of = self.value(node.args[0])
            return UserClass(of.view) if isinstance(of, Object) else None
        return None

    def enter(self, function: Function, call: ast.Call | None) -> Scope | None:
        """Return the scope of a function that is called here; None where that is too deep to follow."""
        if self.depth >= DEPTH_MAX:
            return None
        code = function.code
        if call is None:
            return Scope(code, self.packages, self._bound(function, ()), self.depth + 1)
        bound = self._bound(function, call.args)
        for keyword in call.keywords:
            if keyword.arg is not None:
                bound[keyword.arg] = self.value(keyword.value)
        return Scope(code, self.packages, bound, self.depth + 1)

    def _bound(self, function: Function, args: list[ast.expr] | tuple[ast.expr, ...]) -> dict[str, Value | None]:
        parameters = list(function.code.parameters)
        bound: dict[str, Value | None] = {}
        if function.receiver is not None and parameters:
            first = function.receiver
            of_class = function.code.kind == "class" and isinstance(first, Object)
            if function.code.kind != "static":
                bound[parameters.pop(0)] = UserClass(first.view) if of_class else first  # type: ignore[union-attr]
        for name, arg in zip(parameters, args, strict=False):
            if isinstance(arg, ast.Starred):
                break
            bound[name] = self.value(arg)
        return bound

    def returned(self) -> Iterator[ast.expr]:
        """Yield what the function returns, without None."""
        if isinstance(self.code.node, ast.Lambda):
            yield self.code.node.body
            return
        for node in own_nodes(self.code.node):
            if isinstance(node, ast.Return | ast.Yield) and node.value is not None and not _is_none(node.value):
                yield node.value


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None
