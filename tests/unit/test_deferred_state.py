"""What of a bolt's state may travel to its commit as a copy, and what may not."""

from __future__ import annotations

import enum
import logging
import re
import signal
import threading
from collections import Counter, defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, ClassVar

import numpy
import pytest

from stormline import (
    BaseTransactionalBolt,
    Fields,
    ICommitter,
    ICommitterTransactionalSpout,
    ITransactionalSpout,
    MemoryTransactionalSpout,
    TransactionalTopologyBuilder,
    TransactionAttempt,
    Tuple,
    compile_topology,
)
from stormline.runtime import deferred_state
from stormline.runtime.deferred_state import CannotTravel, pack_state, unpack_state
from stormline.runtime.errors import TopologyFailed
from stormline.runtime.in_process_cluster import InProcessCluster
from stormline.runtime.module_objects import held_elsewhere
from stormline.runtime.task_environment import TaskEnvironment
from tests import kit

log = logging.getLogger(__name__)
NAMES = ("a", ("b", 1))
KINDS = frozenset(["a", ("b", 1)])
RATE = numpy.int64(3)
DATABASE: defaultdict[str, int] = defaultdict(int)
UNSET = object()


class Buffer:
    """Its rows are left out when it is pickled."""

    def __init__(self) -> None:
        self.rows: list[int] = []

    def __getstate__(self) -> dict[str, Any]:
        return {}


class Holder:
    shared: ClassVar[list[int]] = []

    def __init__(self, what: Any) -> None:
        self.what = what

    def method(self) -> Any:
        return DATABASE


class Singleton:
    instance: ClassVar[Any] = None


Singleton.instance = Singleton()


DATABASES: dict[str, Any] = {"words": {}}
PAIR: tuple[dict[int, Any], int] = ({}, 1)
ROWS: dict[int, Any] = {}
LISTS: list[Any] = []


class Repository:
    def __init__(self, rows: Any) -> None:
        self.rows = rows


class Slotted(BaseTransactionalBolt, ICommitter):
    __slots__ = ("rows",)

    def execute(self, tup: Tuple) -> None: ...

    def finish_batch(self) -> None: ...


PLAIN = Repository({})


@dataclass(frozen=True)
class Frozen:
    rows: Any


FROZEN = Frozen({})
CONSTANT = Frozen((1, "a", frozenset([2])))


class Held(enum.Enum):
    ROWS = Frozen({})


@lru_cache
def opened() -> dict[int, Any]:
    return {}


def _closing_over() -> Callable[[], dict[int, Any]]:
    rows: dict[int, Any] = {}
    return lambda: rows


closed_over = _closing_over()


def attributed() -> Any:
    rows: dict[int, Any] = vars(attributed).setdefault("rows", {})
    return rows


def save(rows: dict[int, Any], key: int, values: Any) -> None:
    rows[key] = values


def in_array() -> Any:
    array = numpy.empty(1, object)
    array[0] = ROWS
    return array


def own_in_two_ways() -> Any:
    rows: list[Any] = []
    return [rows, rows.append, Repository(rows)]


def raised() -> Any:
    try:
        raise ValueError("kept")
    except ValueError as error:
        return error


def made_late() -> Any:
    return DATABASES.setdefault("late", {})


OF_ITS_MODULE: list[tuple[str, Callable[[], Any], Callable[[Any], Any]]] = [
    ("itself", lambda: ROWS, lambda held: held),
    ("in a list", lambda: [ROWS], lambda held: held[0]),
    ("in a tuple", lambda: (ROWS, 1), lambda held: held[0]),
    ("in a dict of lists", lambda: {"a": [[ROWS]]}, lambda held: held["a"][0][0]),
    ("in a helper", lambda: Repository(ROWS), lambda held: held.rows),
    ("in a helper's helper", lambda: Repository([Repository(ROWS)]), lambda held: held.rows[0].rows),
    ("an entry", lambda: DATABASES["words"], lambda held: held),
    ("an entry made in prepare", made_late, lambda held: held),
    ("an attribute", lambda: PLAIN.rows, lambda held: held),
    ("a frozen dataclass", lambda: FROZEN, lambda held: held.rows),
    ("a tuple of the module", lambda: PAIR, lambda held: held[0]),
    ("a member's value", lambda: Held.ROWS.value, lambda held: held.rows),
    ("what a function caches", opened, lambda held: held),
    ("what a function closes over", closed_over, lambda held: held),
    ("what a function keeps", attributed, lambda held: held),
    ("what a partial holds", lambda: partial(save, ROWS), lambda held: held.args[0]),
    ("in an array", in_array, lambda held: held[0]),
    ("of a module that its module names", lambda: kit.LEDGERS["mine"].values, lambda held: held),
]
BY_NAME = {name: (take, rows_of) for name, take, rows_of in OF_ITS_MODULE}
OWN: dict[str, Callable[[], Any]] = {
    "a counter": lambda: Counter("aab"),
    "a regular expression": lambda: re.compile("a"),
    "texts": lambda: NAMES,
    "a frozenset": lambda: KINDS,
    "a constant": lambda: CONSTANT,
    "a member": lambda: signal.SIGINT,
    "a function": lambda: save,
    "a class": lambda: Repository,
    "a logger": lambda: log,
    "a number of numpy's": lambda: RATE,
    "a dtype": lambda: RATE.dtype,
    "a partial": lambda: partial(int, base=2),
    "rows": lambda: [("a", [1]), ("b", [2])],
    "its own in two ways": own_in_two_ways,
    "a helper": lambda: Repository({"a": [1]}),
    "an exception": raised,
}


class Takes(BaseTransactionalBolt, ICommitter):
    """Takes in `prepare` what a function gives, and tells in which threads it was prepared and finished."""

    finished: ClassVar[list[tuple[int, bool]]] = []

    def __init__(self, name: str) -> None:
        self.name = name

    def prepare(self, conf: Any, context: Any, collector: Any, batch_id: TransactionAttempt) -> None:
        self.conf, self.context, self.attempt, self.values = conf, context, batch_id, list[Any]()
        self.thread = threading.get_ident()
        self.take()

    def take(self) -> None:
        self.held = BY_NAME[self.name][0]()

    def execute(self, tup: Tuple) -> None:
        self.values.append(tup[1])

    def finish_batch(self) -> None:
        self.finished.append((self.attempt.transaction_id, threading.get_ident() != self.thread))
        self.rows()[self.attempt.transaction_id] = self.values

    def rows(self) -> Any:
        return BY_NAME[self.name][1](self.held)


class TakesItsOwn(Takes):
    def take(self) -> None:
        self.held = OWN[self.name]()

    def rows(self) -> Any:
        return ROWS


class Appends(Takes):
    def take(self) -> None:
        self.held = LISTS.append

    def finish_batch(self) -> None:
        self.held((self.attempt.transaction_id, self.values))


class KeepsInItsContext(TakesItsOwn):
    def take(self) -> None:
        self.context.set_task_data(f"values {self.attempt}", [])

    def execute(self, tup: Tuple) -> None:
        self.context.get_task_data(f"values {self.attempt}").append(tup[1])

    def finish_batch(self) -> None:
        self.values = self.context.get_task_data(f"values {self.attempt}")
        super().finish_batch()


class KeepsInItsConf(TakesItsOwn):
    def take(self) -> None:
        self.conf.setdefault("values", {})[self.attempt] = []

    def execute(self, tup: Tuple) -> None:
        self.conf["values"][self.attempt].append(tup[1])

    def finish_batch(self) -> None:
        self.values = self.conf["values"][self.attempt]
        super().finish_batch()


class KeepsWithinItsConf(KeepsInItsConf):
    def take(self) -> None:
        self.conf["values"][self.attempt] = []


EFFECTS = {1: [0, 1], 2: [2, 3], 3: [4, 5]}


def drained(bolt: Any, spout: Any = None, config: Any = None) -> None:
    Takes.finished.clear()
    for rows in [ROWS, LISTS, *(take() for _, take, _ in OF_ITS_MODULE if isinstance(take(), dict))]:
        rows.clear()
    DATABASES.pop("late")
    builder = TransactionalTopologyBuilder("t", "s", spout or MemoryTransactionalSpout({0: list(range(6))}, ["v"], 2))
    builder.set_bolt("sink", bolt).global_grouping("s")
    with InProcessCluster() as cluster:
        cluster.submit_topology("t", config or {}, builder.build_topology()).await_drained(20)


@pytest.mark.parametrize("name", BY_NAME)
def test_what_a_committer_changes_of_its_module_is_changed_there_however_it_holds_it(name: str) -> None:
    take, rows_of = BY_NAME[name]
    drained(Takes(name))
    assert {txid: rows_of(take())[txid] for txid in EFFECTS} == EFFECTS
    assert Takes.finished == [(1, False), (2, False), (3, False)], "in the thread in which it was prepared"
    with pytest.raises(CannotTravel, match=r"(it holds|its 'what' is) an? \w+ of its module or class"):
        pack_state(Holder(take()))


def test_what_a_committer_appends_by_a_bound_method_is_appended_there() -> None:
    drained(Appends(""))
    assert list(EFFECTS.items()) == LISTS


@pytest.mark.parametrize("kind", [KeepsInItsContext, KeepsInItsConf, KeepsWithinItsConf])
def test_what_a_committer_keeps_in_its_context_or_conf_is_there_when_it_finishes(kind: type[Takes]) -> None:
    drained(kind(""), config={"values": {}} if kind is KeepsWithinItsConf else None)
    assert ROWS == EFFECTS
    assert Takes.finished == [(1, False), (2, False), (3, False)]


def test_a_context_or_conf_that_keeps_something_cannot_travel() -> None:
    plan = compile_topology(kit.line("t", {}, 1))
    env = TaskEnvironment(plan, 1)
    conf, context = env.conf("spout"), env.context("spout", 1)
    holding = Holder([conf, context])
    pack_state(holding)
    context.set_task_data("rows", [])
    with pytest.raises(CannotTravel, match=r"holds a context that keeps data of its task, 'rows', in this process"):
        pack_state(holding)
    conf["mine"] = 1
    with pytest.raises(CannotTravel, match=r"it has changed its conf, and finds that of another process"):
        pack_state(holding)


@pytest.mark.parametrize("name", OWN)
def test_a_committer_that_holds_its_own_and_constants_executes_ahead_of_its_commit(name: str) -> None:
    drained(TakesItsOwn(name))
    assert ROWS == EFFECTS
    assert Takes.finished == [(1, True), (2, True), (3, True)]
    pack_state(Holder(OWN[name]()))


class Emitter:
    def __init__(self) -> None:
        self.repository = Repository(ROWS)

    def emit_batch(self, attempt: Any, metadata: Any, collector: Any) -> None:
        collector.emit([attempt, metadata])

    def commit(self, attempt: TransactionAttempt) -> None:
        self.repository.rows[attempt.transaction_id] = 1

    def cleanup_before(self, txid: int) -> None: ...

    def close(self) -> None: ...


class LeavesItOut(Emitter):
    """What it leaves out is not copied, so it may be of the module."""

    def __getstate__(self) -> dict[str, Any]:
        return {}

    def commit(self, attempt: TransactionAttempt) -> None:
        ROWS[attempt.transaction_id] = 1


class CommittedSpout(ITransactionalSpout, ICommitterTransactionalSpout):
    def __init__(self, emitter: Callable[[], Any]) -> None:
        self.emitter = emitter
        self.ready = 3

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("tx", "v"))

    def get_coordinator(self, conf: Any, context: Any) -> Any:
        return self

    def get_emitter(self, conf: Any, context: Any) -> Any:
        return self.emitter()

    def is_ready(self) -> bool:
        self.ready -= 1
        return self.ready >= 0

    def initialize_transaction(self, txid: int, previous: Any) -> Any:
        return txid

    def close(self) -> None: ...


def test_an_emitter_whose_helper_holds_an_object_of_its_module_is_not_copied_without_a_word() -> None:
    with pytest.raises(TopologyFailed, match=r"(?s)EmitterCannotTravel.* it holds a dict of its module or class"):
        drained(TakesItsOwn("a counter"), CommittedSpout(Emitter))
    assert ROWS == {}
    drained(TakesItsOwn("a counter"), CommittedSpout(LeavesItOut))
    assert sorted(ROWS) == [1, 2, 3]


def test_with_slots_too_a_bolts_own_travels_and_its_modules_does_not() -> None:
    bolt = Slotted()
    bolt.rows = [1, [2]]
    other = Slotted()
    unpack_state(other, pack_state(bolt), {})
    assert other.rows == [1, [2]]
    assert held_elsewhere((bolt,)) == []
    bolt.rows = [ROWS]
    with pytest.raises(CannotTravel, match=r"it holds a dict of its module or class"):
        pack_state(bolt)


def test_only_what_others_hold_too_is_looked_for_in_modules(monkeypatch: pytest.MonkeyPatch) -> None:
    rows: list[Any] = [1]
    own = Holder([[1, [2]], {"a": Counter("ab")}, deque([[1]]), Frozen([3]), {4}])
    own.itself = own
    own.again = own.what[0]
    assert held_elsewhere((own,)) == []
    own.rows = Repository(rows)
    assert held_elsewhere((own,)) == [rows]
    pack_state(own)
    monkeypatch.setattr(deferred_state, "OBJECTS_MAX", 10)
    with pytest.raises(CannotTravel, match=r"its modules have over 10 objects: too many to look for it there"):
        pack_state(own)
    del own.rows
    pack_state(own)


@pytest.mark.parametrize(
    ("what", "message"),
    [
        (lambda: DATABASE, "its 'what' is a defaultdict of its module or class"),
        (lambda: UNSET, "its 'what' is a object of its module or class"),
        (lambda: Holder.shared, "its 'what' is a list of its module or class"),
        (lambda: kit.LEDGERS, r"its 'what' is a \w+ of its module or class"),
        (lambda: [Singleton.instance], "it holds a Singleton of its module or class"),
        (lambda: [Buffer()], "it holds a Buffer with a __getstate__ of its own"),
    ],
)
def test_state_of_which_a_copy_will_not_do_cannot_travel(what: Callable[[], Any], message: str) -> None:
    with pytest.raises(CannotTravel, match=message):
        pack_state(Holder(what()))


@pytest.mark.parametrize(
    "make",
    [
        *(lambda: re.compile("a"), lambda: kit.Fault("after"), lambda: (1, 2), lambda: log, lambda: signal.SIGINT),
        *(lambda: deque([1]), lambda: Counter("aab"), lambda: Holder),
    ],
)
def test_state_of_which_a_copy_does_travels(make: Callable[[], Any]) -> None:
    what = make()
    other = Holder(None)
    unpack_state(other, pack_state(Holder(what)), {})
    assert other.what == what
