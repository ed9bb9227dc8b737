"""Writes what a cluster needs into a folder: one zip, one entry for spark-submit, the plan as text.

The zip holds stormline, the pure-Python packages it needs on a cluster, the user's own modules and what `--py-files`
names. It holds real files only, under the names they are imported by, and is the same, byte by byte, for the same
sources. Nothing in it names a path of the machine that wrote it.
"""

from __future__ import annotations

import importlib.util
import io
import os
import re
import sys
import sysconfig
import tempfile
import zipfile
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from stormline.cli.errors import CannotBundle, CannotWriteBundle
from stormline.cli.project_modules import find_project_modules
from stormline.topology.explain import explain
from stormline.topology.packing import FALLBACK
from stormline.topology.plan import Plan

# What runs on a cluster imports no more than these; pyspark and py4j are there already.
DEPENDENCIES = ("click", "cloudpickle", "kazoo", "networkx", "rich")
IN_FALLBACK = ("msgpack",)
ON_CLUSTER = ("pyspark", "py4j")

_TESTS = ("test", "tests", "testing")
_COMPILED = (".so", ".pyd", ".dll", ".dylib")
_TIMESTAMP = (1980, 1, 1, 0, 0, 0)

Files = dict[str, bytes]


@dataclass(frozen=True, slots=True)
class Bundle:
    """Where the files of a bundle are, or would be."""

    zip: Path
    entry: Path
    plan: Path

    @classmethod
    def of(cls, topology_id: str, directory: Path) -> Bundle:
        """Name the files of a topology's bundle in `directory`."""
        name = re.sub(r"[^A-Za-z0-9._-]", "_", topology_id)
        # The folder of the entry comes first on Python's path: with a "-", its name can hide no module.
        return cls(directory / f"{name}.zip", directory / f"{name}-entry.py", directory / f"{name}-plan.txt")


def write_bundle(
    module: str, attribute: str | None, plan: Plan, directory: Path, py_files: Sequence[str] = ()
) -> tuple[Bundle, dict[str, str]]:
    """Write the bundle of a topology into `directory`, which is made if missing; older files of it are replaced.

    Args:
        module, attribute: what the entry runs. The module has been imported: it lies on `sys.path`.
        py_files: modules, folders of packages, zips, eggs and wheels that go into the zip too.

    Returns:
        The bundle; and the packages that it needs and does not hold, each with a module that imports it.

    Raises:
        CannotBundle: a compiled extension, a module that is no Python, or two different files with one name.
        CannotWriteBundle: the folder does not let us.
    """
    files, missing = bundle_files(module, py_files)
    bundle = Bundle.of(plan.topology_id, directory)
    target = module if attribute is None else f"{module}:{attribute}"
    try:
        directory.mkdir(parents=True, exist_ok=True)
        write_zip(bundle.zip, files)
        write_whole(bundle.entry, entry_source(plan.topology_id, target).encode())
        write_whole(bundle.plan, explain(plan).encode())
    except OSError as error:
        raise CannotWriteBundle(
            f"the bundle cannot be written into {directory} ({error.strerror}); name another folder with --output"
        ) from None
    return bundle, missing


def entry_source(topology_id: str, target: str) -> str:
    """Return the script that spark-submit starts."""
    return (
        f"# Runs topology {topology_id!r} on the cluster that spark-submit names. Written by `stormline compile`.\n"
        "from stormline.cli.entry import main\n\n"
        'if __name__ == "__main__":\n'
        f"    raise SystemExit(main({target!r}))\n"
    )


def bundle_files(module: str, py_files: Sequence[str] = ()) -> tuple[Files, dict[str, str]]:
    """Return what the zip holds, by name; and what it does not, as `write_bundle` does."""
    files: Files = {}
    for package in ("stormline", *DEPENDENCIES):
        files.update(package_files(package, without=_TESTS))
    for package in IN_FALLBACK:
        files.update({f"{FALLBACK}/{name}": content for name, content in package_files(package).items()})
    provided = _modules(files).union(IN_FALLBACK, ON_CLUSTER)
    for given in py_files:
        _add(files, _given_files(Path(given)), given)
    found = find_project_modules(module, project_roots(), provided)
    if module.partition(".")[0] in found.missing:
        _add(files, package_files(module.partition(".")[0]), module)
        del found.missing[module.partition(".")[0]]
    if found.compiled:
        raise _compiled(found.compiled[0])
    _add(files, {name: path.read_bytes() for name, path in found.files.items()}, module)
    files.update({f"{name}/": b"" for name in found.packages})
    there = _modules(files)
    return files, {name: importer for name, importer in found.missing.items() if name not in there}


def _modules(files: Files) -> set[str]:
    """Return the top-level names that can be imported from a zip of these files."""
    return {PurePosixPath(name).parts[0].removesuffix(".py") for name in files}


def project_roots() -> list[Path]:
    """Return the folders of `sys.path` that hold the user's own modules: neither Python's own nor installed ones."""
    stdlib = {Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "platstdlib")}
    scripts = Path(sysconfig.get_path("scripts")).resolve()
    roots: list[Path] = []
    for entry in sys.path:
        root = Path(entry or os.curdir).resolve()
        installed = {"site-packages", "dist-packages"} & set(root.parts)
        if root.is_dir() and not installed and root != scripts and not {root, *root.parents} & stdlib:
            roots.append(root)
    return list(dict.fromkeys(roots))


def package_files(package: str, without: Collection[str] = ()) -> Files:
    """Return the sources of an importable package or module, but for folders with the names of `without`.

    Raises:
        CannotBundle: it is not there, or is a compiled extension.
    """
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        raise CannotBundle(f"package {package!r} is not installed here, so it cannot be bundled")
    origin = Path(spec.origin)
    if spec.submodule_search_locations is None:
        if origin.suffix != ".py":
            raise _compiled(origin)
        return {origin.name: origin.read_bytes()}
    return {f"{package}/{path}": content for path, content in _sources(origin.parent, without)}


def _sources(folder: Path, without: Collection[str] = ()) -> Iterator[tuple[str, bytes]]:
    # The rooms of stormline are links, which a zip cannot follow: it gets the files behind them.
    for parent, folders, names in os.walk(folder, followlinks=True):
        folders[:] = sorted(set(folders) - {"__pycache__", *without})
        for path in sorted(Path(parent, name) for name in names if name.endswith(".py")):
            yield path.relative_to(folder).as_posix(), path.read_bytes()


def _given_files(given: Path) -> Files:
    if given.is_dir():
        found = {f"{given.resolve().name}/{path}": content for path, content in _sources(given)}
    elif given.suffix == ".py" and given.is_file():
        found = {given.name: given.read_bytes()}
    elif given.suffix in (".zip", ".egg", ".whl") and zipfile.is_zipfile(given):
        found = dict(_members(given))
    else:
        raise CannotBundle(
            f"--py-files {given}: expected a .py file, the folder of a package, or a .zip, .egg or .whl that exists"
        )
    return found


def _members(archive: Path) -> Iterator[tuple[str, bytes]]:
    with zipfile.ZipFile(archive) as opened:
        for name in opened.namelist():
            path = PurePosixPath(name)
            if path.suffix in _COMPILED:
                raise _compiled(archive / name)
            if path.is_absolute() or ".." in path.parts:
                raise CannotBundle(f"--py-files {archive}: {name!r} leads out of the archive")
            if not name.endswith("/") and "__pycache__" not in path.parts and path.suffix != ".pyc":
                yield name, opened.read(name)


def _compiled(file: Path) -> CannotBundle:
    return CannotBundle(
        f"{file} is a compiled extension, and Python can import none from a zip: install its package on every "
        "machine of the cluster, or ship an environment with spark-submit's --archives"
    )


def _add(files: Files, more: Files, source: str) -> None:
    for name, content in more.items():
        if files.setdefault(name, content) != content:
            raise CannotBundle(f"{source} brings {name!r}, of which the bundle has another version already")


def write_zip(path: Path, files: Files) -> None:
    """Write a zip that depends on nothing but `files`. A name that ends in "/" is a folder."""
    zipped = io.BytesIO()
    with zipfile.ZipFile(zipped, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(files):
            info = zipfile.ZipInfo(name, _TIMESTAMP)
            info.create_system = 3  # Unix, wherever it is written
            info.external_attr = (0o40755 << 16 | 0x10) if name.endswith("/") else 0o100644 << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, files[name])
    write_whole(path, zipped.getvalue())


def write_whole(path: Path, data: bytes) -> None:
    """Write a file that others see whole or not at all, though several write it at once."""
    os.umask(umask := os.umask(0o077))
    descriptor, partial = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
        os.chmod(partial, 0o666 & ~umask)
        os.replace(partial, path)
    except BaseException:
        os.unlink(partial)
        raise
