"""What a bolt gathers travels as plain data, and what it changes beside that is told."""

from __future__ import annotations

import array
import datetime as dt
import decimal
import enum
import fractions
import re
import sqlite3
import threading
import uuid
from collections import Counter, OrderedDict, defaultdict, deque
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy
import pandas
import pyarrow as pa
import pytest

from stormline import (
    BaseTransactionalBolt,
    Config,
    Fields,
    ICommitter,
    MemoryTransactionalSpout,
    TransactionalTopologyBuilder,
    TransactionAttempt,
    Tuple,
    Values,
)
from stormline.errors import NotGathered, TopologyFailed
from stormline.runtime.cluster.in_process_cluster import InProcessCluster
from stormline.runtime.tasks.gathered import pack_gathered, restore_gathered
from stormline.topology.registration import Registration
from stormline.topology.serialization import PLAIN, Registry
from stormline.topology.tuples import TupleSource
from tests.kits.components import LEDGERS, line, numbers


class Colour(enum.Enum):
    RED = 1


@dataclass
class Point:
    x: int
    y: int


class Pair(NamedTuple):
    left: int
    right: int


class LeavesOut:
    """Its rows are left out when it is pickled."""

    def __init__(self) -> None:
        self.rows = [1]

    def __getstate__(self) -> dict[str, Any]:
        return {}


class Words(dict[str, int]):
    """A dict of the user's own."""


class Holder:
    def __init__(self, **attributes: Any) -> None:
        self.__dict__.update(attributes)


REGISTRY = Registry([Registration.of(Point), Registration.of(Pair)])


def sent(value: Any, registry: Registry = REGISTRY) -> Any:
    """Return what a value is after its travel."""
    other = Holder()
    restore_gathered(other, pack_gathered(Holder(what=value), ["what"], "bolt 'b', task 3,", registry), registry)
    return other.what  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "value",
    [
        *(None, True, 1 << 200, 1.5, 2j, "text", b"bytes", bytearray(b"b"), range(3), ...),
        *([1, (2, [3])], {"a": {1: {2}}}, frozenset([1]), Counter("aab"), OrderedDict(a=1), deque([1], maxlen=3)),
        *(dt.date(2026, 1, 2), dt.datetime(2026, 1, 2, tzinfo=dt.UTC), dt.timedelta(1), dt.time(1)),
        *(decimal.Decimal("1.10"), fractions.Fraction(1, 3), uuid.UUID(int=5), re.compile("a+"), array.array("d", [1])),
        *(TransactionAttempt(1, 2), Values(1, "a"), Fields("a", "b"), Colour.RED, Point(1, 2), [Pair(1, 2)]),
        numpy.int64(3),
    ],
    ids=repr,
)
def test_plain_data_is_the_same_after_its_travel_in_value_and_type(value: Any) -> None:
    again = sent(value)
    assert again == value
    assert type(again) is type(value)


def test_arrays_and_tables_are_plain_data() -> None:
    assert sent(numpy.arange(3)).tolist() == [0, 1, 2]
    assert sent({"f": pandas.DataFrame({"a": [1, 2]})})["f"]["a"].tolist() == [1, 2]
    assert sent([pa.record_batch({"a": [1]})])[0].to_pydict() == {"a": [1]}


def test_a_default_factory_goes_along() -> None:
    counts = sent(defaultdict(list, a=[1]))
    counts["b"].append(2)
    assert counts == {"a": [1], "b": [2]}


def test_tuples_that_were_kept_are_tuples() -> None:
    tup = Tuple([TransactionAttempt(1, 1), "a"], TupleSource("words", "default", 1, Fields("tx", "word")))
    assert sent([tup])[0]["word"] == "a"


def test_two_attributes_that_share_an_object_share_it_afterwards() -> None:
    shared = [1]
    other = Holder()
    packed = pack_gathered(Holder(a=shared, b=[shared]), ["a", "b", "c"], "bolt 'b'", PLAIN)
    restore_gathered(other, packed, PLAIN)
    assert other.__dict__ == {"a": [1], "b": [[1]]}, "and what was never set stays so"
    assert other.a is other.b[0]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("value", "what"),
    [
        (LeavesOut(), "a tests.unit.runtime.tasks.test_gathered.LeavesOut"),
        ([LeavesOut()], "a tests.unit.runtime.tasks.test_gathered.LeavesOut"),
        (Words(a=1), "a tests.unit.runtime.tasks.test_gathered.Words"),
        (sqlite3.connect(":memory:", check_same_thread=False), "a sqlite3.Connection"),
        (threading.Lock(), "a _thread.lock"),
        (iter([1]), "a builtins.list_iterator"),
        ((n for n in "a"), "a builtins.generator"),
        (type("Local", (), {}), "what cannot travel (Can't pickle <class "),
        (Point(1, 2), "a tests.unit.runtime.tasks.test_gathered.Point"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_no_plain_data_is_refused_with_attribute_and_remedy(value: Any, what: str) -> None:
    with pytest.raises(NotGathered) as refused:
        sent({"key": value}, PLAIN)
    assert str(refused.value).startswith(f"bolt 'b', task 3, gathers 'what', which holds {what}")
    assert "registered by register_serialization(). Make 'what' of these, or leave `gathers` out" in str(refused.value)
    if isinstance(value, sqlite3.Connection):
        value.close()


def module_level() -> int:
    return 7


def test_a_function_travels_by_its_name() -> None:
    counts = sent(defaultdict(module_level))
    assert counts["a"] == 7


def test_a_function_without_a_name_is_refused_with_what_to_take_in_its_place() -> None:
    def local() -> int:
        return 7

    for function, name in ((lambda: 7, "<lambda>"), (local, "local")):
        with pytest.raises(NotGathered) as refused:
            sent(defaultdict(function, a=1))
        assert f"{name}, a function that nothing can find by its name; as what a defaultdict makes of a " in str(
            refused.value
        )
        assert "take int, list or a function of the module. Make 'what' of these, or leave" in str(refused.value)


def test_a_mapped_file_is_refused(tmp_path: Any) -> None:
    with pytest.raises(NotGathered, match=r"holds a numpy\.memmap"):
        sent(numpy.memmap(tmp_path / "m", mode="w+", shape=3))


def test_what_was_deleted_is_not_there_at_the_commit() -> None:
    prepared = Holder(first=True, rows=[])
    restore_gathered(prepared, pack_gathered(Holder(rows=[1]), ["first", "rows", "never"], "", REGISTRY), REGISTRY)
    assert vars(prepared) == {"rows": [1]}


class Registered(BaseTransactionalBolt, ICommitter):
    """Gathers objects of a class of its own."""

    gathers = ("points",)

    def prepare(self, conf: Any, context: Any, collector: Any, batch_id: TransactionAttempt) -> None:
        self.txid = batch_id.transaction_id
        self.points: dict[int, Point] = {}

    def execute(self, tup: Tuple) -> None:
        self.points[tup[1]] = Point(tup[1], self.txid)

    def finish_batch(self) -> None:
        LEDGERS["t"].trail += [point.x for point in self.points.values()]

    def declare_output_fields(self, declarer: Any) -> None: ...


def run(bolt: Any, config: Any = None) -> None:
    built = line("t", numbers(20), 5, lambda b: b.set_bolt("store", bolt, 2).shuffle_grouping("spout"))
    with InProcessCluster() as cluster:
        cluster.submit_topology("t", config or {}, built).await_drained(20)


def test_registered_classes_are_gathered() -> None:
    config = Config()
    config.register_serialization(Point)
    run(Registered(), config)
    assert sorted(LEDGERS["t"].trail) == list(range(20))


def test_a_class_that_was_not_registered_stops_the_topology_before_anything_is_committed() -> None:
    with pytest.raises(TopologyFailed, match=r"bolt 'store' \(Registered\), task \d, gathers 'points', which holds a "):
        run(Registered())
    assert LEDGERS["t"].trail == []


class Announces(BaseTransactionalBolt, ICommitter):
    """Emits in each of its calls."""

    gathers = ("rows",)

    def prepare(self, conf: Any, context: Any, collector: Any, batch_id: Any) -> None:
        self.rows = 0
        self._emit = lambda word: collector.emit([batch_id, word])
        self._emit("prepare")

    def execute(self, tup: Any) -> None:
        self.rows += 1
        self._emit("execute")

    def finish_batch(self) -> None:
        self._emit(f"finish {self.rows}")

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("attempt", "word"))


class Hears(BaseTransactionalBolt):
    heard: ClassVar[list[str]] = []

    def execute(self, tup: Any) -> None:
        self.heard.append(tup[1])

    def finish_batch(self) -> None:
        pass


def test_what_a_bolt_that_gathers_emits_reaches_the_next_one_once_though_it_is_prepared_twice() -> None:
    builder = TransactionalTopologyBuilder("t", "spout", MemoryTransactionalSpout({0: [[1], [2]]}, ["value"], 2))
    builder.set_bolt("announces", Announces()).global_grouping("spout")
    builder.set_bolt("hears", Hears()).global_grouping("announces")
    Hears.heard.clear()
    with InProcessCluster() as cluster:
        cluster.submit_topology("t", {}, builder.build_topology()).await_committed(1)
    assert Hears.heard == ["prepare", "execute", "execute", "finish 2"]
