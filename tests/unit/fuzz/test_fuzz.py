"""100,000 bad inputs to all that takes in bytes from outside; see tests/fuzz."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from tests.fuzz import mutations
from tests.fuzz.mutations import PICKLES, PickleExecuted, mutated, restructured

ROOT = Path(__file__).resolve().parents[3]


def fuzz(*options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tests.fuzz", *options], cwd=ROOT, capture_output=True, text=True, timeout=600
    )


@pytest.mark.parametrize("inputs", [5_000, pytest.param(100_000, marks=pytest.mark.proof)])
def test_bad_inputs_give_typed_errors_and_nothing_else(inputs: int) -> None:
    done = fuzz("--inputs", str(inputs), "--seed", "1")
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{inputs} passed, 0 failed" in done.stdout


def test_an_input_can_be_repeated() -> None:
    said = [fuzz("--seed", "7", "--only", "3").stdout for _ in range(2)]
    assert said[0] == said[1]
    assert said[0].startswith("input 3 of seed 7: ")


def test_mutations_are_the_same_for_the_same_seed() -> None:
    corpus = [b"first", b"second one"]
    made = [[mutated(Random(seed), corpus[0], corpus) for seed in range(200)] for _ in range(2)]
    assert made[0] == made[1]
    assert len(set(made[0])) > 150
    value = {"a": [1, {"b": None}]}
    assert repr(restructured(Random(5), value)) == repr(restructured(Random(5), value))
    assert value == {"a": [1, {"b": None}]}


@pytest.mark.parametrize("attack", PICKLES)
def test_a_pickle_that_is_run_is_noticed(attack: bytes) -> None:
    import pickle

    with pytest.raises(PickleExecuted):
        pickle.loads(attack)
    assert mutations.executed.__module__ == "tests.fuzz.mutations"
