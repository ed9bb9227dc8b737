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
from contextlib import ExitStack
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
from stormline.runtime.tasks.gathered import COMMIT_CALLS, OtherState, pack_gathered, restore_gathered
from stormline.topology.registration import Registration
from stormline.topology.serialization import PLAIN, Registry
from stormline.topology.tuples import TupleSource
from tests.kits.components import LEDGERS, Store, line, numbers


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
        *(dt.date(2026, 1, 2), dt.datetime(2026, 1, 2, tzinfo=dt.timezone.utc), dt.timedelta(1), dt.time(1)),
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
        ((n for n in ()), "a builtins.generator"),
        (lambda: None, "what cannot travel (Can't pickle <function <lambda>"),
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


def test_a_mapped_file_is_refused(tmp_path: Any) -> None:
    with pytest.raises(NotGathered, match=r"holds a numpy\.memmap"):
        sent(numpy.memmap(tmp_path / "m", mode="w+", shape=3))


def test_what_was_deleted_is_not_there_at_the_commit() -> None:
    prepared = Holder(first=True, rows=[])
    restore_gathered(prepared, pack_gathered(Holder(rows=[1]), ["first", "rows", "never"], "", REGISTRY), REGISTRY)
    assert vars(prepared) == {"rows": [1]}


# ---------------------------------------------------------------------------------------- beside


class Beside:
    """An object of the package of the bolts below."""

    def __init__(self) -> None:
        self.count = 0


class Gathering(Store):
    """Changes, as `how` says, what it does not gather."""

    total: ClassVar[int] = 0
    by_key: ClassVar[dict[int, int]] = {}
    connections: ClassVar[dict[Any, object]] = {}
    __slots__ = ("__own", "slot")

    def __init__(self, how: str) -> None:
        super().__init__("t")
        self.how = how

    def prepare(self, conf: Any, context: Any, collector: Any, batch_id: TransactionAttempt) -> None:
        super().prepare(conf, context, collector, batch_id)
        self.seen: dict[int, list[int]] = {0: []}
        self.last = None
        self.beside = Beside()
        self.slot = self.__own = 0
        self.big = list(range(1000))
        self.connections[batch_id, context.this_task_id] = object()

    def execute(self, tup: Tuple) -> None:
        super().execute(tup)
        if self.how == "attribute":
            self.last = tup[1]
        elif self.how == "new attribute":
            self.never_prepared = 1
        elif self.how == "container":
            self.seen[0].append(tup[1])
        elif self.how == "object":
            self.beside.count += 1
        elif self.how == "slot":
            self.slot += 1
        elif self.how == "slot of its own":
            self.__own += 1
        elif self.how == "container that becomes large":
            self.seen.update({key: [] for key in range(1000)})
        elif self.how == "large container that grows":
            self.big.append(1)
        elif self.how == "class attribute":
            type(self).total += 1
        elif self.how == "container of the class":
            self.by_key[tup[1]] = 1
        elif self.how == "what is too large to look at":
            self.big[0] = -1


def run(bolt: Any, config: Any = None) -> None:
    built = line("t", numbers(20), 5, lambda b: b.set_bolt("store", bolt, 2).shuffle_grouping("spout"))
    with InProcessCluster() as cluster:
        cluster.submit_topology("t", config or {}, built).await_drained(20)


@pytest.mark.parametrize(
    ("how", "named", "remedy"),
    [
        ("attribute", "attribute 'last'", "add 'last' to gathers"),
        ("new attribute", "attribute 'never_prepared'", "add 'never_prepared' to gathers"),
        ("container", "attribute 'seen'", "add 'seen' to gathers"),
        ("object", "attribute 'beside'", "add 'beside' to gathers"),
        ("slot", "attribute 'slot'", "add 'slot' to gathers"),
        ("slot of its own", "attribute '_Gathering__own'", "add '_Gathering__own' to gathers"),
        ("container that becomes large", "attribute 'seen'", "add 'seen' to gathers"),
        ("large container that grows", "attribute 'big'", "add 'big' to gathers"),
        ("class attribute", "class attribute Gathering's 'total'", "gather in an attribute of the object"),
        ("container of the class", "class attribute Gathering's 'by_key'", "gather in an attribute of the object"),
    ],
)
def test_what_execute_changes_beside_what_it_gathers_stops_the_topology_by_name(
    how: str, named: str, remedy: str
) -> None:
    with pytest.raises(TopologyFailed) as failed:
        run(Gathering(how))
    expected = f"changes {named} in execute(), and gathers only ['values']: the change would be lost"
    assert expected in str(failed.value)
    assert f"{remedy}, or leave `gathers` out: the bolt is then executed at the commit, in the driver" in str(
        failed.value
    )
    assert LEDGERS["t"].all() == []


@pytest.mark.parametrize("how", ["nothing", "what is too large to look at"])
def test_what_changes_nothing_beside_is_executed_on_the_executors(how: str) -> None:
    run(Gathering(how))
    assert sorted(LEDGERS["t"].all()) == list(range(20))


class NamesOneSo(Store):
    """Has an attribute of its own that is named `gathers`."""

    gathers = None

    def prepare(self, conf: Any, context: Any, collector: Any, batch_id: TransactionAttempt) -> None:
        super().prepare(conf, context, collector, batch_id)
        self.gathers: Any = []
        self.last = None

    def execute(self, tup: Tuple) -> None:
        super().execute(tup)
        self.last = tup[1]


class TakesBack(Store):
    """Says in its class what it gathers, and in `prepare` that it says nothing."""

    def prepare(self, conf: Any, context: Any, collector: Any, batch_id: TransactionAttempt) -> None:
        super().prepare(conf, context, collector, batch_id)
        self.gathers = None


@pytest.mark.parametrize("kind", [NamesOneSo, TakesBack])
def test_what_counts_is_what_was_said_when_the_topology_was_built(kind: Any) -> None:
    run(kind("t"))
    assert sorted(LEDGERS["t"].all()) == list(range(20))


class Shares(Holder):
    """Shares with others of its class what `finish_batch` changes."""

    kept: ClassVar[dict[int, int]] = {}


@pytest.mark.parametrize("beforehand", [True, False])
def test_what_a_commit_changes_in_the_same_process_is_not_blamed_on_execute(beforehand: bool) -> None:
    with ExitStack() as commit:
        if beforehand:
            commit.enter_context(COMMIT_CALLS)
        other = OtherState(Shares(own=Shares.kept), [], alone=True)
        other.before_execute()
        if not beforehand:
            commit.enter_context(COMMIT_CALLS)
        Shares.kept[len(Shares.kept)] = 1
        if not beforehand:
            commit.close()
        other.after_execute("bolt 'b'")
        other.check("bolt 'b'")


class IntoClass(Gathering):
    """Gathers in a dict that all batches share: it is the class's, and no `prepare` makes it."""

    gathers = ("shared",)
    shared: ClassVar[dict[int, int]] = {}

    def execute(self, tup: Tuple) -> None:
        self.shared.update(dict.fromkeys(range(1000), tup[1]))


def test_what_is_gathered_in_the_class_is_told_before_it_is_counted_twice() -> None:
    with pytest.raises(TopologyFailed, match="changes class attribute IntoClass's 'shared'"):
        run(IntoClass(""))
    assert LEDGERS["t"].all() == []


def test_a_bolt_that_reads_what_it_was_given_may_hold_anything() -> None:
    other = OtherState(Holder(lock=threading.Lock(), rows=[[], {1: 2}], me=None), ["rows"], alone=True)
    other.check("bolt 'b'")


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
