"""Checks the docstrings of all that users import: `python -m docs.public_docstrings`, which `make lint` runs.

Of each exported name, and of each of its public methods, the docstring says what it does; its Args name each parameter
with its type, and what a number counts; Returns, what comes back; Raises, at least what its own body raises.
"""

from __future__ import annotations

import ast
import builtins
import dataclasses
import inspect
import itertools
import re
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import stormline
import stormline.errors
import stormline.testing

ROOT = Path(__file__).resolve().parents[1]
PUBLIC = (stormline, stormline.errors, stormline.testing)

_SECTION = re.compile(r"^(Args|Attributes|Returns|Raises):$")
_ENTRY = re.compile(r"^ {4}(?P<name>\*{0,2}\w+) \((?P<type>.+?)\): (?P<text>.*)$")
_RAISED = re.compile(r"^ {4}(?P<names>\w+(?:, \w+)*): \S")
_NUMBER = re.compile(r"\b(int|float)\b")
_UNIT = re.compile(
    r"(?i)\b((milli)?seconds?|bytes|rows?|tasks?|tuples?|transactions?|txid|partitions?|batch(es)?|attempts?|epoch|"
    r"positions?|lines?|events?|number|count|checksum|times|threads?|bytes|workers?|executors)\b"
)
_NOTHING = ("None", "NoReturn", "Never")


class Docstring:
    """A docstring, cut into its sections."""

    def __init__(self, text: str | None) -> None:
        self.text = inspect.cleandoc(text or "")
        self.sections: dict[str, list[str]] = {}
        section = self.sections.setdefault("", [])
        for line in self.text.splitlines():
            header = _SECTION.match(line)
            if header is not None:
                section = self.sections.setdefault(header[1], [])
            else:
                section.append(line)

    def arguments(self) -> dict[str, tuple[str, str]]:
        """Return (type, text) of each parameter or attribute that is documented, by name."""
        found: dict[str, tuple[str, str]] = {}
        name = None
        for line in (*self.sections.get("Args", ()), *self.sections.get("Attributes", ())):
            entry = _ENTRY.match(line)
            if entry is not None:
                name = entry["name"]
                found[name] = entry["type"], entry["text"]
            elif name is not None and line.startswith(" " * 8):
                kind, text = found[name]
                found[name] = kind, f"{text} {line.strip()}"
        return found

    def raised(self) -> set[str]:
        """Return the names of errors that are documented."""
        entries = map(_RAISED.match, self.sections.get("Raises", ()))
        return {name for entry in entries if entry is not None for name in entry["names"].split(", ")}

    def says_what_is_returned(self) -> bool:
        """Return whether there is a section for it, or the first line says it: `Return …`."""
        return bool(self.sections.get("Returns")) or self.text.startswith("Return ")


def problems(modules: Iterable[ModuleType] = PUBLIC) -> list[str]:
    """Return what the docstrings of exported names lack, each with the remedy."""
    found: list[str] = []
    seen: set[object] = set()
    for module in modules:
        for name in module.__all__:
            exported = getattr(module, name)
            if inspect.isclass(exported) and exported.__module__.startswith("stormline."):
                found += _of_class(exported, seen)
            elif inspect.isfunction(exported):
                found += _of_function(exported, f"{module.__name__}.{name}", [], seen)
            elif not _documented_assignment(name):
                found.append(f"{module.__name__}.{name}: no text follows its assignment; say there what it is")
    return found


def _of_class(cls: type, seen: set[object]) -> Iterator[str]:
    for base in cls.__mro__:
        if not base.__module__.startswith("stormline.") or base in seen:
            continue
        seen.add(base)
        who, doc = _place(base, base.__qualname__), Docstring(vars(base).get("__doc__"))
        if not doc.text or doc.text.startswith(f"{base.__name__}("):  # what a dataclass writes by itself
            yield f"{who}: no docstring; say in one line what it is"
            continue
        if not base.__name__.startswith("_"):
            yield from _arguments_missing(who, doc, [], _constructor(base))
        made = vars(base).get("__init__")
        if inspect.isfunction(made):
            yield from _raises_missing(who, doc, made)
        for name, member in vars(base).items():
            if not name.startswith("_"):
                yield from _of_member(base, name, member, seen)


def _of_member(cls: type, name: str, member: object, seen: set[object]) -> Iterator[str]:
    inherited = [
        Docstring(vars(base)[name].__doc__)
        for base in cls.__mro__[1:]
        if base.__module__.startswith("stormline.") and name in vars(base)
    ]
    if isinstance(member, property):
        who, doc = _place(cls, f"{cls.__qualname__}.{name}"), Docstring(member.__doc__)
        if not doc.text:
            yield f"{who}: no docstring; say in one line what it is"
        elif member.fget is not None:
            yield from _raises_missing(who, doc, member.fget)
        return
    function = member.__func__ if isinstance(member, (classmethod, staticmethod)) else member
    if inspect.isfunction(function):
        yield from _of_function(function, f"{cls.__qualname__}.{name}", inherited, seen)


def _of_function(
    function: Callable[..., Any], name: str, inherited: list[Docstring], seen: set[object]
) -> Iterator[str]:
    if function in seen:
        return
    seen.add(function)
    who, doc = _place(function, name), Docstring(function.__doc__)
    if not doc.text:
        yield f"{who}: no docstring; say in one line, which begins with a verb, what it does"
        return
    yield from _arguments_missing(who, doc, inherited, _parameters(function))
    returned = _written(inspect.get_annotations(function).get("return"))
    if returned not in _NOTHING and not any(d.says_what_is_returned() for d in (doc, *inherited)):
        yield f"{who}: does not say what it returns; begin with 'Return …', or add `Returns:`, for the {returned}"
    yield from _raises_missing(who, doc, function)


def _arguments_missing(
    who: str, doc: Docstring, inherited: list[Docstring], parameters: dict[str, str]
) -> Iterator[str]:
    own = doc.arguments()
    documented = {name: entry for base in reversed(inherited) for name, entry in base.arguments().items()} | own
    for name, kind in parameters.items():
        if name not in documented:
            yield f"{who}: Args lacks {name}; write `{name} ({kind}): …`"
            continue
        said, text = documented[name]
        if name in own and said != kind:
            yield f"{who}: Args says {name} ({said}), and the signature {kind}; write `{name} ({kind}): …`"
        if _NUMBER.search(kind) and not _UNIT.search(text):
            yield f"{who}: Args does not say what {name} counts; name the unit: seconds, rows, tasks, a txid, …"
    for name in own.keys() - parameters.keys():
        yield f"{who}: Args names {name}, which is no parameter; take it out"


def _raises_missing(who: str, doc: Docstring, function: Callable[..., Any]) -> Iterator[str]:
    documented = doc.raised()
    for name in sorted(set(_raised_in(function)) - documented):
        yield f"{who}: raises {name}; add `{name}: when, and what holds then` to Raises"
    for name in sorted(documented):
        if not (hasattr(builtins, name) or any(name in module.__all__ for module in PUBLIC)):
            yield f"{who}: Raises names {name}, which users cannot import; name an error of stormline.errors"
    if "Raises" in doc.sections and not documented:
        yield f"{who}: Raises names no error; write `NameOfTheError: when`"


def _raised_in(function: Callable[..., Any]) -> Iterator[str]:
    """Give the names of errors that a function's own body raises, without those of functions within it."""
    if not Path(inspect.getsourcefile(function) or "").is_relative_to(ROOT):  # a dataclass's, a protocol's
        return
    todo: list[ast.AST] = [*_tree(function).body]
    while todo:
        node = todo.pop()
        if isinstance(node, (ast.FunctionDef, ast.Lambda, ast.ClassDef)):
            continue
        if isinstance(node, ast.Raise) and node.exc is not None:
            raised: ast.AST = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
            raised = raised.value if isinstance(raised, ast.Attribute) else raised  # Error.of(…)
            if isinstance(raised, ast.Name) and raised.id[0].isupper() and raised.id != "AssertionError":
                yield raised.id
        todo += ast.iter_child_nodes(node)


def _tree(function: Callable[..., Any]) -> ast.FunctionDef:
    (node,) = ast.parse(textwrap.dedent(inspect.getsource(function))).body
    assert isinstance(node, ast.FunctionDef)
    return node


def _constructor(cls: type) -> dict[str, str]:
    """Return the type of each parameter that a class itself takes, by name."""
    if dataclasses.is_dataclass(cls) and "__dataclass_fields__" in vars(cls):
        return {field.name: _written(field.type) for field in dataclasses.fields(cls) if field.init}
    if "_field_defaults" in vars(cls):  # a NamedTuple
        return {name: _written(kind) for name, kind in inspect.get_annotations(cls).items()}
    made = vars(cls).get("__init__")
    of_protocol = getattr(cls, "_is_protocol", False)
    return _parameters(made) if inspect.isfunction(made) and not of_protocol else {}


def _parameters(function: Callable[..., Any]) -> dict[str, str]:
    stars: dict[Any, str] = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    return {
        stars.get(parameter.kind, "") + name: _written(parameter.annotation)
        for name, parameter in inspect.signature(function).parameters.items()
        if name not in ("self", "cls")
    }


def _written(annotation: Any) -> str:
    """Return a type as the source has it."""
    if isinstance(annotation, str):
        return annotation
    return str(getattr(annotation, "__forward_arg__", None) or inspect.formatannotation(annotation))


def _place(obj: Any, name: str) -> str:
    path = Path(inspect.getsourcefile(obj) or "").resolve()
    line = inspect.getsourcelines(obj)[1]
    return f"{path.relative_to(ROOT) if path.is_relative_to(ROOT) else path}:{line}: {name}"


def _documented_assignment(name: str) -> bool:
    """Return whether a text follows the assignment to `name` in some module of ours."""
    for module in [found for key, found in sys.modules.items() if key.startswith("stormline.") and name in vars(found)]:
        for statement, following in itertools.pairwise(ast.parse(inspect.getsource(module)).body):
            targets = statement.targets if isinstance(statement, ast.Assign) else []
            if any(isinstance(target, ast.Name) and target.id == name for target in targets):
                return isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant)
    return False


def main() -> None:
    """Print the problems, if there are any, and end with 1."""
    found = problems()
    for problem in found:
        print(problem)
    if found:
        sys.exit(f"{len(found)} problems in the docstrings of exported names")


if __name__ == "__main__":
    main()
