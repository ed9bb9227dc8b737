"""persistent_aggregate: groups tuples, aggregates them, and stores the results in a map: two bolts, ready to use.

    source → <id>-partial (no committer) → <id> (committer)

The first one makes partial results of what reaches one task, the second combines those of one key, and combines them
with what is stored. So what travels, and what is written, is one row a key.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from stormline.bolts.arrow import ArrowTransactionalBolt
from stormline.bolts.base import BaseTransactionalBolt
from stormline.state.aggregators import READY, Aggregator, Count
from stormline.state.errors import InvalidAggregate
from stormline.state.grouped_columns import grouped, value_counts
from stormline.state.maps import OpaqueMap, SnapshottableMap, StateMap
from stormline.state.partial_results import merged, stored_part
from stormline.state.table import PREV
from stormline.topology.attempt import TransactionAttempt
from stormline.topology.bolt_declarer import BoltDeclarer
from stormline.topology.builder import TransactionalTopologyBuilder
from stormline.topology.context import TopologyContext
from stormline.topology.contracts import Collector, Conf, ICommitter, IRowsBolt
from stormline.topology.grouping import DEFAULT_STREAM
from stormline.topology.streams import OutputFieldsDeclarer
from stormline.topology.tuples import Tuple, TupleSource

if TYPE_CHECKING:
    import pyarrow

Group = tuple[Any, ...]
Partials = list[Any]


def persistent_aggregate(
    builder: TransactionalTopologyBuilder,
    bolt_id: str,
    source: str,
    into: StateMap | SnapshottableMap,
    aggregates: Mapping[str, Aggregator],
    parallelism: int = 1,
    partial_parallelism: int | None = None,
    stream: str = DEFAULT_STREAM,
    batches: bool = False,
) -> BoltDeclarer:
    """Add bolts that group the tuples of a stream, aggregate them, and store the results: each transaction once.

    Tuples are grouped by the fields that are named as the map's key columns; into a `SnapshottableMap` all are one
    group. The committer emits (attempt, key…, values…) for each key that the batch has changed, and where the map is
    opaque what was stored before: `prev_…`, None for a new key.

    Args:
        builder (TransactionalTopologyBuilder): Where to add them.
        bolt_id (str): The id of the committer; that of the bolt before it ends with `-partial`.
        source (str): The id of the component whose tuples are aggregated.
        into (StateMap | SnapshottableMap): Where to store. Its value's columns are those of the aggregates.
        aggregates (Mapping[str, Aggregator]): By the name of its column, or of its first one.
        parallelism (int): Number of the committer's tasks; each key is one task's.
        partial_parallelism (int | None): Number of tasks that make partial results; None: as the committer's.
        stream (str): The source's stream.
        batches (bool): Whether partial results are made of record batches (`stormline[arrow]`): for a source that emits
            them.

    Returns:
        The declarer of the committer.

    Raises:
        InvalidAggregate: The map's columns are not those of the aggregates. That a field is not there `build_topology`
            says.
    """
    work = _Work(into, aggregates)
    partial = PartialBatches(work) if batches else PartialRows(work)
    declarer = builder.set_bolt(f"{bolt_id}-partial", partial, partial_parallelism or parallelism)
    declarer.none_grouping(source, stream)
    committer = builder.set_bolt(bolt_id, StoreAggregates(work), parallelism)
    if work.fields:
        committer.fields_grouping(f"{bolt_id}-partial", work.fields)
    else:
        committer.global_grouping(f"{bolt_id}-partial")
    return committer


class _Work:
    """What is grouped by which fields, aggregated how, and stored where."""

    def __init__(self, into: StateMap | SnapshottableMap, aggregates: Mapping[str, Aggregator]) -> None:
        if not isinstance(into, (StateMap, SnapshottableMap)):
            raise InvalidAggregate(f"aggregates are to be stored in {into!r}, expected a map, or a SnapshottableMap")
        self.map = into.map if isinstance(into, SnapshottableMap) else into
        self.key = into.key if isinstance(into, SnapshottableMap) else None
        self.names = list(aggregates)
        self.aggregators = list(aggregates.values())
        wrong = [one for one in self.aggregators if not isinstance(one, Aggregator)]
        if wrong or not self.names:
            raise InvalidAggregate(
                f"table {self.map.table!r} is given the aggregates {dict(aggregates)!r}, expected at least one, as "
                '{"count": Count()}'
            )
        columns: dict[str, type] = {}
        for name, aggregator in aggregates.items():
            columns |= aggregator.columns(name)
        if list(columns.items()) != list(self.map.value.items()):
            told = ", ".join(f'"{name}": {python.__name__}' for name, python in columns.items())
            raise InvalidAggregate(
                f"table {self.map.table!r} has the value columns {list(self.map.value)}, and the aggregates have "
                f"{list(columns)}; declare the map with value={{{told}}}"
            )
        self.widths = [len(one.columns(name)) for name, one in aggregates.items()]
        self.fields = [] if isinstance(into, SnapshottableMap) else list(self.map.key)
        self.reads = [*self.fields, *(one.field for one in self.aggregators if one.field is not None)]
        self.opaque = isinstance(self.map, OpaqueMap)
        self.counts = any(type(one) is Count for one in self.aggregators)  # it stores 0 of no values, not None
        self.counts_alone = len(self.aggregators) == 1 and self.counts and self.aggregators[0].field is None

    def __deepcopy__(self, memo: dict[int, Any]) -> _Work:
        """Share it with the bolts of all attempts: only an aggregator of the user's own may change."""
        if all(type(one) in READY for one in self.aggregators):
            return self
        made = copy.copy(self)
        made.aggregators = copy.deepcopy(self.aggregators, memo)
        return made

    def merged(self, one: Partials | None, other: Partials) -> Partials:
        """Return the partial results of two together."""
        if one is None:
            return list(other)
        return [merged(aggregator, a, b) for aggregator, a, b in zip(self.aggregators, one, other, strict=True)]

    def stored(self, partials: Partials) -> tuple[Any, ...]:
        """Return partial results as values of the map's columns."""
        return tuple(
            value
            for aggregator, partial in zip(self.aggregators, partials, strict=True)
            for value in aggregator.stored(partial)
        )

    def stored_group(self, group: Group) -> Group:
        """Return a group as the key's columns have it."""
        return tuple(stored_part(python, part) for python, part in zip(self.map.key.values(), group, strict=False))

    def loaded(self, values: tuple[Any, ...]) -> Partials:
        """Return the partial results that were stored."""
        partials, rest = [], values
        for aggregator, width in zip(self.aggregators, self.widths, strict=True):
            partials.append(aggregator.loaded(rest[:width]))
            rest = rest[width:]
        return partials


class PartialRows(BaseTransactionalBolt, IRowsBolt):
    """Makes partial results of the tuples that reach one task."""

    gathers = ("groups",)
    skips_empty = True

    def __init__(self, work: _Work) -> None:
        self._work = work
        self.reads_fields = work.reads

    def prepare(self, conf: Conf, context: TopologyContext, collector: Collector, batch_id: TransactionAttempt) -> None:
        """Begin with nothing."""
        self._collector = collector
        self._attempt = batch_id
        self.groups: dict[Group, Partials] = {}
        (source,) = context.this_sources  # in place of no field stands the attempt, which is never None
        fields = context.component_output_fields(source)
        self._key_at = [fields.field_index(name) for name in self._work.fields]
        self._steps = [
            (i, fields.field_index(one.field) if one.field else 0, one) for i, one in enumerate(self._work.aggregators)
        ]
        self._group_of = itemgetter(*self._key_at) if self._key_at else None

    def execute(self, tup: Tuple) -> None:
        """Add one tuple to its group."""
        self._add([tup.values])

    def execute_rows(self, rows: Sequence[list[Any]], source: TupleSource) -> None:
        """Add tuples to their groups."""
        self._add(rows)

    def _add(self, rows: Sequence[list[Any]]) -> None:
        groups, group_of, one_field = self.groups, self._group_of, len(self._key_at) == 1
        if self._work.counts_alone and group_of is not None:
            _add_counts(groups, Counter(map(group_of, rows)).items(), one_field)
            return
        steps = self._steps
        for values in rows:
            group = () if group_of is None else (group_of(values),) if one_field else group_of(values)
            held = groups.get(group)
            if held is None:
                held = groups[group] = [None] * len(steps)
            for i, place, aggregator in steps:
                value = values[place]
                if value is not None:
                    one = aggregator.first(value)
                    held[i] = one if held[i] is None else merged(aggregator, held[i], one)

    def finish_batch(self) -> None:
        """Emit one tuple a group."""
        attempt = self._attempt
        self._collector.emit_all([[attempt, *group, *partials] for group, partials in self.groups.items()])

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """Declare key and partial results."""
        declarer.declare(["attempt", *self._work.fields, *(f"partial_{name}" for name in self._work.names)])


class PartialBatches(ArrowTransactionalBolt):
    """Makes partial results of the record batches that reach one task: by pyarrow, as far as it can."""

    gathers = ("groups",)
    skips_empty = True

    def __init__(self, work: _Work) -> None:
        self._work = work
        self.reads_fields = work.reads

    def prepare(self, conf: Conf, context: TopologyContext, collector: Collector, batch_id: TransactionAttempt) -> None:
        """Begin with nothing."""
        self._collector = collector
        self._attempt = batch_id
        self.groups: dict[Group, Partials] = {}

    def execute_batch(self, batch: pyarrow.RecordBatch) -> None:
        """Add the rows of a batch to their groups."""
        work = self._work
        if work.counts_alone and len(work.fields) == 1:
            counted = value_counts(batch.column(work.fields[0]))
            if counted is not None:
                _add_counts(self.groups, counted, one_field=True)
                return
        for group, partials in grouped(batch, work.fields, work.aggregators):
            self.groups[group] = work.merged(self.groups.get(group), partials)

    def finish_batch(self) -> None:
        """Emit one tuple a group."""
        attempt = self._attempt
        self._collector.emit_all([[attempt, *group, *partials] for group, partials in self.groups.items()])

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """Declare key and partial results."""
        declarer.declare(["attempt", *self._work.fields, *(f"partial_{name}" for name in self._work.names)])


class StoreAggregates(BaseTransactionalBolt, ICommitter):
    """Combines the partial results of each key, and combines them with what is stored."""

    gathers = ("groups",)

    def __init__(self, work: _Work) -> None:
        self._work = work
        self.effects_in = work.map.store

    def prepare(self, conf: Conf, context: TopologyContext, collector: Collector, batch_id: TransactionAttempt) -> None:
        """Begin with nothing."""
        self._context = context
        self._collector = collector
        self._attempt = batch_id
        self.groups: dict[Group, Partials] = {}

    def execute(self, tup: Tuple) -> None:
        """Add partial results to those of their key."""
        values = tup.values
        width = 1 + len(self._work.fields)
        group = tuple(values[1:width])
        held = self.groups.get(group)
        if held is not None and self._work.counts_alone:
            held[0] += values[width]
        else:
            self.groups[group] = self._work.merged(held, values[width:])

    def finish_batch(self) -> None:
        """Store one row a key, and emit it."""
        work = self._work
        opened = work.map.begin_commit(self._context, self._attempt)
        changes = {
            self._key(self._work.stored_group(group)): partials
            for group, partials in self.groups.items()
            if work.counts or any_value(work, partials)
        }
        one_value = len(work.map.value) == 1

        def combine(old: Any, partials: Partials) -> Any:
            if work.counts_alone:
                return partials[0] if old is None else old + partials[0]
            if old is not None:
                partials = work.merged(work.loaded((old,) if one_value else old), partials)
            values = work.stored(partials)
            return values[0] if one_value else values

        now = opened.multi_update(changes, combine)
        if not self._context.this_targets:
            return
        before = opened.multi_get_before(list(now)) if work.opaque else [None] * len(now)
        rows = []
        for (key, values), old in zip(now.items(), before, strict=True):
            row = [self._attempt, *self._split(key, len(work.map.key)), *self._split(values, len(work.map.value))]
            rows.append([*row, *self._split(old, len(work.map.value))] if work.opaque else row)
        self._collector.emit_all(rows)

    def _key(self, group: Group) -> Any:
        if not self._work.fields:
            return self._work.key
        return group[0] if len(group) == 1 else group

    @staticmethod
    def _split(value: Any, width: int) -> Sequence[Any]:
        if width == 1:
            return (value,)
        return (None,) * width if value is None else tuple(value)

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """Declare key and values, and those before where the map is opaque."""
        columns = list(self._work.map.value)
        before = [PREV + name for name in columns] if self._work.opaque else []
        declarer.declare(["attempt", *self._work.map.key, *columns, *before])


def _add_counts(groups: dict[Group, Partials], counted: Iterable[tuple[Any, int]], one_field: bool) -> None:
    """Add to groups how many tuples more each has; of one field the value alone stands for the group."""
    for key, count in counted:
        group = (key,) if one_field else key
        held = groups.get(group)
        if held is None:
            groups[group] = [count]
        else:
            held[0] += count


def any_value(work: _Work, partials: Partials) -> bool:
    """Return whether a group has anything to store: where all that it had was None, it has not."""
    return any(value is not None for value in work.stored(partials))
