"""Routing: which tasks a tuple goes to. The same in every process, so never Python's own hash()."""

from __future__ import annotations

import dataclasses
import datetime as dt
import math
import struct
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Context, Decimal
from fractions import Fraction
from functools import cache
from hashlib import blake2b
from operator import itemgetter
from typing import Any

from stormline.runtime import column_routing
from stormline.runtime.columns import Columns, Row, Tuples
from stormline.topology.attempt import TransactionAttempt
from stormline.topology.errors import DirectStreamMismatch, InvalidChoice, UnregisteredClass
from stormline.topology.grouping import GroupingKind
from stormline.topology.plan import Edge
from stormline.topology.serialization import Registry

Shares = Iterable[tuple[int, Tuples]]
Split = Callable[[Tuples], Shares]
"""Shares tuples out: (task, its tuples, in order). Rows become the tasks' own, so none is given to two of them."""

REMEMBERED_KEYS_MAX = 100_000
DECIMAL_DIGITS_MAX = 5_000  # an int of more digits takes seconds to make
_MIDNIGHT = dt.datetime.min
_REMEMBERED = frozenset(
    {str, int, bool, float, type(None), bytes, Decimal, dt.date, dt.time, dt.timedelta, uuid.UUID, TransactionAttempt}
)
"""Besides tuples and moments: what equals an object of these has the same canonical form."""
_EXACT = Context(prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN)  # never the thread's own, which users may set


def canonical(value: Any) -> Any:
    """Return `value` so that equal values give equal bytes: 1, 1.0 and True; {1, 2} and {2, 1}.

    What is equal must route alike, in every process. An object of a dataclass is its class's name and those of its
    fields that are compared. Objects of other classes of the user's, and those whose class has an `__eq__` of its
    own, stay themselves: their serializer must give equal ones equal bytes. A moment that a zone's clocks show twice
    is the moment, though Python takes both for equal.
    """
    kind = type(value)
    if kind is str or kind is int or value is None or kind is bytes:
        return value
    if kind is bool:
        return int(value)
    if kind is float:
        if value != value:  # there are many bit patterns of it
            return math.nan
        return int(value) if value.is_integer() else value
    if kind is Decimal:
        if not value:
            return 0  # of any exponent
        if not value.is_finite():
            return float(value) if value.is_infinite() else str(value)
        if abs(value.adjusted()) > DECIMAL_DIGITS_MAX:
            digits = "".join(map(str, value.as_tuple().digits)).rstrip("0")
            return ["decimal", value.is_signed(), digits, value.adjusted()]
        if value == value.to_integral_value():
            return int(value)
        as_float = float(value)
        return as_float if Decimal(as_float) == value else ("decimal", str(value.normalize(_EXACT)))
    if kind is list or kind is tuple:
        return [canonical(item) for item in value]
    if kind is dict:
        return sorted(([canonical(k), canonical(v)] for k, v in value.items()), key=repr)
    if kind is set or kind is frozenset:
        return sorted((canonical(item) for item in value), key=repr)
    if kind is bytearray:
        return bytes(value)
    if kind is dt.datetime:
        offset = value.utcoffset()
        return value.replace(fold=0) if offset is None else _in_utc(value, offset)
    if kind is dt.time:
        return _without_zone(value)
    if kind is complex:
        return value + 0 if value.imag else canonical(value.real)  # + 0: of 0.0 and -0.0 one
    if kind is Fraction:
        return _of_fraction(value)
    if isinstance(value, int) and _compares_as(kind, int):  # an IntEnum
        return int(value)
    if isinstance(value, str) and _compares_as(kind, str):  # a StrEnum
        return str.__str__(value)
    if isinstance(value, tuple) and _compares_as(kind, tuple):  # a NamedTuple
        return canonical(tuple(value))
    names = _compared_fields(kind)  # type: ignore[arg-type]  # mypy takes a type[Any] for unhashable
    return value if names is None else [kind.__qualname__, *(canonical(getattr(value, name, None)) for name in names)]


def _compares_as(kind: type, base: type) -> bool:
    return bool(kind.__eq__ == base.__eq__)


def _of_fraction(value: Fraction) -> Any:
    try:
        as_float = value.numerator / value.denominator
    except OverflowError:
        as_float = math.nan
    if as_float == value:
        return canonical(as_float)
    return value.numerator if value.denominator == 1 else ["fraction", value.numerator, value.denominator]


@cache
def _compared_fields(kind: type) -> tuple[str, ...] | None:
    """Name the fields that a dataclass compares; None for other classes, and where `__eq__` is not generated."""
    params = getattr(kind, "__dataclass_params__", None)
    if params is None or not params.eq or kind is TransactionAttempt:
        return None
    code = getattr(kind.__eq__, "__code__", None)
    if code is None or code.co_filename != "<string>":  # what dataclasses generates comes from no file
        return None
    return tuple(field.name for field in dataclasses.fields(kind) if field.compare)


def _in_utc(value: dt.datetime, offset: dt.timedelta) -> dt.datetime | dt.timedelta:
    try:
        return value.astimezone(dt.timezone.utc).replace(fold=0)
    except OverflowError:  # at the very ends of time
        return value.replace(tzinfo=None) - _MIDNIGHT - offset


def _without_zone(value: dt.time) -> dt.time | dt.timedelta:
    """Return a time of day as what Python compares: a zone whose offset depends on the date counts as none."""
    offset = value.utcoffset()
    if offset is None:
        return value.replace(tzinfo=None, fold=0)
    return dt.datetime.combine(_MIDNIGHT, value.replace(tzinfo=None)) - _MIDNIGHT - offset


def _may_be_remembered(key: Any) -> bool:
    """Tell whether all that equals `key` is hashed alike, so that the hash of one may be given to another.

    Not known of a user's class; and not so for a time of day that a zone's clocks show twice.
    """
    kind = type(key)
    if kind is tuple:
        return all(map(_may_be_remembered, key))
    if kind is dt.datetime:
        return bool(key.utcoffset() == key.replace(fold=1 - key.fold).utcoffset())
    return kind in _REMEMBERED


def stable_hashes(values: Sequence[Any], registry: Registry) -> tuple[int, int]:
    """Return two independent 64-bit hashes of `values`, the same in every process and for ever.

    Raises:
        UnregisteredClass: they hold an object of a class that was not registered.
    """
    try:
        packed = registry.pack([canonical(value) for value in values])
    except UnregisteredClass:
        packed = registry.pack([_packable(value, registry) for value in values])
    digest = blake2b(packed, digest_size=16).digest()
    first, second = struct.unpack(">QQ", digest)
    return first, second


def _packable(value: Any, registry: Registry) -> Any:
    """Return the canonical form; `value` where a field holds what only the serializer of its dataclass can write."""
    form = canonical(value)
    try:
        registry.pack(form)
    except UnregisteredClass:
        return value
    return form


class Key(dict[Any, Any]):
    """Remembers what each key hashed to: key → `of_hashes(hashes)`. All senders of a process share it."""

    def __init__(
        self, positions: Sequence[int], registry: Registry, of_hashes: Callable[[tuple[int, int]], Any]
    ) -> None:
        super().__init__()
        self._single = len(positions) == 1
        self._registry = registry
        self._of_hashes = of_hashes
        self._positions = positions
        self.of_row = itemgetter(*positions)

    def __missing__(self, key: Any) -> Any:
        found = self._of_hashes(stable_hashes([key] if self._single else key, self._registry))
        if len(self) < REMEMBERED_KEYS_MAX and _may_be_remembered(key):
            self[key] = found
        return found

    def of_rows(self, rows: list[Row]) -> Iterable[Any]:
        """Return what the key of each row hashed to."""
        of_row = self.of_row
        try:
            return [self[key] for key in map(of_row, rows)]
        except TypeError:  # a list or another key that cannot be remembered
            return [self._of_unhashable(of_row(row)) for row in rows]

    def of_columns(self, columns: Columns) -> tuple[list[Any], Any]:
        """Return what each key of a record batch hashed to, and for each row the index of its key: a pyarrow array."""
        keys, codes = column_routing.keyed(columns, self._positions)
        return [self._of_unhashable(key) for key in keys], codes

    def _of_unhashable(self, key: Any) -> Any:
        try:
            return self[key]
        except TypeError:
            return self._of_hashes(stable_hashes([key] if self._single else key, self._registry))


def fields_key(edge: Edge, positions: Sequence[int], tasks: int, registry: Registry) -> Key:
    """Return the part of a fields or partial key grouping that all senders of a process share.

    It gives the index of a row's task, or of its two, among `tasks` many.
    """
    if edge.grouping.kind is GroupingKind.FIELDS:
        return Key(positions, registry, lambda hashes: hashes[0] % tasks)
    return Key(positions, registry, lambda hashes: (hashes[0] % tasks, hashes[1] % tasks))


def _shares(tasks: Sequence[int], shares: Sequence[list[Row]]) -> Shares:
    return [(task, share) for task, share in zip(tasks, shares, strict=True) if share]


def single(task: int) -> Split:
    """Give one task all."""
    return lambda tuples: ((task, tuples),)


def every(tasks: Sequence[int]) -> Split:
    """Give every task all."""

    def split(tuples: Tuples) -> Shares:
        if isinstance(tuples, Columns):
            return [(task, tuples) for task in tasks]
        return [(task, [[*row] for row in tuples]) for task in tasks[1:]] + [(tasks[0], tuples)]

    return split


def shuffle(tasks: Sequence[int], offset: int) -> Split:
    """Take the tasks in turn, beginning at `offset`."""
    n = len(tasks)
    if n == 1:
        return single(tasks[0])
    turn = offset % n

    def split(tuples: Tuples) -> Shares:
        nonlocal turn
        begun, turn = turn, (turn + len(tuples)) % n
        if isinstance(tuples, Columns):
            return column_routing.slices(tuples, tasks, begun)
        return _shares(tasks, [tuples[(i - begun) % n :: n] for i in range(n)])

    return split


def fields(key: Key, tasks: Sequence[int]) -> Split:
    """Give rows of one key to one task."""
    if len(tasks) == 1:
        return single(tasks[0])

    def split(tuples: Tuples) -> Shares:
        if isinstance(tuples, Columns):
            return column_routing.by_index(tuples, tasks, column_routing.assign(*key.of_columns(tuples)))
        shares: list[list[Row]] = [[] for _ in tasks]
        appends = [share.append for share in shares]
        for row, i in zip(tuples, key.of_rows(tuples), strict=True):
            appends[i](row)
        return _shares(tasks, shares)

    return split


def partial_key(key: Key, tasks: Sequence[int]) -> Split:
    """Give each row to the one of its key's two tasks that got less from this sender."""
    sent = [0] * len(tasks)

    def less_loaded(candidates: Iterable[tuple[int, int]]) -> Iterator[int]:
        for first, second in candidates:
            i = first if sent[first] <= sent[second] else second
            sent[i] += 1
            yield i

    def split(tuples: Tuples) -> Shares:
        if isinstance(tuples, Columns):
            candidates, codes = key.of_columns(tuples)
            chosen = less_loaded(map(candidates.__getitem__, codes.to_pylist()))
            return column_routing.by_index(tuples, tasks, column_routing.indices_of(chosen))
        shares: list[list[Row]] = [[] for _ in tasks]
        for row, i in zip(tuples, less_loaded(key.of_rows(tuples)), strict=True):
            shares[i].append(row)
        return _shares(tasks, shares)

    return split


def custom(edge: Edge, source_task: int, tasks: Sequence[int]) -> Split:
    """Ask the user's object; it has been prepared."""
    grouping = edge.grouping.custom
    assert grouping is not None
    known = frozenset(tasks)

    def choose(row: Row) -> Sequence[int]:
        chosen = tuple(grouping.choose_tasks(source_task, row))
        for task in chosen:
            if task not in known:
                raise InvalidChoice(
                    f"the custom grouping of {edge.target!r} on stream {edge.stream!r} of {edge.source!r} chose "
                    f"task {task!r}; the tasks of {edge.target!r} are {sorted(known)}"
                )
        return chosen

    def split(tuples: Tuples) -> Shares:
        if isinstance(tuples, Columns):
            rows = (row for part in tuples.rows_in_parts() for row in part)
            return column_routing.by_tasks(tuples, map(choose, rows))
        shares: dict[int, list[Row]] = {}
        for row in tuples:
            for task in choose(row):
                shares.setdefault(task, []).append([*row])
        return list(shares.items())

    return split


def direct(tuples: Tuples) -> Shares:
    """Refuse: direct streams have no choice to make."""
    raise DirectStreamMismatch("a direct stream needs emit_direct(task_id, values, stream)")
