"""A copy whose code is broken is not killed by that, wherever the runtime puts the error away; an assertion kills.

Laws by number, as docs/laws.md has them: law 1 (order).
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tests.mutants.hunt import BROKEN_MAX, hunt_by_simulation
from tests.mutants.hunters import Fate, hunt
from tests.mutants.mutant import Killer, Mutant

SEEDS_MAX = 20
BROKE = "a driver stopped with TypeError: no such argument"

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


@pytest.mark.parametrize(
    ("violations", "tries", "killed_by"),
    [
        ([BROKE, None, BROKE, "law 1: it is broken", BROKE], 4, "law check"),
        ([None, BROKE, None], 2, None),
        ([BROKE] * (BROKEN_MAX + 5), 1, None),
        ([None] * 3, 3, None),
    ],
    ids=["then a law", "once", "always", "never"],
)
def test_a_hunt_goes_on_where_code_was_only_broken(
    monkeypatch: pytest.MonkeyPatch, violations: list[str | None], tries: int, killed_by: str | None
) -> None:
    simulated: list[int] = []

    def simulate(seed: int) -> Any:
        simulated.append(seed)
        return SimpleNamespace(violation=violations[seed])

    monkeypatch.setattr("tests.simulation.simulator.simulate", simulate)
    monkeypatch.setattr("tests.simulation.campaign.prepare_process", lambda: None)
    monkeypatch.setattr("tests.mutants.witness.Witness.attach", lambda self: None)
    found = hunt_by_simulation(range(len(violations)))
    assert (found.tries, found.killed_by) == (tries, killed_by)
    assert len(simulated) <= BROKEN_MAX
