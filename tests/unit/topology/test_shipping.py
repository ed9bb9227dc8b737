"""Whether components can be sent to the executors: the error names the component and the attribute."""

from __future__ import annotations

import functools
import queue
import socket
import sqlite3
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import cloudpickle
import pytest

from stormline import ICommitter
from stormline.runtime.cluster.in_process_cluster import InProcessCluster
from stormline.topology.compiler import compile_topology
from stormline.topology.errors import NotShippable
from stormline.topology.topology import Topology
from tests.kits.components import LEDGERS, line, numbers
from tests.kits.declaring import Batch, FirstTask, Spout, builder


class Holds(Batch):
    def __init__(self, **attributes: Any) -> None:
        super().__init__()
        self.__dict__.update(attributes)


class Slotted(Batch):
    __slots__ = ("connection", "unset")

    def __init__(self) -> None:
        super().__init__()
        self.connection = threading.Lock()


class DropsIt(Holds):
    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "connection"}


class RaisesWhenPickled(Batch):
    def __reduce__(self) -> Any:
        raise RuntimeError("not me")


def build(bolt: Any = None, **config: Any) -> None:
    b = builder()
    declarer = b.set_bolt("count", Batch() if bolt is None else bolt).shuffle_grouping("words")
    declarer.add_configurations(config)
    b.build_topology()


def refused(bolt: Any = None, **config: Any) -> str:
    with pytest.raises(NotShippable) as caught:
        build(bolt, **config)
    return str(caught.value)


LOCK = threading.Lock()
cloudpickle.register_pickle_by_value(sys.modules[__name__])  # as it does with what a script defines
LOCK_HINT = "the calls of one task come one after the other, so only threads of its own need a lock"


class Client:
    def __init__(self) -> None:
        self._lock = threading.RLock()
        self.owner = self

    def ask(self) -> None: ...


class Pool:
    def __init__(self) -> None:
        self.clients = [1, {"first": Client()}]


class OrderConnection:
    def __init__(self) -> None:
        self.client = Client()


def sends(lock: Any) -> Any:
    return lambda word: (lock, word)


def has_default(word: str, by: Any = LOCK) -> Any:
    return by, word


@pytest.mark.parametrize(
    ("value", "kind", "remedy"),
    [
        (threading.Lock(), "_thread.lock", f"make it in prepare(), not in __init__(); {LOCK_HINT}"),
        (threading.Condition(), "threading.Condition", f"make it in prepare(), not in __init__(); {LOCK_HINT}"),
        (
            threading.Thread(),
            "threading.Thread",
            "start it in prepare(), not in __init__(); keep in __init__() only what it works on",
        ),
        (
            ThreadPoolExecutor(),
            "concurrent.futures.thread.ThreadPoolExecutor",
            "start it in prepare(), not in __init__(); keep in __init__() only what it works on",
        ),
        (
            queue.Queue(),
            "queue.Queue",
            "make it in prepare(), not in __init__(); a queue reaches no other task, so emit what another one needs",
        ),
        (
            (i for i in "ab"),
            "builtins.generator",
            "make it in prepare(), not in __init__(); "
            "keep in __init__() only what it is made from, or a list of what it gives",
        ),
        (
            OrderConnection(),
            "tests.unit.topology.test_shipping.OrderConnection",
            "open it in prepare(), not in __init__(); "
            "keep in __init__() only what it is opened with, such as an address",
        ),
        (threading.local(), "_thread._local", "make it in prepare(), not in __init__()"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_an_attribute_that_cannot_be_pickled_is_named_with_its_type_and_remedy(
    value: Any, kind: str, remedy: str
) -> None:
    message = refused(Holds(fine=1, connection=value))
    assert message.startswith(
        f"batch bolt 'count' (Holds) cannot be sent to the executors: attribute 'connection' is a {kind}, which cannot"
    )
    assert message.endswith(f"); {remedy}")


def test_open_connections_sockets_and_files_are_opened_in_prepare(tmp_path: Path) -> None:
    connection = "keep in __init__() only what it is opened with, such as an address"
    with (
        closing(sqlite3.connect(":memory:")) as database,
        socket.socket() as reached,
        open(tmp_path / "file", "w") as file,
    ):
        for value, hint in ((database, connection), (reached, connection), (file, "keep its path in __init__()")):
            message = refused(Holds(source=value))
            assert f"attribute 'source' is a {type(value).__module__}.{type(value).__qualname__}, which" in message
            assert message.endswith(f"); open it in prepare(), not in __init__(); {hint}")


@pytest.mark.parametrize(
    ("value", "found", "hint"),
    [
        ([LOCK], "_thread.lock in held[0]", f"; {LOCK_HINT}"),
        ({"a": {"b": (1, LOCK)}}, "_thread.lock in held['a']['b'][1]", f"; {LOCK_HINT}"),
        (Client(), "_thread.RLock in held._lock", ""),
        (Pool(), "_thread.RLock in held.clients[1]['first']._lock", ""),
        (sends(LOCK), "_thread.lock in held's variable lock", f"; {LOCK_HINT}"),
        (sends(sends(LOCK)), "_thread.lock in held's variable lock's variable lock", f"; {LOCK_HINT}"),
        (lambda word: (LOCK, word), "_thread.lock in held's variable LOCK", f"; {LOCK_HINT}"),
        (lambda: lambda: LOCK, "_thread.lock in held's variable LOCK", f"; {LOCK_HINT}"),
        (has_default, "_thread.lock in held's variable by", f"; {LOCK_HINT}"),
        (functools.partial(print, LOCK), "_thread.lock in held.args[0]", ""),
        (Client().ask, "_thread.RLock in held.__self__._lock", ""),
        (sends(Pool()), "_thread.RLock in held's variable lock.clients[1]['first']._lock", ""),
        ([[[[[[[LOCK]]]]]]], "builtins.list in held[0][0][0][0][0]", ""),
    ],
)
def test_what_an_attribute_holds_deeper_is_named_by_its_path(value: Any, found: str, hint: str) -> None:
    message = refused(Holds(fine=1, held=value))
    assert f"(Holds) cannot be sent to the executors: attribute 'held' holds a {found}, which cannot be" in message
    assert message.endswith(f"); make 'held' in prepare(), not in __init__(){hint}")


def test_of_a_very_large_attribute_only_itself_is_named() -> None:
    assert "attribute 'held' is a builtins.list, which cannot be pickled" in refused(Holds(held=[*range(3000), LOCK]))


def test_what_a_class_of_the_script_holds_is_named_with_the_class_or_the_method() -> None:
    class Local(Batch):
        lock = LOCK

    class Uses(Batch):
        def execute(self, tup: Any) -> None:
            with held:
                super().execute(tup)

    held = LOCK
    message = refused(Local())
    assert "(Local) cannot be sent to the executors: class attribute 'lock' is a _thread.lock, which" in message
    assert message.endswith(f"); make it in prepare(), not in the class; {LOCK_HINT}")
    message = refused(Uses())
    assert "method 'execute' holds a _thread.lock in execute's variable held, which cannot be pickled" in message
    assert message.endswith(f"); make it in prepare(), not outside of it; {LOCK_HINT}")


def test_what_is_left_out_when_pickled_is_not_at_fault() -> None:
    assert "attribute 'other' is a _thread.lock" in refused(DropsIt(connection=LOCK, other=threading.Lock()))


def test_an_attribute_in_a_slot_is_named_too() -> None:
    assert "attribute 'connection' is a _thread.lock" in refused(Slotted())


def test_where_no_attribute_is_at_fault_the_cause_is_shown() -> None:
    assert refused(RaisesWhenPickled()) == (
        "batch bolt 'count' (RaisesWhenPickled) cannot be sent to the executors: not me"
    )


def test_a_bolt_that_leaves_its_connection_behind_when_pickled_is_fine() -> None:
    build(DropsIt(connection=threading.Lock()))


def test_lambdas_and_local_classes_can_be_sent() -> None:
    class Local(Holds):
        pass

    build(Local(function=lambda word: word.upper()), mine=lambda: 1)


def test_a_spout_is_named_as_what_it_is() -> None:
    spout = Spout(config={})
    spout.connection = threading.Lock()  # type: ignore[attr-defined]
    message = (
        r"^transactional spout 'words' \(Spout\) cannot be sent .* 'connection' is a _thread.lock, .*\); make it in "
        r"get_emitter\(\) or get_coordinator\(\), or in the __init__\(\) of what they return, not in the spout's __"
    )
    with pytest.raises(NotShippable, match=message):
        builder(spout).build_topology()


class InDriver(Holds, ICommitter):
    """Uses a lock of its module, which holds what cannot be sent."""

    gathers: Any = None

    def finish_batch(self) -> None:
        with LOCK:
            LEDGERS["t"].trail.append(self.attempt)

    def prepare(self, conf: Any, context: Any, collector: Any, batch_id: Any) -> None:
        self.attempt = batch_id


def line_of(bolt: Any, **own: Any) -> Topology:
    return line("t", numbers(4), 2, lambda b: b.set_bolt("x", bolt).global_grouping("spout").add_configurations(own))


def test_what_lives_in_the_driver_may_use_what_cannot_be_sent() -> None:
    topology = line_of(InDriver())
    cloudpickle.dumps(compile_topology(topology).for_executors())
    with InProcessCluster() as cluster:
        cluster.submit(topology).await_drained(20)
    assert len(LEDGERS["t"].trail) == 1


def test_what_lives_in_the_driver_must_be_such_that_it_can_be_copied() -> None:
    with pytest.raises(NotShippable) as caught:
        line_of(InDriver(connection=threading.Lock()))
    assert str(caught.value).startswith(
        "batch bolt 'x' (InDriver) cannot be copied for each batch: attribute 'connection' is a _thread.lock, which "
        "cannot be copied (cannot pickle '_thread.lock' object); make it in prepare(), not in __init__(); "
    )
    with pytest.raises(
        NotShippable, match=r"'pool' holds a _thread.RLock in pool.clients\[1\]\['first'\]._lock, which"
    ):
        line_of(InDriver(pool=Pool()))


def test_a_spout_whose_emitters_live_in_the_driver_may_hold_anything() -> None:
    spout = Spout(config={})
    spout.emits_on_executors, spout.connection = False, threading.Lock()  # type: ignore[attr-defined]
    b = builder(spout)
    b.set_bolt("count", Batch()).shuffle_grouping("words")
    cloudpickle.dumps(compile_topology(b.build_topology()).for_executors())


def test_a_bolt_that_commits_on_the_executors_must_be_such_that_it_can_be_sent() -> None:
    placed = {"topology.commit.placement": "executors"}
    message = (
        r"^batch bolt 'x' \(InDriver\) cannot be sent to the executors: method 'finish_batch' holds a _thread.lock in "
        r"finish_batch's variable LOCK, which cannot be pickled"
    )
    with pytest.raises(NotShippable, match=message):
        compile_topology(line_of(InDriver()), placed)
    with pytest.raises(NotShippable, match=message):
        compile_topology(line_of(InDriver(), **placed))


def test_a_custom_grouping_is_named_by_bolt_and_source() -> None:
    class Locked(FirstTask):
        def __init__(self) -> None:
            self.lock = threading.Lock()

        def choose_tasks(self, task_id: int, values: Sequence[Any]) -> Sequence[int]:
            return []

    b = builder()
    b.set_bolt("count", Batch()).custom_grouping("words", Locked())
    with pytest.raises(NotShippable) as caught:
        b.build_topology()
    assert str(caught.value).startswith(
        "the custom grouping of 'count' on words (Locked) cannot be sent to the executors: attribute 'lock' is a"
    )
    assert str(caught.value).endswith(f"); make it in prepare(), not in __init__(); {LOCK_HINT}")


def test_a_setting_that_cannot_be_pickled_is_named_by_its_key() -> None:
    message = refused(fine=1, mine=threading.Lock())
    assert message.startswith(
        "configuration of batch bolt 'count' cannot be sent to the executors: 'mine' is a _thread.lock, which cannot be"
    )
    assert message.endswith("put into the configuration what it is made from, and make it in prepare()")
    assert "'mine' holds a _thread.RLock in mine['a']._lock, which cannot" in refused(mine={"a": Client()})


def test_a_setting_of_a_spout_is_made_where_a_spout_makes_things() -> None:
    class Configured(Spout):
        def get_component_configuration(self) -> Any:
            return {"mine": threading.Lock()}

    with pytest.raises(
        NotShippable, match=r"configuration of transactional spout .*make it in get_emitter\(\) or get_"
    ):
        builder(Configured()).build_topology()
