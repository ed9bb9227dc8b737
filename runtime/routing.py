"""Routing: which tasks a tuple goes to. The same in every process, so never Python's own hash()."""

from __future__ import annotations

import datetime as dt
import struct
from collections.abc import Callable, Sequence
from decimal import Decimal
from hashlib import blake2b
from typing import Any

from stormline.topology.errors import DirectStreamMismatch, InvalidChoice
from stormline.topology.grouping import GroupingKind
from stormline.topology.plan import Edge
from stormline.topology.serialization import Registry

Choose = Callable[[Sequence[Any]], Sequence[int]]
REMEMBERED_KEYS_MAX = 100_000
DECIMAL_DIGITS_MAX = 5_000  # an int of more digits takes seconds to make


def canonical(value: Any) -> Any:
    """Return `value` so that equal values give equal bytes: 1, 1.0 and True; {1, 2} and {2, 1}.

    What is equal must route alike, since keys are remembered: else the way of one depended on which came first.
    """
    kind = type(value)
    if kind is str or kind is int or value is None or kind is bytes:
        return value
    if kind is bool:
        return int(value)
    if kind is float:
        return int(value) if value.is_integer() else value
    if kind is Decimal:
        if not value.is_finite():
            return str(value)
        if abs(value.adjusted()) > DECIMAL_DIGITS_MAX:
            digits = "".join(map(str, value.as_tuple().digits)).rstrip("0")
            return ["decimal", value.is_signed(), digits, value.adjusted()]
        if value == value.to_integral_value():
            return int(value)
        as_float = float(value)
        return as_float if Decimal(as_float) == value else ("decimal", str(value.normalize()))
    if kind is list or kind is tuple:
        return [canonical(item) for item in value]
    if kind is dict:
        return sorted(([canonical(k), canonical(v)] for k, v in value.items()), key=repr)
    if kind is set or kind is frozenset:
        return sorted((canonical(item) for item in value), key=repr)
    if kind is bytearray:
        return bytes(value)
    if kind is dt.datetime and value.utcoffset() is not None:
        return _in_utc(value)
    if isinstance(value, int):  # an IntEnum
        return int(value)
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, tuple):  # a NamedTuple
        return canonical(tuple(value))
    return value


def _in_utc(value: dt.datetime) -> dt.datetime:
    try:
        return value.astimezone(dt.timezone.utc)
    except OverflowError:  # at the very ends of time
        return value


def stable_hashes(values: Sequence[Any], registry: Registry) -> tuple[int, int]:
    """Return two independent 64-bit hashes of `values`, the same in every process and for ever."""
    digest = blake2b(registry.pack([canonical(value) for value in values]), digest_size=16).digest()
    first, second = struct.unpack(">QQ", digest)
    return first, second


class _Key:
    """Remembers what each key hashed to."""

    def __init__(
        self, positions: Sequence[int], registry: Registry, of_hashes: Callable[[tuple[int, int]], Any]
    ) -> None:
        self._positions = positions
        self._registry = registry
        self._of_hashes = of_hashes
        self._known: dict[Any, Any] = {}

    def __call__(self, values: Sequence[Any]) -> Any:
        positions = self._positions
        key: Any = values[positions[0]] if len(positions) == 1 else tuple([values[i] for i in positions])
        try:
            return self._known[key]
        except KeyError:
            found = self._compute(values)
            if len(self._known) < REMEMBERED_KEYS_MAX:
                self._known[key] = found
            return found
        except TypeError:  # a list or another key that cannot be remembered
            return self._compute(values)

    def _compute(self, values: Sequence[Any]) -> Any:
        return self._of_hashes(stable_hashes([values[i] for i in self._positions], self._registry))


def fields_key(
    edge: Edge, positions: Sequence[int], tasks: Sequence[int], registry: Registry
) -> Callable[[Sequence[Any]], Any]:
    """Return the part of a fields or partial key grouping that all senders of a process share: key → tasks."""
    n = len(tasks)
    if edge.grouping.kind is GroupingKind.FIELDS:
        return _Key(positions, registry, lambda hashes: (tasks[hashes[0] % n],))
    return _Key(positions, registry, lambda hashes: (tasks[hashes[0] % n], tasks[hashes[1] % n]))


def shuffle(tasks: Sequence[int], offset: int) -> Choose:
    """Take the tasks in turn, beginning at `offset`."""
    choices = [(task,) for task in tasks]
    n = len(choices)
    turn = offset % n

    def choose(values: Sequence[Any]) -> Sequence[int]:
        nonlocal turn
        choice = choices[turn]
        turn = turn + 1 if turn + 1 < n else 0
        return choice

    return choose


def partial_key(key: Callable[[Sequence[Any]], tuple[int, int]]) -> Choose:
    """Take the one of the key's two tasks that got less from this sender."""
    sent: dict[int, int] = {}

    def choose(values: Sequence[Any]) -> Sequence[int]:
        first, second = key(values)
        task = first if sent.get(first, 0) <= sent.get(second, 0) else second
        sent[task] = sent.get(task, 0) + 1
        return (task,)

    return choose


def custom(edge: Edge, source_task: int, tasks: Sequence[int]) -> Choose:
    """Ask the user's object; it has been prepared."""
    grouping = edge.grouping.custom
    assert grouping is not None
    known = frozenset(tasks)

    def choose(values: Sequence[Any]) -> Sequence[int]:
        chosen = tuple(grouping.choose_tasks(source_task, values))
        for task in chosen:
            if task not in known:
                raise InvalidChoice(
                    f"the custom grouping of {edge.target!r} on stream {edge.stream!r} of {edge.source!r} chose task "
                    f"{task!r}; the tasks of {edge.target!r} are {sorted(known)}"
                )
        return chosen

    return choose


def direct(values: Sequence[Any]) -> Sequence[int]:
    """Refuse: direct streams have no choice to make."""
    raise DirectStreamMismatch("a direct stream needs emit_direct(task_id, values, stream)")
