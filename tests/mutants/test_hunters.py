"""A copy whose code is broken is not killed by that, wherever the runtime puts the error away; an assertion kills."""

from __future__ import annotations

import pytest

from tests.mutants.hunters import Fate, hunt
from tests.mutants.mutant import Killer, Mutant

SEEDS_MAX = 20

STAGE_RUNNER = "runtime/processing/stage_runner.py"
COMMIT_PHASE = "runtime/commit/commit_phase.py"
NEXT_WAVE = "runtime/coordination/next_wave.py"
BROKEN = (
    (
        Mutant("a wave", "", "", STAGE_RUNNER, "watch = Stopwatch(self._env.world)", "watch = Stopwatch(1, 2, 3)"),
        "EngineStopped",
        ("TypeError",),
    ),
    (
        Mutant("a commit", "", "", COMMIT_PHASE, "_bolt.finish_batch()", "_bolt.finish_batch(1, 2)"),
        "TopologyFailed",
        ("TypeError",),
    ),
    (
        Mutant(
            "a name",
            "",
            "",
            STAGE_RUNNER,
            "        watch = Stopwatch(self._env.world)\n",
            "        watch = watch\n",
        ),
        "EngineStopped",
        ("UnboundLocalError",),
    ),
    (
        Mutant(
            "the loop",
            "",
            "",
            NEXT_WAVE,
            "self._number += 1",
            "self._number += '1'",
        ),
        "TypeError",
        ("TypeError",),
    ),
    (
        Mutant(
            "the model",
            "",
            "",
            "runtime/coordination/coordinator.py",
            "return len(state.active) <",
            "return len(state.actives) <",
            killer=Killer.MODEL,
        ),
        "AttributeError",
        (),
    ),
)


@pytest.mark.proof
@pytest.mark.parametrize(("mutant", "raised", "logged"), BROKEN, ids=[mutant.name for mutant, *_ in BROKEN])
def test_broken_code_is_found_and_does_not_count_as_killed(
    mutant: Mutant, raised: str, logged: tuple[str, ...]
) -> None:
    fate = Fate(mutant, hunt(mutant, SEEDS_MAX, killer=mutant.killer))
    assert fate.found.violation is not None
    assert raised in fate.found.violation.partition("\n")[0]
    assert fate.found.logged == logged
    assert fate.killed_by is None


def test_an_assertion_of_the_runtime_kills_and_one_of_the_harness_does_not() -> None:
    for file, old, killed_by in (
        ("runtime/coordination/wave_thread.py", "        assert not self.busy\n", "runtime's assertion"),
        ("tests/simulation/executors.py", "        world.oracle.wave(self._env.epoch, wave)\n", None),
    ):
        mutant = Mutant("an assertion", "", "", file, old, f"        assert not 'this'\n{old}")
        fate = Fate(mutant, hunt(mutant, SEEDS_MAX))
        assert fate.killed_by == killed_by, fate.found
        assert "AssertionError" in fate.found.trace
