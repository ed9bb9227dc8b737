"""The ready committer: what is stored is what plain Python makes of all rows, however they are cut into batches."""

from __future__ import annotations

import copy
import statistics
from collections import Counter, defaultdict
from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stormline import (
    BaseBatchBolt,
    BaseTaskHook,
    Config,
    MemoryTransactionalSpout,
    Topology,
    TransactionalTopologyBuilder,
    Tuple,
)
from stormline.errors import InvalidAggregate
from stormline.state import (
    Count,
    Distinct,
    Max,
    Mean,
    MemoryStore,
    Min,
    OpaqueMap,
    Reduce,
    SnapshottableMap,
    StateMap,
    Sum,
    Top,
    TransactionalMap,
    persistent_aggregate,
)
from stormline.state.grouped_columns import value_counts
from stormline.testing import InProcessCluster
from stormline.topology.config import COMMIT_PLACEMENT
from tests.kits.components import LEDGERS, Store

STORE = MemoryStore("aggregates")


def longer(one: str, other: str) -> str:
    return max(one, other, key=lambda text: (len(text), text))


ALL = {
    "rows": Count(),
    "counted": Count("n"),
    "total": Sum("n"),
    "least": Min("n"),
    "greatest": Max("n"),
    "mean": Mean("n"),
    "different": Distinct("n"),
    "top": Top(2, "n"),
    "longest": Reduce("word", longer, str, identity=""),
}
COLUMNS = {column: python for name, one in ALL.items() for column, python in one.columns(name).items()}
Row = tuple[str, int, int | None]


def expected(rows: list[Row]) -> dict[Any, Any]:
    groups: dict[Any, list[Row]] = defaultdict(list)
    for row in rows:
        groups[row[0], row[1]].append(row)
    found = {}
    for key, members in groups.items():
        ns = [n for _, _, n in members if n is not None]
        some = (sum(ns), min(ns), max(ns), statistics.fmean(ns), float(sum(ns)), len(ns)) if ns else (None,) * 6
        sets = (len(set(ns)), set(ns), sorted(ns, reverse=True)[:2]) if ns else (None,) * 3
        found[key] = (len(members), len(ns), *some, *sets, key[0])
    return found


class AsBatches(BaseBatchBolt):
    """Emits the rows of a batch as record batches."""

    def prepare(self, conf: Any, context: Any, collector: Any, batch_id: Any) -> None:
        self.collector = collector
        self.rows: list[Any] = []

    def execute(self, tup: Tuple) -> None:
        self.rows.append(tup.values[1:])

    def finish_batch(self) -> None:
        for part in (self.rows[::2], self.rows[1::2]):
            if part:
                words, ks, ns = zip(*part, strict=True)
                columns = [pyarrow.array(words), pyarrow.array(ks), pyarrow.array(ns, pyarrow.int64())]
                self.collector.emit_batch(pyarrow.record_batch(columns, names=["word", "k", "n"]))

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(["tx", "word", "k", "n"])


def topology(rows: list[Row], into: Any, aggregates: Any, batches: bool = False, **more: Any) -> Topology:
    spout = MemoryTransactionalSpout({0: rows[::2], 1: rows[1::2]}, ["word", "k", "n"], 5)
    builder = TransactionalTopologyBuilder("aggregates", "spout", spout, 2)
    source = "spout"
    if batches:
        builder.set_bolt("batches", AsBatches(), 2).none_grouping("spout")
        source = "batches"
    persistent_aggregate(builder, "store", source, into, aggregates, batches=batches, **more)
    return builder.build_topology()


def run(made: Topology, config: Any = None) -> None:
    STORE.clear()
    with InProcessCluster() as cluster, cluster.submit(made, config or {}) as handle:
        handle.await_drained(60)


ROWS = st.lists(
    st.tuples(
        st.sampled_from(["cat", "dog", "", "mouse"]), st.integers(0, 1), st.none() | st.integers(-5, 5) | st.just(2**60)
    ),
    min_size=1,
    max_size=40,
)


@given(ROWS, st.booleans(), st.sampled_from([TransactionalMap, OpaqueMap]), st.sampled_from(["driver", "executors"]))
@settings(max_examples=40, deadline=None)
def test_what_is_stored_is_what_plain_python_makes_of_all_rows(
    rows: list[Row], batches: bool, kind: type[StateMap], placement: str
) -> None:
    into = kind(STORE, "results", key={"word": str, "k": int}, value=COLUMNS)
    run(topology(rows, into, ALL, batches, parallelism=3), {COMMIT_PLACEMENT: placement})
    found = into.items()
    told = expected(rows)
    assert found.keys() == told.keys()
    mean = list(COLUMNS).index("mean")
    for key, values in told.items():
        assert found[key][:mean] == values[:mean]
        assert found[key][mean : mean + 2] == pytest.approx(values[mean : mean + 2])
        assert found[key][mean + 2 :] == values[mean + 2 :]


def test_one_row_travels_and_is_written_for_each_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many tuples as keys and partial tasks reach the committer, however many rows there are."""
    from stormline.state.persistent_aggregate import StoreAggregates

    seen: list[Any] = []
    execute = StoreAggregates.execute

    def noted(bolt: StoreAggregates, tup: Tuple) -> None:
        seen.append(tup[1])
        execute(bolt, tup)

    monkeypatch.setattr(StoreAggregates, "execute", noted)
    into = TransactionalMap(STORE, "counts", key={"word": str}, value={"n": int})
    rows = [("cat", 0, 1), ("dog", 0, 1)] * 10
    spout = MemoryTransactionalSpout({0: rows}, ["word", "k", "n"], 20)
    builder = TransactionalTopologyBuilder("aggregates", "spout", spout)
    persistent_aggregate(builder, "store", "spout", into, {"n": Count()})
    run(builder.build_topology())
    assert sorted(seen) == ["cat", "dog"]
    assert into.items() == {"cat": 10, "dog": 10}


@pytest.mark.parametrize("batches", [False, True])
@pytest.mark.parametrize(
    ("key", "values"),
    [
        ({"word": str}, ["cat", "", "köter"]),
        ({"word": int}, [0, -1, 2**40]),
        ({"word": bool}, [True, False]),
        ({"word": bytes}, [b"", b"\0"]),
        ({"word": date}, [date(2020, 1, 1), date(1, 1, 1)]),
        ({"word": str, "k": int}, ["cat", "dog"]),
    ],
)
def test_tuples_alone_are_counted_by_keys_of_every_type(key: Any, values: list[Any], batches: bool) -> None:
    rows: list[Any] = [(values[i * i % len(values)], i % 3, 1) for i in range(50)]
    into = TransactionalMap(STORE, "counts", key=key, value={"n": int})
    run(topology(rows, into, {"n": Count()}, batches, parallelism=2))
    assert into.items() == Counter(row[0] if len(key) == 1 else row[:2] for row in rows)


def test_keys_that_are_equal_are_one_group_whatever_their_type() -> None:
    into = TransactionalMap(STORE, "counts", key={"word": int}, value={"n": int})
    rows: list[Any] = [(True, 0, 1), (1.0, 0, 1), (1, 0, 1), (2, 0, 1), (2.0, 0, 1)]
    run(topology(rows, into, {"n": Count()}, False))
    assert into.items() == {1: 3, 2: 2}


def test_values_of_a_column_are_counted_with_none_and_only_where_pyarrow_tells_them_apart_as_python_does() -> None:
    words = pyarrow.array(["skipped", "cat", None, "cat", None])[1:]
    assert dict(value_counts(words) or ()) == {"cat": 2, None: 2}
    assert value_counts(pyarrow.array([float("nan")])) is None


def test_hooks_hear_of_each_tuple_that_is_aggregated() -> None:
    heard: list[Any] = []

    class Hears(BaseTaskHook):
        def bolt_execute(self, info: Any) -> None:
            if info.tuple.source_component == "spout":
                heard.append(info.tuple[1])

    into = TransactionalMap(STORE, "counts", key={"word": str}, value={"n": int})
    rows: list[Row] = [("cat", 0, 1), ("dog", 0, 1), ("cat", 1, 1)]
    run(topology(rows, into, {"n": Count()}, False), {Config.TOPOLOGY_AUTO_TASK_HOOKS: [Hears]})
    assert sorted(heard) == ["cat", "cat", "dog"]
    assert into.items() == {"cat": 2, "dog": 1}


@pytest.mark.parametrize("batches", [False, True])
def test_a_single_value_is_one_group_of_all(batches: bool) -> None:
    total = SnapshottableMap(TransactionalMap(STORE, "totals", key={"name": str}, value={"n": int}), "all")
    run(topology([("cat", 0, 5), ("dog", 1, 7), ("cat", 0, None)] * 9, total, {"n": Sum("n")}, batches))
    assert total.map.items() == {"all": 108}


def test_a_group_of_nothing_but_none_stores_nothing() -> None:
    into = TransactionalMap(STORE, "sums", key={"word": str}, value={"n": int})
    run(topology([("cat", 0, None), ("dog", 1, 7)], into, {"n": Sum("n")}))
    assert into.items() == {"dog": 7}


@pytest.mark.parametrize("kind", [TransactionalMap, OpaqueMap])
def test_the_committer_emits_what_each_key_holds_and_of_an_opaque_map_what_it_held(kind: type[StateMap]) -> None:
    LEDGERS.clear()
    into = kind(STORE, "sums", key={"word": str}, value={"n": int, "rows": int})
    spout = MemoryTransactionalSpout({0: [("cat", 5), ("dog", 1), ("cat", 2)]}, ["word", "n"], 2)
    builder = TransactionalTopologyBuilder("aggregates", "spout", spout)
    persistent_aggregate(builder, "store", "spout", into, {"n": Sum("n"), "rows": Count()})
    builder.set_bolt("seen", Emitted("seen")).global_grouping("store")
    run(builder.build_topology())
    seen = [row for _, row in sorted(LEDGERS["seen"].all())]
    if kind is OpaqueMap:
        assert seen == [["cat", 5, 1, None, None], ["dog", 1, 1, None, None], ["cat", 7, 2, 5, 1]]
    else:
        assert seen == [["cat", 5, 1], ["dog", 1, 1], ["cat", 7, 2]]


class Emitted(Store):
    """Keeps all values of its tuples."""

    def execute(self, tup: Tuple) -> None:
        self.values.append((self.attempt.transaction_id, tup.values[1:]))


def test_decimals_are_summed_exactly() -> None:
    into = TransactionalMap(STORE, "sums", key={"word": str}, value={"n": Decimal})
    spout = MemoryTransactionalSpout({0: [("cat", Decimal("0.1"))] * 10}, ["word", "n"], 3)
    builder = TransactionalTopologyBuilder("aggregates", "spout", spout)
    persistent_aggregate(builder, "store", "spout", into, {"n": Sum("n", Decimal)})
    run(builder.build_topology())
    assert into.items() == {"cat": Decimal("1.0")}


MAP = TransactionalMap(STORE, "sums", key={"word": str}, value={"n": int})


@pytest.mark.parametrize(
    ("made", "why"),
    [
        (lambda: topology([], MAP, {"m": Sum("n")}), r"'sums' has the value columns \['n'\], .* with value="),
        (lambda: topology([], MAP, {"n": Mean("n")}), r"with value={\"n\": float, \"n_sum\": float, \"n_count\": int}"),
        (lambda: topology([], MAP, {"n": Sum("n", float)}), r"with value={\"n\": float}"),
        (lambda: topology([], MAP, {}), r"'sums' is given the aggregates {}, expected at least one, as"),
        (lambda: topology([], MAP, {"n": sum}), r"is given the aggregates {'n': <built-in function sum>}"),
        (lambda: topology([], "sums", {"n": Count()}), r"aggregates are to be stored in 'sums', expected a map"),
        (lambda: Top(0, "n"), r"Top keeps 0 values of 'n', expected a number from 1 on"),
        (
            lambda: Reduce("n", 5),  # type: ignore[arg-type]
            r"Reduce of field 'n' is given 5, expected a function of two values",
        ),
        (lambda: Sum(""), r"Sum aggregates field '', expected the name of a field"),
    ],
)
def test_an_aggregate_that_cannot_be_is_refused(made: Any, why: str) -> None:
    with pytest.raises(InvalidAggregate, match=why):
        made()


class Remembering(Count):
    """As a user might write one: it holds what it has seen."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[Any] = []


@pytest.mark.parametrize(("aggregator", "shared"), [(Count(), True), (Remembering(), False)])
def test_bolts_share_the_ready_aggregates_and_each_has_those_that_may_change_for_itself(
    aggregator: Count, shared: bool
) -> None:
    builder = TransactionalTopologyBuilder("t", "s", MemoryTransactionalSpout({}, ["word"], 1))
    counts = TransactionalMap(STORE, "shared", key={"word": str}, value={"count": int})
    persistent_aggregate(builder, "count", "s", counts, {"count": aggregator})
    for bolt in builder.build_topology().bolts:
        own: Any = copy.deepcopy(bolt.obj)
        assert own is not bolt.obj
        assert (own._work.aggregators[0] is aggregator) == shared
        assert own._work.map is counts
