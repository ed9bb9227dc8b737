"""Every fault of the catalogue is found, by the model or by the simulation, and the code without one is not."""

from __future__ import annotations

import os

from tests.mutants.catalogue import MUTANTS
from tests.mutants.hunters import hunt_all
from tests.mutants.report import HEADER, line


def test_every_mutant_is_killed() -> None:
    fates = list(hunt_all(MUTANTS, None, max(2, os.cpu_count() or 2)))
    survivors = [line(fate) for fate in fates if fate.killed_by is None]
    assert not survivors, "\n".join(["", HEADER, *survivors])
    assert len(fates) == len(MUTANTS)
