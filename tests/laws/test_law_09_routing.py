"""Law 9 (routing): where a key goes is the same in every process and for ever. See docs/laws.md."""

from __future__ import annotations

import json
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

from stormline.runtime.tuples.canonical_form import stable_hashes
from stormline.topology.serialization import PLAIN

PROGRAM = """
import json
from stormline import BaseTransactionalBolt, Fields, ICommitter, MemoryTransactionalSpout, TransactionalTopologyBuilder
from stormline.testing import InProcessCluster

TASKS = {}

class Notes(BaseTransactionalBolt, ICommitter):
    def prepare(self, conf, context, collector, attempt):
        self.task = context.this_task_index
    def execute(self, tup):
        TASKS.setdefault(tup[1], set()).add(self.task)
    def finish_batch(self):
        pass

words = [f"word {n}" for n in range(200)] * 2
builder = TransactionalTopologyBuilder("t", "spout", MemoryTransactionalSpout({0: words}, Fields("word"), 50))
builder.set_bolt("notes", Notes(), 4).fields_grouping("spout", Fields("word"))
with InProcessCluster() as cluster:
    cluster.submit_topology("t", {}, builder.build_topology()).await_drained(60)
print(json.dumps({word: sorted(tasks) for word, tasks in TASKS.items()}))
"""


FOR_EVER = {
    "cat": 7904679976722626870,
    "Čača": 10602324485756953773,
    7: 9276950899905018769,
    -1.5: 4863393920476929861,
    b"\x00": 11764708505174607589,
    None: 8532029235416832368,
}


def tasks_of_keys(hash_seed: str, folder: Path) -> dict[str, list[int]]:
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(
        command, cwd=folder, env={"PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, list[int]] = json.loads(done.stdout)
    return found


ROOT = Path(__file__).resolve().parents[2]


def test_keys_go_to_the_same_tasks_in_processes_that_hash_differently(tmp_path: Path) -> None:
    first = tasks_of_keys("0", tmp_path)
    assert first == tasks_of_keys("1", tmp_path) == tasks_of_keys("random", tmp_path)
    assert all(len(tasks) == 1 for tasks in first.values()), "one task a key"
    assert {task for tasks in first.values() for task in tasks} == {0, 1, 2, 3}, "and all tasks have some"


def test_a_key_has_the_hash_that_it_had_when_this_was_written() -> None:
    """A topology that goes on with another hash would find a key's count in another task's share."""
    assert {key: stable_hashes([key], PLAIN)[0] for key in FOR_EVER} == FOR_EVER


def test_a_key_is_its_value_not_its_type() -> None:
    one = stable_hashes([1], PLAIN)
    assert stable_hashes([1.0], PLAIN) == stable_hashes([Decimal(1)], PLAIN) == stable_hashes([True], PLAIN) == one
    assert stable_hashes(["1"], PLAIN) != one
