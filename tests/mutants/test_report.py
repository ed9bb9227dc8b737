"""The table tells what was killed, what lives and what is only broken; a mutant that no longer fits says so.

Laws by number, as docs/laws.md has them: law 1 (order), law 9 (routing).
"""

from __future__ import annotations

import pytest

from tests.mutants.catalogue import MUTANTS
from tests.mutants.found import Found
from tests.mutants.hunters import Fate
from tests.mutants.mutant import Mutant
from tests.mutants.report import line, summary


@pytest.mark.parametrize(
    ("violation", "killed_by", "tries"),
    [
        ("law 1: 3 is recorded after 1", "law check", "7"),
        ("a driver stopped with TypeError: no such argument", "BROKEN, NOT KILLED", "> 7"),
        (None, "SURVIVED", "> 7"),
    ],
)
def test_a_line_tells_what_lives_from_what_is_broken(violation: str | None, killed_by: str, tries: str) -> None:
    fate = Fate(MUTANTS[0], Found(7, 0.5, violation))
    assert f" {killed_by} " in line(fate)
    assert f" {tries} " in line(fate)


def test_the_summary_tells_of_a_control_that_broke_a_law() -> None:
    fates = [Fate(MUTANTS[0], Found(7, 0.5, "law 1: x")), Fate(MUTANTS[1], Found(9, 0.5, None))]
    assert summary(fates, [Found(4, 1.0, None), Found(4, 1.0, None)]) == (
        "1 of 2 mutants killed; the unchanged code survived 8 seeds and examples"
    )
    assert summary(fates, [Found(1, 1.0, "law 9: y")]).endswith("the unchanged code broke a law: law 9: y")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("nowhere", "x", "its old text is 0 times in f.py, expected once"),
        ("a", "b", "its old text is 2 times in f.py, expected once"),
        ("b = 1", "b = 1", "changes nothing"),
    ],
)
def test_a_mutant_that_no_longer_fits_the_code_says_so(old: str, new: str, message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        Mutant("m", "1 order", "It is one.", "f.py", old, new).patched("a = 0\nc = a\nb = 1\n")
