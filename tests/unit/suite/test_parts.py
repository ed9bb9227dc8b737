"""Which part of the suite runs which file: each file is in one of them, whatever is added."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.suite.parts import PROOF, ROOT, TEST, Part, files


@pytest.mark.parametrize("suite", [TEST, PROOF], ids=["test", "proof"])
def test_every_file_of_tests_is_in_one_part_and_every_part_of_tests_has_some(suite: tuple[Part, ...]) -> None:
    found = files(suite)
    named = [path for paths in found.values() for path in paths]
    assert sorted(named) == sorted(str(path.relative_to(ROOT)) for path in ROOT.glob("tests/**/test_*.py"))
    assert [part.name for part in suite if bool(found[part]) == bool(part.command)] == []


def make(root: Path, *paths: str) -> None:
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).touch()


def test_a_file_belongs_to_the_part_that_names_it_most_closely(tmp_path: Path) -> None:
    make(tmp_path, "tests/test_a.py", "tests/x/test_b.py", "tests/x/test_c.py", "tests/x/y/test_d.py", "tests/x/kit.py")
    rest, folder, one = Part("rest", ("tests",)), Part("folder", ("tests/x",)), Part("one", ("tests/x/test_c*.py",))
    assert files([rest, folder, one], tmp_path) == {
        rest: ["tests/test_a.py"],
        folder: ["tests/x/test_b.py", "tests/x/y/test_d.py"],
        one: ["tests/x/test_c.py"],
    }


def test_a_file_that_no_part_names_is_told(tmp_path: Path) -> None:
    make(tmp_path, "tests/new/test_a.py")
    with pytest.raises(ValueError, match=r"no part of the suite names tests/new/test_a\.py: see tests/suite/parts\.py"):
        files([Part("folder", ("tests/x",)), Part("lint", command=("make", "lint"))], tmp_path)
