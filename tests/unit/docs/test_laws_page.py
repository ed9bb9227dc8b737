"""docs/laws.md: all that it names exists, and every law has its tests."""

from __future__ import annotations

import re

import pytest

from tests.mutants.catalogue import MUTANTS
from tests.unit.docs.project_texts import ROOT, files, is_file_of_the_project, laws

PAGE = (ROOT / "docs" / "laws.md").read_text(encoding="utf-8")
NO_LAWS = ("bounded", "liveness", "exactly once")
"""What else a mutant may break: the page says so, too."""


def section(number: int) -> str:
    return PAGE.split(f"## Law {number}: ")[1].split("\n## ")[0]


def part(number: int, begin: str, end: str = "\n\n") -> str:
    return section(number).split(f"*{begin}* ")[1].split(end)[0]


def in_backquotes(text: str) -> list[str]:
    return re.findall(r"`([^`\n]+)`", text)


def keys_of_the_fault_matrix() -> set[str]:
    modules = [name for name in files() if "fault_matrix/" in name and name.endswith(".py")]
    return {key for name in modules for key in re.findall(r"\bkey=\"([\w-]+)\"", (ROOT / name).read_text())}


def test_there_are_ten_laws_with_names_of_their_own() -> None:
    assert list(laws()) == list(range(1, 11))
    assert len(set(laws().values())) == 10


@pytest.mark.parametrize("number", laws())
def test_modules_and_tests_that_a_law_names_exist(number: int) -> None:
    named = [word for word in in_backquotes(section(number)) if word.endswith(".py")]
    assert [word for word in named if not is_file_of_the_project(word)] == []
    assert [word for word in in_backquotes(part(number, "Enforced in")) if word.endswith(".py")]


@pytest.mark.parametrize("number", laws())
def test_a_module_that_enforces_a_law_cites_it(number: int) -> None:
    modules = [word for word in in_backquotes(part(number, "Enforced in")) if word.endswith(".py")]
    paths = [name for name in files() if any(name.endswith(module) for module in modules)]
    citing = [name for name in paths if re.search(rf"\b[Ll]aw {number}\b", (ROOT / name).read_text(encoding="utf-8"))]
    assert citing, f"none of {modules} says that law {number} ({laws()[number]}) is enforced there"


@pytest.mark.parametrize("number", laws())
def test_every_law_has_a_module_of_tests_by_its_number_and_name(number: int) -> None:
    module = f"test_law_{number:02}_{laws()[number].replace(' ', '_')}.py"
    assert module in in_backquotes(part(number, "Tested by"))
    text = (ROOT / "tests" / "laws" / module).read_text(encoding="utf-8")
    assert f"aw {number} ({laws()[number]})" in text.partition("\n")[0], f"{module} begins with its law"


@pytest.mark.parametrize("number", laws())
def test_mutants_and_rows_that_a_law_names_exist_and_are_of_this_law(number: int) -> None:
    tried = part(number, "Tested by")
    of_law = {mutant.name for mutant in MUTANTS if mutant.law == f"{number} {laws()[number]}"}
    mutants = re.search(r"mutants?\s+((?:`[\w-]+`(?:, )?\s*)+)", tried)
    assert mutants is None or [name for name in in_backquotes(mutants[1]) if name not in of_law] == []
    assert (mutants is None) == (of_law == set())
    rows = re.search(r"rows?\s+((?:`[\w-]+`(?:, )?\s*)+)", tried)
    assert rows is not None
    assert [key for key in in_backquotes(rows[1]) if key not in keys_of_the_fault_matrix()] == []


def test_every_mutant_breaks_a_law_of_the_page_or_one_of_its_other_promises() -> None:
    known = {f"{number} {name}" for number, name in laws().items()} | set(NO_LAWS)
    assert [f"{mutant.name}: {mutant.law}" for mutant in MUTANTS if mutant.law not in known] == []


def test_every_decision_is_in_the_index() -> None:
    folder = ROOT / "docs" / "decisions"
    index = (folder / "README.md").read_text(encoding="utf-8")
    titles = {path.name: path.read_text(encoding="utf-8").partition("\n")[0] for path in folder.glob("0*.md")}
    assert sorted(re.findall(r"\]\((0[^)]+)\)", index)) == sorted(titles)
    for name, title in titles.items():
        assert re.fullmatch(rf"# {int(name[:4])}\. .+", title)
        assert title.partition(". ")[2] in index


def test_the_glossary_explains_each_word_once() -> None:
    text = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    words = re.findall(r"\*\*([^*]+)\*\*", text)
    assert len(words) > 60
    assert sorted({word for word in words if words.count(word) > 1}) == []
    assert {"wave", "law", "slot", "segment", "plain call", "to travel", "to hold", "kept", "told"} <= set(words)
