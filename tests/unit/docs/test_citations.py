"""What comments, docstrings and pages cite stands in the repository, and is called by its name."""

from __future__ import annotations

import re

from tests.unit.docs.project_texts import (
    LAW,
    ROOT,
    comments_and_docstrings,
    files,
    is_file_of_the_project,
    laws,
    what_people_read,
)

FILE = re.compile(r"(?<![\w./*<>{}-])\w[\w/.-]*\.(?:py|md|sh|cfg|toml|json|yml)\b")
NOT_OURS = {
    "shop/clicks.py",  # a user's module, in an example
    "driver-NUMBER.json",  # files of a chaos run
    "driver-NUMBER.end.json",
    "kafka-consumer-groups.sh",  # of Kafka
}
# Papers that were handed round while this was written, and worked examples in them, by what they were called.
ELSEWHERE = re.compile(
    r"\b(?:DESIGN|SEMANTICS|MEASURED|STYLE|FAULTS|DATABASES|KAFKA|TWOPC)(?:\.md)?\b(?!=)|\b[Ff]act C\d"
)

PEOPLE_READ = sorted(name for name in files() if name.endswith((".py", ".md")))
EXEMPT = ("docs/laws.md", "tests/unit/docs/test_citations.py")
"""They have the laws as headings, and wrong citations on purpose."""


def misnamed(text: str) -> list[str]:
    """Return the citations of laws in a text that name another one, or none where the law was not named before.

    A name stands in brackets, or within brackets after a comma: law 5 (complete input), (law 5, complete input).
    """
    wrong, named = [], set()
    for citation in LAW.finditer(text):
        number, after = int(citation[1]), text[citation.end() :]
        name = laws().get(number, "?").replace(" ", r"\s+")
        if re.match(rf"\s*\({name}\)|,\s+{name}\b", after):
            named.add(number)
        elif number not in named or re.match(r" \([a-z ]+\)", after):
            wrong.append(citation[0])
    return wrong


def cited_files(text: str) -> list[str]:
    return [match[0] for match in FILE.finditer(text)]


def test_a_law_is_cited_with_its_name_at_least_the_first_time() -> None:
    texts = {name: (ROOT / name).read_text(encoding="utf-8") for name in PEOPLE_READ if name not in EXEMPT}
    found = {name: misnamed(text) for name, text in texts.items()}
    assert {name: wrong for name, wrong in found.items() if wrong} == {}, f"write law N (name): {laws()}"


def test_a_citation_without_a_name_or_with_another_is_found() -> None:
    assert misnamed("law 5 (complete input), and again law 5, which law 5 (complete input) is") == []
    assert misnamed("the counts match (law 5, complete input); laws 1 to 4 are others") == []
    assert misnamed("law 5 (complete\ninput), (law 5, complete\ninput)") == []
    assert misnamed("as law 5 has it") == ["law 5"]
    assert misnamed("law 6 (order)") == ["law 6"]
    assert misnamed("law 6 (fencing), and law 6 (order)") == ["law 6"]
    assert misnamed("Law 5, completely") == ["Law 5"]
    assert misnamed("law 11 (none)") == ["law 11"]


def test_files_that_comments_docstrings_and_pages_name_exist() -> None:
    missing = [
        f"{name} names {cited}"
        for name in PEOPLE_READ
        for text in what_people_read(name)
        for cited in cited_files(text)
        if cited not in NOT_OURS and not is_file_of_the_project(cited)
    ]
    assert missing == []


def test_nothing_is_cited_that_is_not_in_the_repository() -> None:
    here = "tests/unit/docs/test_citations.py"
    found = [
        f"{name}: {match[0]}"
        for name in PEOPLE_READ
        if name != here
        for text in what_people_read(name)
        for match in ELSEWHERE.finditer(text)
    ]
    assert found == []


def test_a_file_that_is_not_there_and_a_paper_that_is_elsewhere_are_found() -> None:
    comments = comments_and_docstrings('"""See packed.py."""\nx = "no.py"  # MEASURED: fact C1\n')
    assert [cited for text in comments for cited in cited_files(text)] == ["packed.py"]
    assert not is_file_of_the_project("packed.py")
    assert is_file_of_the_project("docs/laws.md")
    assert is_file_of_the_project("committer.py")
    assert [match[0] for text in comments for match in ELSEWHERE.finditer(text)] == ["MEASURED", "fact C1"]


TICS = re.compile(r"\bTell whether\b|\b[Tt]ake note\b")
"""Openings of docstrings that were a habit: the plain verbs are Return and Record."""


def test_docstrings_open_with_plain_verbs() -> None:
    modules = [name for name in PEOPLE_READ if name.endswith(".py") and name not in EXEMPT]
    assert [name for name in modules if any(map(TICS.search, what_people_read(name)))] == []
    assert TICS.search('"""Tell whether it is so."""')
