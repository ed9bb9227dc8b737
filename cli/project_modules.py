"""Which modules of the user's own project a module needs, found by reading its source."""

from __future__ import annotations

import ast
import sys
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from stormline.cli.errors import CannotBundle


@dataclass(slots=True)
class ProjectModules:
    """What `find_project_modules` found.

    `files` maps names within a zip to source files; `packages` are folders that are packages without an
    `__init__.py`; `missing` are the imported names that are neither the project's nor Python's own, each with a
    module that imports it; `compiled` are extension modules of the project.
    """

    files: dict[str, Path] = field(default_factory=dict)
    packages: set[str] = field(default_factory=set)
    missing: dict[str, str] = field(default_factory=dict)
    compiled: list[Path] = field(default_factory=list)


def find_project_modules(module: str, roots: Sequence[Path], provided: Collection[str]) -> ProjectModules:
    """Return `module` and every module below `roots` that it imports, directly or not, in functions too.

    The source is read, not run: what is imported by a computed name is not seen.

    Args:
        roots: folders in which the project's modules lie; the first that has a module wins.
        provided: top-level names that come from elsewhere, also where `roots` hold them.

    Raises:
        CannotBundle: a module that is no Python.
    """
    found = ProjectModules()
    todo, seen = [(module, module)], {module}
    while todo:
        name, importer = todo.pop(0)
        top = name.partition(".")[0]
        if top in provided:
            continue
        source = _locate(name, roots, found)
        if source is None:
            if top not in sys.stdlib_module_names and not _is_in(top, roots):
                found.missing.setdefault(top, importer)
            continue
        if source.suffix != ".py":
            continue
        try:
            imports = list(_imports(source, name))
        except SyntaxError as error:
            raise CannotBundle(
                f"{source}, line {error.lineno}, is no Python ({error.msg}), and {importer} imports it: mend it"
            ) from None
        for imported in imports:
            # Importing a.b.c imports a and a.b first; from a import b may mean the module a.b.
            parts = imported.split(".")
            for prefix in (".".join(parts[:length]) for length in range(1, len(parts) + 1)):
                if prefix not in seen:
                    seen.add(prefix)
                    todo.append((prefix, name))
    return found


def _is_in(top: str, roots: Sequence[Path]) -> bool:
    return any((root / top).is_dir() or (root / f"{top}.py").is_file() for root in roots)


def _locate(name: str, roots: Sequence[Path], found: ProjectModules) -> Path | None:
    """Return the source of a module and note it; None where the project has no such module."""
    path = name.replace(".", "/")
    for root in roots:
        for file in (root / path / "__init__.py", root / f"{path}.py"):
            if file.is_file():
                found.files[file.relative_to(root).as_posix()] = file
                return file
        extension = next(iter(sorted((root / path).parent.glob(f"{Path(path).name}.*.so"))), None)
        if extension is not None:
            found.compiled.append(extension)
            return extension
    for root in roots:
        if (root / path).is_dir() and any((root / path).rglob("*.py")):
            found.packages.add(path)
            return root / path
    return None


def _imports(source: Path, name: str) -> Iterator[str]:
    package = name if source.name == "__init__.py" else name.rpartition(".")[0]
    parents = name.split(".")[:-1]
    for length in range(1, len(parents) + 1):
        yield ".".join(parents[:length])
    for node in ast.walk(ast.parse(source.read_bytes(), filename=str(source))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = package.split(".")
                above = above[: len(above) - node.level + 1]
                base = ".".join([*above, base] if base else above)
            if base:
                yield base
                yield from (f"{base}.{alias.name}" for alias in node.names if alias.name != "*")
