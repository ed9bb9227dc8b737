"""Every fault of the catalogue is found, by the model or by the simulation, and the code without one is not."""

from __future__ import annotations

import os

import pytest

from tests.mutants.catalogue import MUTANTS
from tests.mutants.hunters import hunt, hunt_all
from tests.mutants.mutant import Killer
from tests.mutants.report import HEADER, line

CONTROLS = {Killer.SIMULATION: 200, Killer.MODEL: 150}
"""Seeds and examples that the copy without a fault must survive: more than most mutants do."""


pytestmark = pytest.mark.proof


@pytest.mark.parametrize("killer", Killer, ids=lambda killer: killer.value)
def test_the_copy_without_a_fault_survives(killer: Killer) -> None:
    found = hunt(None, CONTROLS[killer], killer=killer)
    assert found.violation is None, f"{found.violation}\n{found.trace}"
    assert found.tries >= CONTROLS[killer]


def test_every_mutant_is_killed() -> None:
    print("", HEADER, sep="\n", flush=True)
    fates = []
    for fate in hunt_all(MUTANTS, None, max(2, os.cpu_count() or 2)):
        fates.append(fate)
        print(line(fate), flush=True)
    survivors = [line(fate) for fate in fates if fate.killed_by is None]
    assert not survivors, "\n".join(["", HEADER, *survivors])
    assert len(fates) == len(MUTANTS)
