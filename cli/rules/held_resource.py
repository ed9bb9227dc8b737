"""held-resource: a declared object, or its class, has a connection, a file, a lock or a memory map as an attribute."""

from __future__ import annotations

import ast
import concurrent.futures
import io
import mmap
import shelve
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from typing import Any

from stormline.cli.reading.code import is_users
from stormline.cli.reading.guards import asks_for_absence
from stormline.cli.reading.libraries import CONNECTION_CLASS, DATABASES, HTTP, STORES
from stormline.cli.reading.live import attributes_of, is_a
from stormline.cli.reading.objects import pickles_itself
from stormline.cli.reading.parts import Part
from stormline.cli.reading.source import read_source
from stormline.cli.reading.values import Foreign
from stormline.cli.rules.finding import Finding

RULE = "held-resource"
COPIED = (
    "the declared object is copied to where it runs, and this does not work as a copy: put what it is made from into "
    "the object, and open it in prepare"
)
OF_CLASS = (
    "each process that imports the module opens its own, the driver and every Python worker, and none closes it: open "
    "it in prepare"
)
LOCKS = "it excludes nobody in another process, and tasks run in several: let a committer, or the database, decide"

_LOCKS = (type(threading.Lock()), type(threading.RLock()), threading.Condition, threading.Semaphore, threading.Event)
_RESOURCES = (
    io.IOBase,
    socket.socket,
    mmap.mmap,
    shelve.Shelf,
    tempfile.TemporaryDirectory,
    tempfile.SpooledTemporaryFile,
    threading.Thread,
    subprocess.Popen,
    concurrent.futures.Executor,
)


def find(part: Part) -> Iterator[Finding]:
    """Yield each such attribute: those that `__init__` gave to the object, and those in the class's body.

    A class that says how it is pickled knows. What a class of the commit phase holds is shared by the driver's threads,
    as it seems, unless each import empties it; a lock that guards what is made once a process is none, either.
    """
    if part.kind == "bolt" or (part.kind == "spout" and part.declared.emits_on_executors is True):
        yield from _of_object(part)
    if part.kind in ("bolt", "emitter"):
        yield from _of_class(part)


def _of_object(part: Part) -> Iterator[Finding]:
    if pickles_itself(type(part.declared)):
        return
    for name, value in attributes_of(part.declared).items():
        kind = _kind_of_copy(value) or _kind_within(value, part.packages) or _descriptor(part, name, value)
        place = None if kind is None else _where_assigned(part, name)
        if place is not None:
            what = f"{part.who}: self.{name} of the declared {part.view.name} is {kind}"
            yield Finding(RULE, *place, part.component.id, what, COPIED)


def _where_assigned(part: Part, name: str) -> tuple[str, int] | None:
    """Return where `__init__` gives an attribute its value, else where the class names it, or begins."""
    for assigned in part.view.assigned.get(name, []):
        if assigned.code.name in ("__init__", "__post_init__"):
            return assigned.code.file.shown, assigned.line
    places = [_in_body(layer.identity, name) for layer in part.view.layers]
    return next((place for place in places if place is not None), None)


def _descriptor(part: Part, name: str, value: Any) -> str | None:
    """Return what to say of a number that stands for an open file of this process."""
    for assigned in part.view.assigned.get(name, []) if type(value) is int else ():
        made = part.scope(assigned.code).value(assigned.value)
        if isinstance(made, Foreign) and (
            made.dotted in ("os.open()", "os.dup()") or made.dotted.endswith(".fileno()")
        ):
            return "a descriptor of this process"
    return None


def _of_class(part: Part) -> Iterator[Finding]:
    for layer in part.view.layers:
        for name, value in layer.attributes.items():
            kind = _kind(value)
            if kind is None or (is_a(value, _LOCKS) and _guards_making(part, name)):
                continue
            if not part.in_workers and not _is_emptied(value):
                continue
            place = _in_body(layer.identity, name)
            if place is not None:
                remedy = LOCKS if is_a(value, _LOCKS) else OF_CLASS
                what = f"{part.who}: class {layer.name} holds {kind}, {name}"
                yield Finding(RULE, *place, part.component.id, what, remedy)


def _is_emptied(value: Any) -> bool:
    """Return whether opening it wrote: each Python worker that imports the module does so too."""
    if not is_a(value, io.IOBase) and type(value).__name__ != "memmap":
        return False
    mode = getattr(value, "mode", None)
    return isinstance(mode, str) and "w" in mode


def _in_body(cls: object, name: str) -> tuple[str, int] | None:

    module = sys.modules.get(getattr(cls, "__module__", ""))
    path = getattr(module, "__file__", None)
    if module is None or path is None or not isinstance(cls, type):
        return None
    file = read_source(path, vars(module))
    line = None if file is None else file.class_line(cls.__name__, name)
    return None if file is None or line is None else (file.shown, line)


def _kind(value: Any) -> str | None:
    """Return what a resource is called; None for what is none."""
    cls = type(value)
    top = cls.__module__.partition(".")[0]
    name = f"a {cls.__module__}.{cls.__qualname__}".replace("a _thread.", "a ").replace("a _io.", "an io.")
    if is_a(value, (io.StringIO, io.BytesIO)):
        return None
    if is_a(value, (*_RESOURCES, *_LOCKS)) or (top == "numpy" and cls.__name__ == "memmap"):
        return name
    if top in DATABASES | STORES | HTTP and CONNECTION_CLASS.search(cls.__name__):
        return name
    return None


def _kind_of_copy(value: Any) -> str | None:
    """Return what a resource is called that does not arrive as it was, though it can be pickled."""
    cls = type(value)
    known = is_a(value, (*_RESOURCES, *_LOCKS)) or cls.__name__ == "memmap"
    return None if pickles_itself(cls) and not known else _kind(value)


def _kind_within(value: Any, packages: frozenset[str]) -> str | None:
    """Return the resource within a list, a dict, or an object of a user's class that does not say how it is pickled."""
    if is_a(value, (list, tuple)):
        inner = list(value)
    elif is_a(value, dict):
        inner = list(value.values())
    elif is_users(type(value).__module__, "", packages) and not pickles_itself(type(value)):
        inner = list(attributes_of(value).values())
    else:
        return None
    found = next((kind for one in inner[:1000] if (kind := _kind_of_copy(one)) is not None), None)
    return None if found is None else f"a {type(value).__name__} with {found}"


def _guards_making(part: Part, lock: str) -> bool:
    """Return whether all that is done under a lock begins with asking whether something is there."""
    blocks = [
        node
        for code in part.view.methods()
        for node in ast.walk(code.node)
        if isinstance(node, ast.With)
        and any(isinstance(item.context_expr, ast.Attribute) and item.context_expr.attr == lock for item in node.items)
    ]
    return bool(blocks) and all(
        isinstance(block.body[0], ast.If) and asks_for_absence(block.body[0].test, _names(block.body[0].test))
        for block in blocks
    )


def _names(test: ast.expr) -> set[str]:
    return {ast.unparse(node) for node in ast.walk(test) if isinstance(node, ast.Name | ast.Attribute)}
