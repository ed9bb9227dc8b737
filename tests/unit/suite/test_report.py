"""What is said of the parts of the suite."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tests.suite.lanes import Ended, Job
from tests.suite.parts import Part
from tests.suite.report import Case, cases_of, summary, where_time_went

JUNIT = """<?xml version="1.0"?><testsuites><testsuite>
<testcase classname="tests.a" name="test_x" time="1.5"/>
<testcase classname="tests.a" name="test_y" time="0.25"><failure message="assert 1 == 2">trace</failure></testcase>
<testcase classname="tests.a" name="test_z" time="0"><skipped message="no Java">here</skipped></testcase>
<testcase classname="" name="" time="5.6"/>
</testsuite></testsuites>"""


def ended(name: str, code: int, secs: float) -> Ended:
    return Ended(Job(Part(name), (), Path("log")), code, secs)


def test_a_part_is_told_in_one_line_with_what_it_left_out(tmp_path: Path) -> None:
    (tmp_path / "junit.xml").write_text(JUNIT)
    cases = cases_of(tmp_path / "junit.xml")
    assert cases[0] == Case("tests.a::test_x", 1.5, "passed", "")
    assert summary(ended("unit", 1, 61.4), cases).splitlines() == [
        "FAILED unit: 1 passed, 1 failure, 1 skipped, 61 s",
        "       skipped 1: no Java",
    ]
    assert summary(ended("lint", 0, 3), cases_of(tmp_path / "none.xml")) == "ok     lint: 3 s"
    hung = replace(ended("kafka", 0, 901), why="ended: it took more than 900 s")
    assert summary(hung, []) == "FAILED kafka: 901 s, ended: it took more than 900 s"


def test_the_slowest_and_the_longest_come_first() -> None:
    cases = [Case(f"tests.a::test_{n}", n, "passed", "") for n in range(20)]
    lines = where_time_went([ended("unit", 0, 10), ended("spark", 0, 200)], cases, 205.0).splitlines()
    assert lines[2] == "    19.0 s  tests.a::test_19"
    assert len([line for line in lines if "::" in line]) == 15
    assert lines[-3:] == [
        "     200 s  spark",
        "      10 s  unit",
        "     205 s  in all, of 210 s side by side; 20 tests",
    ]
