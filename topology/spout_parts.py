"""What a spout's coordinator and emitters must have, whatever their classes are, and what they may leave out."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

from stormline.topology.contracts import ICommitterTransactionalSpout, ICoordinator, IEmitter
from stormline.topology.errors import InvalidSpout, did_you_mean
from stormline.topology.gathering import names_set_by
from stormline.topology.topology import ComponentKind

COORDINATOR, EMITTER = "coordinator", "emitter"

_REQUIRED = {
    (ComponentKind.TRANSACTIONAL_SPOUT, COORDINATOR): ("is_ready", "initialize_transaction"),
    (ComponentKind.TRANSACTIONAL_SPOUT, EMITTER): ("emit_batch",),
    (ComponentKind.PARTITIONED_SPOUT, COORDINATOR): ("is_ready", "num_partitions"),
    (ComponentKind.PARTITIONED_SPOUT, EMITTER): ("emit_partition_batch_new", "emit_partition_batch"),
    (ComponentKind.OPAQUE_SPOUT, COORDINATOR): ("is_ready",),
    (ComponentKind.OPAQUE_SPOUT, EMITTER): ("num_partitions", "emit_partition_batch"),
}
"""What Storm's interfaces require, of objects of any class. What else they lack is as in the contract: `method_of`."""

_INSTEAD = {"is_ready": "is_ready_after"}


def check_spout(spout_id: str, spout: Any, kind: ComponentKind) -> None:
    """Check a declared spout, as far as its parts can be told before they are made.

    Raises:
        InvalidSpout: its settings contradict one another, or a class that `get_coordinator` or `get_emitter` returns an
            object of lacks a method.
    """
    who = f"spout {spout_id!r} ({type(spout).__name__})"
    on_executors = spout.emits_on_executors
    if not isinstance(on_executors, bool):
        raise InvalidSpout(f"{who} has emits_on_executors = {on_executors!r}, expected True or False")
    commits = isinstance(spout, ICommitterTransactionalSpout)
    if commits and on_executors:
        raise InvalidSpout(
            f"{who} is an ICommitterTransactionalSpout with emits_on_executors = True: its emitters commit in the "
            "driver, on the objects that have emitted; leave emits_on_executors out, or let a committer bolt do what "
            "commit() does"
        )
    for part in (COORDINATOR, EMITTER):
        for klass in _returned_classes(spout, getattr(spout, f"get_{part}")):
            required = _required(kind, part, commits)
            if names_set_by(klass).isdisjoint(required):  # what `__init__` sets is looked at when the object is made
                _check(f"{who}: get_{part} returns a {klass.__name__}", klass, required)


def check_part(spout_id: str, made: Any, kind: ComponentKind, part: str, commits: bool = False) -> None:
    """Check a coordinator or an emitter that a spout has made.

    Raises:
        InvalidSpout: it lacks a method that is called.
    """
    _check(f"spout {spout_id!r}: get_{part} returned a {type(made).__name__}", made, _required(kind, part, commits))


def method_of(made: Any, contract: type[ICoordinator | IEmitter], name: str) -> Callable[..., Any]:
    """Return a method that a coordinator or an emitter, of whatever class, may leave out: then that of `contract`."""
    found = getattr(made, name, None)
    return found if callable(found) else partial(getattr(contract, name), made)


def _required(kind: ComponentKind, part: str, commits: bool) -> tuple[str, ...]:
    return _REQUIRED[(kind, part)] + (("commit",) if commits and part == EMITTER else ())


def _check(who: str, made: Any, required: Iterable[str]) -> None:
    for name in required:
        if not callable(getattr(made, name, None)) and not callable(getattr(made, _INSTEAD.get(name, name), None)):
            known = [other for other in dir(made) if not other.startswith("_")]
            plain = {other.replace("_", "").lower(): other for other in known}
            alike = plain.get(name.replace("_", ""))
            hint = f"; did you mean {alike!r}?" if alike is not None else did_you_mean(name, known)
            raise InvalidSpout(f"{who}, which has no method {name}(){hint}")


def _returned_classes(spout: Any, method: Callable[..., Any]) -> Iterator[type]:
    """Give the classes of which a method's source says that it returns a new object; none where it does not say."""
    function = getattr(method, "__func__", method)
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError):
        return
    for node in _of_itself(tree.body):
        if isinstance(node, ast.Return) and isinstance(node.value, ast.Call):
            found = _named(spout, function, node.value.func)
            if isinstance(found, type) and _has_what_it_says(found):
                yield found


def _of_itself(body: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """Give the nodes of the one function in `body`, without those of functions and classes within it."""
    inner = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
    todo = [child for function in body for child in ast.iter_child_nodes(function)]
    while todo:
        node = todo.pop()
        if not isinstance(node, inner):
            yield node
            todo += ast.iter_child_nodes(node)


def _has_what_it_says(klass: type) -> bool:
    """Return whether objects of a class have no methods but those of the class: no proxies, mocks or the like."""
    defined = {name for base in klass.__mro__ if base is not object for name in vars(base)}
    makes_others = type(klass).__call__ is not type.__call__ or "__new__" in defined
    return not makes_others and defined.isdisjoint({"__getattr__", "__getattribute__"})


def _named(spout: Any, function: Any, name: ast.expr) -> Any:
    if isinstance(name, ast.Name):
        return _of_module(function, name.id)
    if isinstance(name, ast.Attribute) and isinstance(name.value, ast.Name):
        owner = spout if name.value.id == "self" else _of_module(function, name.value.id)
        return inspect.getattr_static(owner, name.attr, None)
    return None


def _of_module(function: Any, name: str) -> Any:
    """Return what a function's module holds under a name, unless the name is another thing in the function."""
    code = getattr(function, "__code__", None)
    if code is None or name in (*code.co_varnames, *code.co_cellvars, *code.co_freevars):
        return None
    return function.__globals__.get(name)
