"""Law 8 (no unpickling): bytes from outside are never unpickled. See docs/laws.md."""

from __future__ import annotations

import ast
import os
import pickle
from pathlib import Path
from typing import Any

import pytest

from stormline.runtime.errors import StateCorrupt
from stormline.runtime.state.memory_store import MemoryStateServer
from stormline.runtime.state.stored_value import unseal
from stormline.topology.errors import CorruptData
from stormline.topology.serialization import PLAIN
from tests.laws.kit import ID, drain, numbers, topology_of

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("topology", "bolts", "spouts", "runtime", "cli", "stormline")

UNPICKLES = {
    "runtime/tasks/gathered.py": "what bolts gathered, from an executor of this run, in Spark's own channel",
    "runtime/tasks/user_code.py": "an exception that this very call has just pickled, to see whether it can be read",
    "runtime/processing/slot_report.py": "reports of slots, in Spark's own channel",
    "runtime/commit/executor_messages.py": "parts of a commit and their replies, in Spark's own channel",
    "runtime/spark/worker.py": "the plan and the wave, in Spark's own channel",
    "runtime/coordination/stop_reasons.py": "an exception of user code, in Spark's own channel",
}
"""Every module that unpickles, and what."""

READS = {"load", "loads", "Unpickler", "_Unpickler"}
PICKLES = {"pickle", "cloudpickle", "_pickle", "dill", "marshal", "shelve", "joblib"}


def unpickles(code: str) -> bool:
    """Return whether a module reads pickles: it names a reader of one of the libraries that have one."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Attribute):
            if node.attr in READS and isinstance(node.value, ast.Name) and node.value.id in PICKLES:
                return True
        elif isinstance(node, ast.ImportFrom):
            if node.module in PICKLES and {name.name for name in node.names} & READS:
                return True
        elif isinstance(node, ast.Import) and any(name.asname for name in node.names if name.name in PICKLES):
            return True
    return False


def test_the_modules_that_unpickle_are_those_that_read_sparks_own_channel() -> None:
    modules = [path for room in ROOMS for path in (ROOT / room).rglob("*.py") if not path.parent.is_symlink()]
    found = {str(path.relative_to(ROOT)) for path in modules if unpickles(path.read_text(encoding="utf-8"))}
    assert found == set(UNPICKLES)


@pytest.mark.parametrize(
    "code",
    [
        "import pickle\npickle.loads(b)",
        "from cloudpickle import loads",
        "import pickle as innocent",
        "class U(pickle.Unpickler): ...",
        "import marshal\nmarshal.load(f)",
    ],
)
def test_a_module_that_unpickles_is_found_however_it_does(code: str) -> None:
    assert unpickles(code)
    assert not unpickles("import json, pickle\njson.loads(b)\npickle.dumps(b)")


class Attack:
    """Makes a directory when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_pickle_in_any_place_of_the_state_halts_and_is_not_executed(tmp_path: Path, protocol: int) -> None:
    server = MemoryStateServer()
    drain(topology_of(numbers(10), lambda attempt, rows: None), server)
    made = tmp_path / "made"
    attack = pickle.dumps(Attack(made), protocol)
    for path, sealed in server.topologies[ID].nodes.copy().items():
        server.topologies[ID].nodes[path] = attack
        with pytest.raises(StateCorrupt, match=f"{path} holds .* bytes that Stormline did not write"):
            drain(topology_of(numbers(10), lambda attempt, rows: None), server)
        assert server.topologies[ID].nodes[path] == attack, "nothing was changed"
        server.topologies[ID].nodes[path] = sealed
    with pytest.raises(CorruptData):
        PLAIN.unpack(attack)
    with pytest.raises(StateCorrupt):
        unseal(attack, PLAIN, "here")
    assert not made.exists()
    pickle.loads(attack)
    assert made.exists(), "the attack is real"
