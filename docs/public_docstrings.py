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
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import stormline
import stormline.errors
import stormline.spark
import stormline.spouts.kafka
import stormline.state
import stormline.state.kafka
import stormline.state.starrocks
import stormline.state.xa
import stormline.testing

ROOT = Path(__file__).resolve().parents[1]
PUBLIC = (
    stormline,
    stormline.errors,
    stormline.spark,
    stormline.spouts.kafka,
    stormline.state,
    stormline.state.kafka,
    stormline.state.starrocks,
    stormline.state.xa,
    stormline.testing,
)

_SECTION = re.compile(r"^(Args|Attributes|Returns|Raises):$")
_ENTRY = re.compile(r"^ {4}(?P<name>\*{0,2}\w+) \((?P<type>.+?)\): (?P<text>.*)$")
_RAISED = re.compile(r"^ {4}(?P<names>\w+(?:, \w+)*): \S")
_NUMBER = re.compile(r"\b(int|float)\b")
_UNIT = re.compile(
    r"(?i)\b((milli)?seconds?|bytes|rows?|tasks?|tuples?|transactions?|txids?|partitions?|batch(es)?|attempts?|epoch|"
    r"positions?|lines?|events?|number|count|checksum|times|threads?|workers?|executors)\b"
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
    """Return what the docstrings of all names in `__all__` of these modules lack, each with the remedy."""
    check = _Check({module.__name__.partition(".")[0] for module in modules})
    return [problem for module in modules for name in module.__all__ for problem in check.of_name(module, name)]


class _Check:
    """Looks at each class and function once, as far as its package is one of `packages`."""

    def __init__(self, packages: Collection[str]) -> None:
        self._packages = packages
        self._seen: set[object] = set()

    def of_name(self, module: ModuleType, name: str) -> Iterator[str]:
        """Give what an exported name lacks."""
        exported = getattr(module, name)
        if inspect.isclass(exported) and self._is_ours(exported):
            for base in exported.__mro__:
                if self._is_ours(base) and base not in self._seen:
                    self._seen.add(base)
                    yield from self._of_class(base)
        elif inspect.isfunction(exported):
            yield from self._of_function(exported, f"{module.__name__}.{name}", [])
        elif not self._is_said_of_assignment(name):
            yield f"{module.__name__}.{name}: no text follows its assignment; say there what it is"

    def _is_ours(self, cls: type) -> bool:
        # What the standard library makes of a type hint (Mapping[str, Any]) is no class of ours.
        return cls.__module__.partition(".")[0] in self._packages

    def _of_class(self, cls: type) -> Iterator[str]:
        who, doc = _place(cls, cls.__qualname__), Docstring(vars(cls).get("__doc__"))
        if not doc.text or doc.text.startswith(f"{cls.__name__}("):  # what a dataclass writes by itself
            yield f"{who}: no docstring; say in one line what it is"
            return
        yield from _arguments_missing(who, doc, [], _constructor(cls))
        made = vars(cls).get("__init__")
        if inspect.isfunction(made):
            yield from _raises_missing(who, doc, made)
        for name, member in vars(cls).items():
            if not name.startswith("_"):
                yield from self._of_member(cls, name, member)

    def _of_member(self, cls: type, name: str, member: object) -> Iterator[str]:
        who = f"{cls.__qualname__}.{name}"
        if isinstance(member, property) and member.fget is not None:
            yield from self._of_function(member.fget, who, [], is_property=True)
        function = member.__func__ if isinstance(member, (classmethod, staticmethod)) else member
        if inspect.isfunction(function):
            bases = [base for base in cls.__mro__[1:] if self._is_ours(base) and name in vars(base)]
            yield from self._of_function(function, who, [Docstring(vars(base)[name].__doc__) for base in bases])

    def _of_function(
        self, function: Callable[..., Any], name: str, inherited: list[Docstring], is_property: bool = False
    ) -> Iterator[str]:
        """Give what a function lacks; of what overrides another, what that one says need not be said again."""
        if function in self._seen:
            return
        self._seen.add(function)
        who, doc = _place(function, name), Docstring(function.__doc__)
        if not doc.text:
            yield f"{who}: no docstring; say in one line, which begins with a verb, what it does"
            return
        yield from _arguments_missing(who, doc, inherited, _parameters(function))
        returned = _written(inspect.get_annotations(function).get("return"))
        if not (is_property or returned in _NOTHING or any(d.says_what_is_returned() for d in (doc, *inherited))):
            yield f"{who}: does not say what it returns; begin with 'Return …', or add `Returns:`, for the {returned}"
        yield from _raises_missing(who, doc, function)

    def _is_said_of_assignment(self, name: str) -> bool:
        """Return whether a text follows the assignment to `name` in some module of ours."""
        loaded = [module for key, module in sys.modules.items() if key.partition(".")[0] in self._packages]
        for module in (module for module in loaded if name in vars(module)):
            for statement, following in itertools.pairwise(ast.parse(inspect.getsource(module)).body):
                targets = statement.targets if isinstance(statement, ast.Assign) else []
                if any(isinstance(target, ast.Name) and target.id == name for target in targets):
                    return isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant)
        return False


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
        for i, (name, parameter) in enumerate(inspect.signature(function).parameters.items())
        if i > 0 or name not in ("self", "cls")
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


def main() -> None:
    """Print the problems, if there are any, and end with 1."""
    found = problems()
    for problem in found:
        print(problem)
    if found:
        sys.exit(f"problems in the docstrings of exported names: {len(found)}")


if __name__ == "__main__":
    main()
