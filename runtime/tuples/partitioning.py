"""Routing: which tasks a tuple goes to. The same in every process, so never by hash() (law 9, routing)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from stormline.runtime.tuples import column_partitioning
from stormline.runtime.tuples.columns import Columns, Row, Tuples
from stormline.runtime.tuples.grouping_key import Key
from stormline.topology.errors import DirectStreamMismatch, InvalidChoice
from stormline.topology.grouping import GroupingKind
from stormline.topology.plan import Edge
from stormline.topology.serialization import Registry

Shares = Iterable[tuple[int, Tuples]]
Split = Callable[[Tuples], Shares]
"""Shares tuples out: (task, its tuples, in order). Rows become the tasks' own, so none is given to two of them."""


FEW_ROWS = 16
"""Rows that cost less to execute than to hand over one by one."""


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
            return column_partitioning.slices(tuples, tasks, begun)
        return _shares(tasks, [tuples[(i - begun) % n :: n] for i in range(n)])

    return split


def few_together(split: Split, task: int) -> Split:
    """Give a few rows to one task, and share out by `split` what is more."""

    def few_or_more(tuples: Tuples) -> Shares:
        if isinstance(tuples, Columns) or len(tuples) > FEW_ROWS:
            return split(tuples)
        return ((task, tuples),)

    return few_or_more


def fields(key: Key, tasks: Sequence[int]) -> Split:
    """Give rows of one key to one task."""
    if len(tasks) == 1:
        return single(tasks[0])

    def split(tuples: Tuples) -> Shares:
        if isinstance(tuples, Columns):
            return column_partitioning.by_index(tuples, tasks, column_partitioning.assign(*key.of_columns(tuples)))
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
            return column_partitioning.by_index(tuples, tasks, column_partitioning.indices_of(chosen))
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
            return column_partitioning.by_tasks(tuples, map(choose, rows))
        shares: dict[int, list[Row]] = {}
        for row in tuples:
            for task in choose(row):
                shares.setdefault(task, []).append([*row])
        return list(shares.items())

    return split


def direct(tuples: Tuples) -> Shares:
    """Refuse: direct streams have no choice to make."""
    raise DirectStreamMismatch("a direct stream needs emit_direct(task_id, values, stream)")
