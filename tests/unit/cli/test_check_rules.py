"""The rules of `stormline check`, over programs that say what must be found in them, and over those that are right."""

from __future__ import annotations

import re
import sys
import types
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stormline import BaseBasicBolt, Config, TransactionalTopologyBuilder
from stormline.cli.rules import copied_object
from stormline.cli.rules.every import RULES, Report, check_plan
from stormline.cli.target import load_target
from stormline.topology.compiler import compile_topology
from tests.checked import spouts
from tests.holding import ALL_HOLDING
from tests.ports.expected import PORTS

ROOT = Path(__file__).resolve().parents[3]
PROGRAMS = ROOT / "tests" / "checked"
WRONG = ["clocks", "copies", "declared", "effects", "emitting", "resources", "state_of_modules", "txids"]
RIGHT = ["committing", "emitting", "emitting:partitioned", "gathering", "processes", "resources"]
OTHERS = [
    *(f"examples.{name}" for name in ("global_count", "words", "design_phases", "flight_delays_arrow")),
    *(f"tests.topologies.{name}" for name in ("numbers", "cluster_sum", "keyed_sums")),
]
MARK = re.compile(r"# ! ([a-z-]+)")

Found = set[tuple[str, int, str]]


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Install the libraries that the programs import, and forget them again."""
    monkeypatch.chdir(ROOT)
    monkeypatch.syspath_prepend(str(PROGRAMS / "site-packages"))
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if name.partition(".")[0] in ("shoplib", "redis"):
            del sys.modules[name]


def checked(target: str, config: dict[str, Any] | None = None) -> Report:
    loaded = load_target(target)
    return check_plan(compile_topology(loaded.topology, {**loaded.config, **(config or {})}), loaded.module.__name__)


def found(report: Report) -> Found:
    return {(finding.path, finding.line, finding.rule) for finding in report.findings}


def marked(*files: str) -> Found:
    return {
        (file, number, rule)
        for file in files
        for number, line in enumerate((ROOT / file).read_text().splitlines(), 1)
        for rule in MARK.findall(line)
    }


@pytest.mark.parametrize("program", WRONG)
def test_every_mistake_is_found_in_its_line_and_nothing_else(program: str) -> None:
    files = [f"tests/checked/wrong/{program}.py"]
    if program == "state_of_modules":
        files.append("tests/checked/wrong/helpers.py")
    assert marked(*files)
    report = checked(f"tests.checked.wrong.{program}")
    assert found(report) == marked(*files)
    assert report.unread == ()


def test_there_are_planted_mistakes_for_every_rule() -> None:
    planted = [rule for _, _, rule in marked(*(f"tests/checked/wrong/{program}.py" for program in WRONG))]
    assert set(planted) == {rule.RULE for rule in RULES}
    assert len(planted) >= 40


@pytest.mark.parametrize("target", [*(f"tests.checked.right.{program}" for program in RIGHT), *OTHERS])
def test_nothing_is_found_in_a_program_that_is_right(target: str) -> None:
    report = checked(target)
    assert [finding.text() for finding in report.findings] == []
    assert report.unread == ()


def test_nothing_is_found_in_the_main_example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flights = tmp_path / "flights.csv"
    flights.write_text("carrier,dep_delay,origin,hour\nUA,2,EWR,5\n")
    monkeypatch.setenv("FLIGHT_DELAYS_CSV", str(flights))
    assert checked("examples.flight_delays").findings == ()


def test_in_ported_programs_that_are_right_only_the_pause_of_the_most_copied_tutorial_is_found() -> None:
    rules = {}
    for name, port in PORTS.items():
        report = check_plan(compile_topology(port.topology(), port.conf()), port.program.__name__)
        assert report.unread == ()
        rules[name] = [finding.rule for finding in report.findings]
    assert {name: found for name, found in rules.items() if found} == {"tutorial": ["sleeping-is-ready"]}


@pytest.mark.parametrize("placement", ["driver", "executors"])
def test_nothing_is_found_in_committers_that_hold_what_must_not_be_copied(placement: str, tmp_path: Path) -> None:
    builder = TransactionalTopologyBuilder("holding", "words", spouts.words())
    for holding in ALL_HOLDING:
        if placement in holding.placements:
            builder.set_bolt(holding.__name__, holding(tmp_path)).global_grouping("words")
    plan = compile_topology(builder.build_topology(), {Config.TOPOLOGY_COMMIT_PLACEMENT: placement})
    assert [finding.text() for finding in check_plan(plan, "tests.holding").findings] == []


class TestFindings:
    def test_name_component_method_and_remedy(self) -> None:
        report = checked("tests.checked.wrong.copies")
        assert report.findings[0].text() == (
            "tests/checked/wrong/copies.py:18: bolt 'stores': Stores.finish_batch, by the call in line 46 changes "
            "self.counts[word]: a copy of REPOSITORY.counts of module tests.checked.wrong.copies [copied-object]\n"
            f"    {copied_object.REMEDY}"
        )

    def test_a_committer_on_the_executors_writes_state_of_a_worker(self) -> None:
        report = checked("examples.global_count", {"topology.commit.placement": "executors"})
        assert {finding.rule for finding in report.findings} == {"static-state"}
        assert {finding.component for finding in report.findings} == {"sum"}


def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, name: str) -> str:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / f"{name}.py").write_text(text)
    return name


COUNTING = """
from stormline import BaseBasicBolt
from tests.checked import spouts

COUNTS = {{}}

class Count(BaseBasicBolt):
    def execute(self, tup, collector):
        COUNTS[tup[1]] = COUNTS.get(tup[1], 0) + 1{comment}

def topology():
    return spouts.chain("counting", Count())
"""


class TestAllowing:
    @pytest.mark.parametrize(
        ("comment", "findings"),
        [
            ("  # stormline: allow static-state", 0),
            ("  # stormline: allow replayed-effect, static-state", 0),
            ("  # stormline: allow replayed-effect", 1),
            ("  # static-state", 1),
        ],
    )
    def test_a_comment_in_the_line_silences_the_rules_that_it_names(
        self, comment: str, findings: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        name = f"allowing_{findings}_{len(comment)}"
        module = written(tmp_path, monkeypatch, COUNTING.format(comment=comment), name)
        assert len(checked(module).findings) == findings


PROXIED = """
from stormline import BaseBasicBolt
from tests.checked import spouts

class Proxy:
    def __getattribute__(self, name):
        raise RuntimeError(f"asked for {name}")

class Lazy:
    __dict__ = property(lambda self: 1 / 0)

proxy, lazy = Proxy(), Lazy()

class Asks(BaseBasicBolt):
    def execute(self, tup, collector):
        proxy.counts[tup[1]] += 1
        lazy.counts.append(lazy.count)
        with proxy as opened:
            opened.execute("select 1")

def topology():
    return spouts.chain("proxied", Asks())
"""


def test_no_object_that_the_code_names_is_asked_for_anything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert checked(written(tmp_path, monkeypatch, PROXIED, "proxied")) == Report((), ())


class TestSources:
    def test_a_module_in_a_zip_is_read(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        with zipfile.ZipFile(tmp_path / "bolts.zip", "w") as file:
            file.writestr("zipped_counting.py", COUNTING.format(comment=""))
        monkeypatch.chdir(tmp_path)
        monkeypatch.syspath_prepend(str(tmp_path / "bolts.zip"))
        (finding,) = checked("zipped_counting").findings
        assert (finding.path, finding.line) == ("bolts.zip/zipped_counting.py", 9)

    def test_a_class_that_was_typed_in_is_said_to_be_unread(self) -> None:
        typed = types.ModuleType("typed_in")
        exec(compile(COUNTING.format(comment=""), "<stdin>", "exec"), vars(typed))
        report = check_plan(compile_topology(typed.topology()), "typed_in")
        assert report.findings == ()
        assert report.unread == ("bolt 'bolt': the source of Count cannot be read, so it was not checked",)

    def test_a_class_whose_methods_are_compiled_is_said_to_be_unread(self) -> None:
        compiled = type("Compiled", (BaseBasicBolt,), {"execute": print, "__module__": "compiled"})
        report = check_plan(compile_topology(spouts.chain("compiled", compiled())), "compiled")
        assert report == Report((), ("bolt 'bolt': the source of Compiled cannot be read, so it was not checked",))

    def test_a_source_that_has_changed_since_is_said_to_be_unread(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        module = written(tmp_path, monkeypatch, COUNTING.format(comment=""), "changed_since")
        topology = load_target(module).topology
        (tmp_path / "changed_since.py").write_text("'''Nothing is left.'''\n")
        report = check_plan(compile_topology(topology, Config()), module)
        assert report.unread == ("bolt 'bolt': the source of Count cannot be read, so it was not checked",)

    def test_a_users_package_that_is_installed_is_read_too(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        folder = tmp_path / "site-packages" / "ourshop"
        folder.mkdir(parents=True)
        (folder / "__init__.py").write_text("")
        (folder / "counting.py").write_text(COUNTING.format(comment=""))
        monkeypatch.chdir(tmp_path)
        monkeypatch.syspath_prepend(str(folder.parent))
        assert [finding.rule for finding in checked("ourshop.counting").findings] == ["static-state"]

    def test_an_emitter_that_reading_cannot_tell_is_said_to_be_unread(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        text = """
from stormline import Fields, ITransactionalSpout
from tests.checked import spouts
from tests.checked.wrong.clocks import Sink, Ticks

class Chosen(Ticks):
    def get_emitter(self, conf, context):
        return conf["emitters"][0]

def topology():
    return spouts.chain("chosen", Sink(), spout=Chosen())
"""
        assert checked(written(tmp_path, monkeypatch, text, "chosen")).unread == (
            "spout 'words': what get_emitter returns cannot be told by reading, so it was not checked",
        )

    def test_ready_spouts_and_bolts_of_stormline_are_not_read(self) -> None:
        builder = TransactionalTopologyBuilder("ready", "words", spouts.words())
        report = check_plan(compile_topology(builder.build_topology()), "ready")
        assert report == Report((), ())
