"""Mutants cannot rot in silence: the code that each of them changes is still there, once."""

from __future__ import annotations

import pytest

from tests.mutants.catalogue import MUTANTS
from tests.mutants.mutant import ROOT, Mutant

MUTANTS_MIN = 90


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_what_a_mutant_changes_is_in_the_code_once(mutant: Mutant) -> None:
    patched = mutant.patched((ROOT / mutant.file).read_text())
    assert patched.count(mutant.new) >= 1


def test_there_are_enough_mutants_and_each_has_a_name_and_a_fault_of_its_own() -> None:
    assert len(MUTANTS) >= MUTANTS_MIN
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)
    assert len({(mutant.file, mutant.old, mutant.new) for mutant in MUTANTS}) == len(MUTANTS)
