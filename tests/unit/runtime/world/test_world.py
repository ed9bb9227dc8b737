"""Nothing that waits, or draws by chance, escapes the simulation: the world is handed in, and there is no other."""

from __future__ import annotations

import ast
import dataclasses
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from stormline.runtime.world.world import REAL
from tests.simulation.simulator import simulate
from tests.simulation.stand_ins import Escaped, sealed_off
from tests.simulation.world import World

RUNTIME = Path(__file__).resolve().parents[4] / "runtime"

ROOMS = ("coordination", "processing", "commit", "messages", "tasks", "tuples", "state", "zookeeper", "world")
FILES = ("cluster/submission.py", "cluster/topology_handle.py")

MODULES_OF_THE_WORLD = """
    _thread asyncio concurrent multiprocessing queue random sched secrets select selectors signal socket subprocess
    threading time uuid
""".split()  # noqa: SIM905
OURS = {
    "stormline.runtime.world.world": "REAL",
    "stormline.runtime.world.clock": "passed_secs",
    "stormline.runtime.world.driver_mark": "leave_mark marked remove_mark taken",
    "kazoo.client": "KazooClient",
    "stormline.runtime.zookeeper.polling": "kazoo_client",
}
"""Names by which the real world is reached without its modules."""
CALLS_OF_THE_WORLD = ("os.getpid", "os.getrandom", "os.kill", "os.urandom", "dt.datetime.now", "dt.datetime.today")

_LOCK = "a lock under which nothing waits, and nobody's code runs: threads of the simulation never meet in it"
_DEFAULT = "what is used where nothing else is handed in: in production; the simulation shuts it"
_THIS_PROCESS = "it looks at this very process, from beside it; only LocalCluster makes one"

ALLOWED = {
    "tasks/batch_recorder.py": ({"threading.Lock"}, _LOCK),
    "tasks/commit_threads.py": ({"threading.Lock"}, _LOCK),
    "tasks/emitters.py": ({"threading.Lock"}, _LOCK),
    "tasks/commit_calls.py": ({"threading.Lock"}, _LOCK),
    "tasks/gathered.py": ({"uuid.UUID", "uuid.SafeUUID"}, "types of values"),
    "tasks/task_environment.py": ({"threading.Lock", "REAL"}, f"{_LOCK}; {_DEFAULT}"),
    "cluster/submission.py": ({"REAL"}, _DEFAULT),
    "zookeeper/polling.py": (
        {"KazooClient", "select.*", "select.POLLIN", "select.POLLNVAL", "select.POLLOUT", "select.poll"},
        "kazoo's own thread at its own sockets; the simulation has another client",
    ),
    "zookeeper/reading.py": ({"REAL"}, _DEFAULT),
    "zookeeper/session.py": ({"kazoo_client"}, _DEFAULT),
    "zookeeper/store.py": ({"REAL", "kazoo_client"}, _DEFAULT),
    "tasks/collector.py": ({"threading.get_ident"}, "which thread emits; it waits for none"),
    "tasks/user_code.py": (
        {"threading.current_thread", "threading.get_ident", "threading.main_thread"},
        "which thread calls; it waits for none",
    ),
    "tuples/grouping_key.py": ({"uuid.UUID"}, "a type of values"),
    "state/memory_store.py": ({"threading.RLock", "REAL"}, "the double of a store, for tests without a simulation"),
    "state/transactional_state.py": ({"os.getpid"}, "it tells a fork of this process, which has no store"),
    "world/clock.py": ({"time.*", "time.clock_gettime", "time.monotonic"}, "the real clock"),
    "world/driver_mark.py": ({"os.getpid", "os.kill", "time.time"}, "the real machine"),
    "world/machine.py": (
        {"os.getpid", "socket.gethostname", "leave_mark", "marked", "remove_mark", "taken"},
        "the real machine",
    ),
    "world/thread_stack.py": ({"threading.get_ident"}, "which thread waits; it waits for none"),
    "world/world.py": (
        {
            "os.getrandom",
            "passed_secs",
            "queue.Empty",
            "queue.SimpleQueue",
            "secrets.randbelow",
            "threading.Condition",
            "threading.Event",
            "threading.RLock",
            "threading.Thread",
            "threading.current_thread",
            "time.monotonic",
            "time.sleep",
            "time.time",
            "uuid.uuid4",
        },
        "the real world",
    ),
    "zookeeper/interpreter_watch.py": (
        {
            "threading.Event",
            "threading.Lock",
            "threading.Thread",
            "threading.enumerate",
            "time.process_time",
            "passed_secs",
        },
        _THIS_PROCESS,
    ),
}
"""By module: what it takes from the real world, and why that may be."""


def used(source: str) -> Iterator[str]:
    """Give what a module takes from the real world: "time.sleep", also where it is imported by another name."""
    tree = ast.parse(source)
    modules: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.partition(".")[0] in MODULES_OF_THE_WORLD:
                    modules[alias.asname or alias.name.partition(".")[0]] = alias.name
        elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in MODULES_OF_THE_WORLD:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (alias.name for alias in node.names if alias.name in OURS.get(node.module or "", "").split())
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and ast.unparse(node) in CALLS_OF_THE_WORLD:
            yield ast.unparse(node)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in modules:
            yield f"{modules[node.value.id]}.{node.attr}"
    yield from (f"{modules[name]}.*" for name in _alone(tree) if name in modules)


def _alone(tree: ast.AST) -> Iterator[str]:
    """Give the names that stand alone: whoever passes a module on, or asks getattr of it, may take all of it."""
    within = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)]
    yield from (name.id for name in names if id(name) not in within)


def modules() -> list[str]:
    """Return the modules that are handed the world, by path below runtime/."""
    in_rooms = [path for room in ROOMS for path in sorted((RUNTIME / room).rglob("*.py"))]
    return [str(path.relative_to(RUNTIME)) for path in in_rooms] + list(FILES)


@pytest.mark.parametrize("module", modules())
def test_a_module_takes_nothing_from_the_real_world_but_what_is_allowed_with_a_reason(module: str) -> None:
    allowed, _ = ALLOWED.get(module, (set(), ""))
    assert set(used((RUNTIME / module).read_text())) == allowed, (
        f"runtime/{module}: clock, sleep, threads, locks, queues and chance come from the World that is handed in "
        "(runtime/world/world.py); what does not wait may be listed in ALLOWED, with the reason"
    )


def test_every_module_on_the_list_is_there() -> None:
    assert set(ALLOWED) <= set(modules())
    assert len(modules()) > 50


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("import time\ntime.sleep(1)", {"time.sleep"}),
        ("import time as t\nt.sleep(1)", {"time.sleep"}),
        ("from time import sleep as rest", {"time.sleep"}),
        ("def f():\n    from threading import Thread", {"threading.Thread"}),
        ("import concurrent.futures as f\nf.ThreadPoolExecutor()", {"concurrent.futures.ThreadPoolExecutor"}),
        ("import time\nclock = time", {"time.*"}),
        ("import time\nf = getattr(time, 'sleep')", {"time.*"}),
        ("import os\nos.urandom(4)", {"os.urandom"}),
        ("import datetime as dt\ndt.datetime.now(dt.timezone.utc)", {"dt.datetime.now"}),
        ("from stormline.runtime.world.world import REAL, World", {"REAL"}),
        ("import os\nos.path.join('time.sleep')", set()),
    ],
)
def test_what_reaches_for_the_real_world_is_found(source: str, found: set[str]) -> None:
    assert set(used(source)) == found


@pytest.mark.parametrize("member", [field.name for field in dataclasses.fields(REAL)])
def test_in_a_simulated_history_the_real_world_is_shut(member: str) -> None:
    real = getattr(REAL, member)
    with World(1) as world, sealed_off(world), pytest.raises(Escaped, match=f"^{member} of the real world was used"):
        getattr(REAL, member)()
    assert getattr(REAL, member) is real


def test_a_history_is_the_same_each_time_to_the_bit() -> None:
    first, again = simulate(7), simulate(7)
    assert (first.checksum, first.steps, first.history) == (again.checksum, again.steps, again.history)


@pytest.mark.parametrize("limit", [1, 2, 3, 255, 256, 257, (1 << 24) - 1, 1 << 64])
def test_a_number_drawn_is_any_one_below_the_limit(limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(2):
        drawn = {REAL.random_below(limit) for _ in range(4000)}
        assert min(drawn) >= 0
        assert max(drawn) < limit
        assert len(drawn) >= limit if limit <= 257 else len(drawn) > 3900
        monkeypatch.delattr(os, "getrandom", raising=False)
