"""A row goes to the same task by columns as by itself, and with the same values: for whatever columns hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cache
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stormline import (
    Fields,
    MemoryTransactionalSpout,
    TransactionalTopologyBuilder,
    TransactionAttempt,
    compile_topology,
)
from stormline.runtime.tasks.task_environment import TaskEnvironment
from stormline.runtime.tuples.canonical_form import stable_hashes
from stormline.runtime.tuples.columns import Columns, columns_of
from stormline.runtime.tuples.partitioning import Split, direct
from stormline.topology.errors import ColumnCannotTravel, DirectStreamMismatch, InvalidChoice
from stormline.topology.grouping import Grouping, GroupingKind
from stormline.topology.plan import Plan
from stormline.topology.serialization import PLAIN
from stormline.topology.tuples import TupleSource
from tests.unit.runtime.tuples.test_partitioning import Sink
from tests.unit.topology.test_columns import SCALARS, same

ATTEMPT = TransactionAttempt(3, 1)
SOURCE = TupleSource("s", "default", 1, Fields("tx", "word", "n"))
TASKS = (2, 3, 4)


def splitter(grouping: Grouping, seed: int = 0) -> Split:
    env = TaskEnvironment(plan_of(grouping), 1)  # its own, as each remembers where keys go
    return env.splitter(env.plan.edges[0], 1, seed)


@cache
def plan_of(grouping: Grouping) -> Plan:
    builder = TransactionalTopologyBuilder("t", "s", MemoryTransactionalSpout({}, ["word", "n"], 1))
    builder.set_bolt("sink", Sink(), len(TASKS)).grouping("s", grouping)
    return compile_topology(builder.build_topology())


class Odd:
    """Chooses by the value's text; several tasks, or none."""

    def prepare(self, context: Any, stream: Any, target_tasks: Sequence[int]) -> None:
        self.tasks = target_tasks

    def choose_tasks(self, task_id: int, values: Sequence[Any]) -> Sequence[int]:
        assert values[0] == ATTEMPT
        return self.tasks[: len(str(values[1])) % 3] if values[1] != "bad" else [99]


EXACT = {
    "one field": Grouping(GroupingKind.FIELDS, ("word",)),
    "two fields": Grouping(GroupingKind.FIELDS, ("n", "word")),
    "the attempt": Grouping(GroupingKind.FIELDS, ("tx",)),
    "the attempt and a field": Grouping(GroupingKind.FIELDS, ("tx", "n")),
    "three fields": Grouping(GroupingKind.FIELDS, ("n", "tx", "word")),
    "partial key": Grouping(GroupingKind.PARTIAL_KEY, ("word",)),
    "partial key of two": Grouping(GroupingKind.PARTIAL_KEY, ("word", "n")),
    "global": Grouping(GroupingKind.GLOBAL),
    "all": Grouping(GroupingKind.ALL),
    "custom": Grouping(GroupingKind.CUSTOM, custom=Odd()),
}


def values_strategy(n: int) -> st.SearchStrategy[list[Any]]:
    scalars = [*SCALARS, st.sampled_from(["cat", "dog"]), st.integers(0, 2), st.sampled_from([0.0, -0.0, 1.0, 0.5])]
    nested = [st.lists(st.integers(0, 1), max_size=2), st.fixed_dictionaries({"a": st.integers(0, 1)})]
    return st.one_of(*(st.lists(st.none() | kind, min_size=n, max_size=n) for kind in scalars + nested))


rows_strategy = st.integers(1, 30).flatmap(lambda n: st.tuples(values_strategy(n), values_strategy(n)))


def taken(split: Split, tuples: Any) -> dict[int, list[list[Any]]]:
    return {task: share.rows() if isinstance(share, Columns) else share for task, share in split(tuples)}


@pytest.mark.parametrize("how", EXACT)
@settings(max_examples=40, deadline=None)
@given(rows_strategy)
def test_rows_go_where_they_would_go_as_tuples(how: str, columns: tuple[list[Any], list[Any]]) -> None:
    rows = [[ATTEMPT, *values] for values in zip(*columns, strict=True)]
    by_row, by_column = splitter(EXACT[how]), splitter(EXACT[how])
    for _ in range(2):  # a partial key goes by what went before
        expected = taken(by_row, [[*row] for row in rows])
        found = taken(by_column, columns_of([[*row] for row in rows], SOURCE))
        assert found.keys() == expected.keys()
        assert all(same(found[task], share) for task, share in expected.items())


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(1, 10), max_size=8), st.integers(0, 5))
def test_a_shuffle_by_columns_is_as_even_as_by_rows(sizes: list[int], seed: int) -> None:
    by_row, by_column = (splitter(Grouping(GroupingKind.SHUFFLE), seed) for _ in range(2))
    for size in sizes:
        rows = [[ATTEMPT, "w", n] for n in range(size)]
        expected = Counter({task: len(share) for task, share in by_row([[*row] for row in rows])})
        shares = list(by_column(columns_of([[*row] for row in rows], SOURCE)))
        assert Counter({task: len(share) for task, share in shares}) == expected
        parts = [share.rows() for _, share in shares if isinstance(share, Columns)]
        assert [row for part in parts for row in part] == rows


KEYS = [
    pa.array(["cat", None, "dog", "cat"]).dictionary_encode(),
    pa.DictionaryArray.from_arrays(pa.array([0, 1, None, 2], pa.int8()), pa.array(["cat", "cat", None])),
    pa.array([1, None, 2, 1], pa.int8()),
    pa.array([1, None, 2, 1], pa.uint64()),
    pa.array([1.5, None, 2, 1], pa.float32()),
    pa.array([1.5, None, 2, 1], pa.float16()),
    pa.array(["a", None, "b", "a"], pa.large_string()),
    pa.array([b"ab", None, b"cd", b"ab"], pa.binary(2)),
    pa.array([1, None, 2000, 1000], pa.timestamp("ns"))
    .cast(pa.timestamp("ns", "UTC"))
    .filter([False, True, True, True]),
    pa.nulls(4),
    pa.array([[1], None, [2], [1]], pa.list_(pa.int8(), 1)),
]


@pytest.mark.parametrize("key", KEYS, ids=lambda key: str(key.type))
def test_types_that_only_arrow_has_go_where_their_values_would_go(key: Any) -> None:
    for how in ("one field", "two fields", "partial key"):
        batch = pa.RecordBatch.from_arrays([key, pa.array(range(len(key)))], names=["word", "n"])
        columns = Columns(ATTEMPT, batch)
        found = taken(splitter(EXACT[how]), columns)
        assert found == taken(splitter(EXACT[how]), columns.rows())


def test_all_that_is_no_number_goes_to_one_task() -> None:
    import struct

    (other,) = struct.unpack("<d", struct.pack("<Q", 0xFFF8000000000001))
    assert stable_hashes([other], PLAIN) == stable_hashes([float("nan")], PLAIN)


def test_many_keys_of_many_fields_do_not_outgrow_the_numbers_that_stand_for_them() -> None:
    from stormline.runtime.tuples.column_partitioning import keyed

    names = [f"f{i}" for i in range(12)]
    batch = pa.RecordBatch.from_arrays([pa.array(range(3000))] * 12, names=names)
    keys, codes = keyed(Columns(ATTEMPT, batch), range(1, 13))
    assert [keys[code] for code in codes.to_pylist()] == [(n,) * 12 for n in range(3000)]


def test_a_wrong_choice_and_a_direct_stream_are_refused() -> None:
    columns = columns_of([[ATTEMPT, "bad", 1]], SOURCE)
    with pytest.raises(InvalidChoice, match=r"chose task 99; the tasks of 'sink' are \[2, 3, 4\]"):
        list(splitter(EXACT["custom"])(columns))
    with pytest.raises(DirectStreamMismatch, match="needs emit_direct"):
        direct(columns)


@pytest.mark.parametrize("how", ["one field", "two fields", "partial key", "custom"])
def test_a_key_that_no_tuple_can_hold_names_its_column(how: str) -> None:
    batch = pa.record_batch({"word": pa.array([1], pa.timestamp("ns")), "n": [1]})
    message = r"column 'word' of a record batch: type timestamp\[ns\] holds what no value of Python can"
    with pytest.raises(ColumnCannotTravel, match=message):
        list(splitter(EXACT[how])(Columns(ATTEMPT, batch)))
