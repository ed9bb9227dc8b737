"""Code: one function of the user's, as it stands in the source, with what its free names lead to."""

from __future__ import annotations

import ast
import sys
import sysconfig
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache, partial
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any

from stormline.cli.reading.live import is_a
from stormline.cli.reading.source import FunctionNode, SourceFile, read_source

if TYPE_CHECKING:
    from stormline.cli.reading.scope import Scope

_LIBRARIES = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")})
_WRAPPERS = (FunctionType, type(lru_cache(len)))
_INSTALLED = ("/site-packages/", "/dist-packages/")


@dataclass(frozen=True, slots=True, eq=False)
class Code:
    """A function. `cells` holds its free variables, `defaults` those of its parameters; both as they are now.

    `outer` is the scope that it is defined in, where that is a function which was read and not run.
    """

    node: FunctionNode
    file: SourceFile
    globals: Mapping[str, Any]
    name: str
    owner: Any = None  # the class that defines it, or the node of one
    kind: str = "method"  # or 'static', or 'class'
    cells: Mapping[str, Any] = field(default_factory=dict)
    defaults: Mapping[str, Any] = field(default_factory=dict)
    outer: Scope | None = None

    @property
    def parameters(self) -> list[str]:
        """Names of the positional parameters."""
        return [arg.arg for arg in (*self.node.args.posonlyargs, *self.node.args.args)]


def is_users(module: str, path: str | None, packages: frozenset[str]) -> bool:
    """Return whether a module is the user's own: neither ours nor Python's nor installed, unless one of `packages`."""
    top = module.partition(".")[0]
    if top == "stormline" or top in sys.builtin_module_names:
        return False
    if top in packages:
        return True
    if path is None or path.startswith("<frozen") or any(part in path for part in _INSTALLED):
        return False
    return not path.startswith(_LIBRARIES)


def code_of(found: object, packages: frozenset[str], owner: type | None = None, name: str | None = None) -> Code | None:
    """Return the code of a function, or of one that is decorated; None where it is no user's, or cannot be read."""
    kind = "static" if is_a(found, staticmethod) else "class" if is_a(found, classmethod) else "method"
    function = undecorated(found, name)
    if not is_a(function, FunctionType):
        return None
    assert isinstance(function, FunctionType)
    written: CodeType = function.__code__
    module_globals = function.__globals__
    if not is_users(str(module_globals.get("__name__", "")), written.co_filename, packages):
        return None
    file = read_source(written.co_filename, module_globals)
    node = None if file is None else file.function(written.co_firstlineno, written.co_name)
    if file is None or node is None:
        return None
    cells = {}
    for free, cell in zip(written.co_freevars, function.__closure__ or (), strict=True):
        try:
            cells[free] = cell.cell_contents
        except ValueError:  # not assigned yet
            continue
    names = [arg.arg for arg in (*node.args.posonlyargs, *node.args.args)]
    given = function.__defaults__ or ()
    defaults = dict(zip(names[len(names) - len(given) :], given, strict=True)) | (function.__kwdefaults__ or {})
    return Code(node, file, module_globals, name or written.co_name, owner, kind, cells, defaults)


def undecorated(found: Any, name: str | None = None) -> Any:
    """Return the function that stands behind a decorator, where that can be told."""
    if is_a(found, staticmethod | classmethod):
        found = found.__func__
    elif is_a(found, property):
        found = found.fget
    elif is_a(found, partial):
        found = found.func
    while is_a(found, _WRAPPERS) and "__wrapped__" in found.__dict__:
        found = found.__dict__["__wrapped__"]
    if is_a(found, FunctionType) and name is not None and found.__name__ != name:
        for cell in found.__closure__ or ():
            try:
                inner = cell.cell_contents
            except ValueError:  # not assigned yet
                continue
            if is_a(inner, FunctionType) and inner.__name__ == name:
                return inner
    return found


def source_missing(cls: type, packages: frozenset[str]) -> bool:
    """Return whether a user's class has methods none of which can be read: typed in, compiled, or changed since."""
    methods = [name for name, found in vars(cls).items() if callable(found) and not name.startswith("__")]
    return bool(methods) and all(code_of(vars(cls)[name], packages, cls, name) is None for name in methods)


def constant_text(node: ast.expr) -> str | None:
    """Return the text of a constant, or the beginning of a text that is put together."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(part.value if isinstance(part, ast.Constant) else "?" for part in parts)  # type: ignore[misc]
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            first = constant_text(left)
            return None if first is None else first + (constant_text(right) or " ?")
        case ast.BinOp(left=left, op=ast.Mod()):
            return constant_text(left)
        case ast.Call(func=ast.Attribute(value=text, attr="format" | "strip" | "replace" | "lower")):
            return constant_text(text)
        case ast.Call(args=[inner], func=ast.Name(id="dedent" | "text") | ast.Attribute(attr="dedent" | "text")):
            return constant_text(inner)
    return None
