"""What a bolt that gathers changes beside what it gathers is found, and so is a second way to what it gathers."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable
from contextlib import ExitStack
from functools import cached_property, partial
from typing import Any, ClassVar

import pytest

from stormline import TransactionAttempt, Tuple
from stormline.errors import NotGathered, TopologyFailed
from stormline.runtime.cluster.in_process_cluster import InProcessCluster
from stormline.runtime.tasks.commit_calls import COMMIT_CALLS
from stormline.runtime.tasks.other_state import OtherState
from tests.kits.components import LEDGERS, Store, line, numbers


class Holder:
    def __init__(self, **attributes: Any) -> None:
        self.__dict__.update(attributes)


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

    @cached_property
    def worked_out(self) -> int:
        return 7

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
        elif self.how == "cached property":
            assert self.worked_out == 7
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
        ("cached property", "attribute 'worked_out'", "read self.worked_out, a cached_property, in prepare(), so that"),
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
    assert remedy in str(failed.value)
    assert ", or leave `gathers` out: the bolt is then executed at the commit, in the driver" in str(failed.value)
    assert LEDGERS["t"].all() == []


@pytest.mark.parametrize("how", ["nothing", "what is too large to look at"])
def test_what_changes_nothing_beside_is_executed_on_the_executors(how: str) -> None:
    run(Gathering(how))
    assert sorted(LEDGERS["t"].all()) == list(range(20))


class NamesOneSo(Store):
    """Has an attribute of its own that is named `gathers`."""

    gathers: Any = None

    def prepare(self, conf: Any, context: Any, collector: Any, batch_id: TransactionAttempt) -> None:
        super().prepare(conf, context, collector, batch_id)
        self.gathers = []
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
        other = OtherState(Shares(own=Shares.kept), [], alone=True, who="bolt 'b'")
        other.before_execute()
        if not beforehand:
            commit.enter_context(COMMIT_CALLS)
        Shares.kept[len(Shares.kept)] = 1
        if not beforehand:
            commit.close()
        other.after_execute()
        other.check()


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
    other = OtherState(Holder(lock=threading.Lock(), rows=[[], {1: 2}], me=None), ["rows"], alone=True, who="bolt 'b'")
    other.check()


def test_what_another_task_changes_between_two_calls_is_not_blamed_on_execute() -> None:
    shared = Beside()
    other = OtherState(Holder(beside=shared, of_all={}, rows=[]), ["rows"], alone=True, who="bolt 'b'")
    shared.count += 1  # as the `prepare` of another task does
    other.before_execute()
    other.after_execute()
    shared.count += 1
    other.check()


def test_what_one_call_of_several_changes_is_found_in_that_call() -> None:
    bolt = Holder(beside=Beside(), rows=[])
    other = OtherState(bolt, ["rows"], alone=True, who="bolt 'b'")
    other.before_execute()
    other.after_execute()
    other.before_execute()
    bolt.beside.count += 1  # type: ignore[attr-defined]
    with pytest.raises(NotGathered, match="bolt 'b' changes attribute 'beside' in execute"):
        other.after_execute()


# ---------------------------------------------------------------------------------------- a second way


def by_closure(rows: list[Any]) -> Callable[[Any], None]:
    def add(row: Any) -> None:
        rows.append(row)

    return add


def by_default(rows: list[Any]) -> Callable[[Any], None]:
    return lambda row, into=rows: into.append(row)  # type: ignore[misc]


@pytest.mark.parametrize(
    "alias",
    [
        lambda rows: rows,
        lambda rows: {"rows": [rows]},
        lambda rows: rows.append,
        lambda rows: partial(list.append, rows),
        lambda rows: {"rows": rows}.values(),
        by_closure,
        by_default,
    ],
    ids=["itself", "in a container", "bound method", "partial", "view", "closure", "default"],
)
def test_a_second_way_to_what_is_gathered_is_refused_since_it_leads_elsewhere_at_the_commit(alias: Any) -> None:
    rows: list[Any] = []
    message = (
        r"bolt 'b' gathers 'rows', and prepare\(\) keeps the same object in 'alias' too: at the commit 'rows' is what "
        r"was gathered, and 'alias' would still be what prepare\(\) made, without it. Use it as self.rows only, make "
    )
    with pytest.raises(NotGathered, match=message):
        OtherState(Holder(rows=rows, alias=alias(rows)), ["rows"], alone=True, who="bolt 'b'")
    OtherState(Holder(rows=rows, alias=alias(rows)), ["rows", "alias"], alone=True, who="bolt 'b'")


def test_what_leads_to_another_container_or_to_the_bolt_itself_is_no_second_way() -> None:
    bolt = Holder(rows=[], number=1, other=[[]], text="rows", none=None, counts=defaultdict(list))
    bolt.me = [bolt, partial(print, bolt)]  # type: ignore[attr-defined]
    bolt.emit = lambda: bolt.rows  # type: ignore[attr-defined]
    OtherState(bolt, ["rows", "none", "number"], alone=True, who="bolt 'b'")


class Aliased(Store):
    """Reads in `finish_batch` by another way than it gathers."""

    def prepare(self, conf: Any, context: Any, collector: Any, batch_id: TransactionAttempt) -> None:
        super().prepare(conf, context, collector, batch_id)
        self.view = self.values


def test_a_bolt_with_a_second_way_stops_the_topology_before_anything_is_committed() -> None:
    with pytest.raises(TopologyFailed, match=r"gathers 'values', and prepare\(\) keeps the same object in 'view' too"):
        run(Aliased("t"))
    assert LEDGERS["t"].all() == []
