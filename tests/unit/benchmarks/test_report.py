"""The table, the README and the chart come from the JSON alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.figure import Figure, Pair, Status
from benchmarks.goals import GOALS
from benchmarks.report import RESULTS
from benchmarks.reporting.chart import draw, limits, shortened, value_text
from benchmarks.reporting.readme import BEGIN, END, NoMarkers, with_table
from benchmarks.reporting.results import Results, to_json
from benchmarks.reporting.table import markdown_page, markdown_table, terminal_table

ROOT = Path(__file__).resolve().parents[3]
GOAL = {goal.key: goal for goal in GOALS}


@pytest.fixture
def results() -> Results:
    reached = Figure(GOAL["P1"], Status.MEASURED, [Pair(60.0, 100.0), Pair(72.0, 100.0), Pair(90.0, 100.0)])
    missed = Figure(GOAL["P2"], Status.MEASURED, [Pair(1_000_000.0, 5_000_000.0)], notes=["1,000 words."])
    failed = Figure(GOAL["P3"], Status.FAILED, reason="TimeoutError: waited 300 s")
    return Results(
        date="2026-11-21T12:00:00+00:00",
        machine={"cpu": "A | B", "cores": 2, "memory_gb": 23.5, "os": "Linux"},
        versions={"stormline": "0.1.0", "commit": "abc1234", "python": "3.11.7"},
        figures=[reached, missed, failed],
        repeats=3,
        secs=600.0,
        load={"before": [0.1, 0.2, 0.3]},
        caveats=["Figures vary."],
        row_secs={"P1": 20.0},
    )


def test_results_survive_their_file(results: Results, tmp_path: Path) -> None:
    path = results.write(tmp_path / "new")
    assert Results.read(path.parent) == results
    assert [each.name for each in path.parent.iterdir()] == ["latest.json"]


def test_the_file_holds_each_measurement_and_each_verdict(results: Results, tmp_path: Path) -> None:
    data = json.loads(results.write(tmp_path).read_text())
    first = data["figures"][0]
    assert [pair["ours"] for pair in first["pairs"]] == [60.0, 72.0, 90.0]
    assert (first["ratio"], first["ratio_min"], first["ratio_max"], first["reached"]) == (0.72, 0.6, 0.9, True)
    assert data["figures"][2]["reason"] == "TimeoutError: waited 300 s"


def test_results_of_another_format_are_refused(results: Results) -> None:
    with pytest.raises(ValueError, match="results of format 99, expected 1: run the benchmarks again"):
        Results.from_data({**results.to_data(), "format": 99})


def test_lists_of_numbers_stand_on_one_line() -> None:
    text = to_json({"a": [1, -2.5e-7, 3], "b": ["x [1]", "y"]})
    assert '"a": [1, -2.5e-07, 3]' in text
    assert json.loads(text) == {"a": [1, -2.5e-07, 3], "b": ["x [1]", "y"]}


def test_the_table_shows_ratios_goals_and_verdicts(results: Results) -> None:
    lines = markdown_table(results).splitlines()
    assert lines[2] == (
        "| P1 | GlobalCount, batches of 100,000 | bare Python loop, 2 processes | 0.72 (0.6 to 0.9) | ≥ 0.6 | yes | "
        "72.0 : 100 tuples/s |"
    )
    assert "| 0.2 (0.2 to 0.2) | ≥ 0.35 | **no** | 1,000,000 : 5,000,000 tuples/s |" in lines[3]
    assert "| – | ≥ 0.5 | failed |" in lines[4]
    assert lines[-1] == (
        "Measured 2026-11-21, at commit abc1234, on 2 cores of A | B, 23.5 GB, Linux; load average before: 0.10; "
        "Stormline 0.1.0, Python 3.11.7. Each ratio is the median of 3 pairs measured alternately in one run of 10 "
        "minutes."
    )


def test_the_page_has_notes_and_caveats(results: Results) -> None:
    page = markdown_page(results)
    assert "- P2: 1,000 words.\n" in page
    assert "- P3: TimeoutError: waited 300 s.\n" in page
    assert "- Figures vary.\n" in page


def test_the_terminal_does_not_show_what_was_left_out(results: Results) -> None:
    results.figures = [*results.figures, Figure(GOAL["P4a"], Status.LEFT_OUT, reason="not asked for")]
    keys = [key for key in terminal_table(results).columns[0].cells if key]
    assert keys == ["P1", "P2", "P3"]


class TestReadme:
    def test_the_table_takes_the_place_of_the_one_before(self) -> None:
        readme = f"Above\n\n{BEGIN}\nold\n{END}\n\nBelow\n"
        once = with_table(readme, "\n| new |\n")
        assert once == f"Above\n\n{BEGIN}\n| new |\n{END}\n\nBelow\n"
        assert with_table(once, "| new |") == once

    @pytest.mark.parametrize("readme", ["", BEGIN, END, f"{END} {BEGIN}", f"{BEGIN} {END} {BEGIN} {END}"])
    def test_a_readme_without_one_place_for_it_is_refused(self, readme: str) -> None:
        with pytest.raises(NoMarkers, match=r"README\.md needs one line '<!-- benchmarks: begin"):
            with_table(readme, "| new |")

    def test_the_readme_shows_the_results_that_are_kept(self) -> None:
        readme = (ROOT / "README.md").read_text(encoding="utf-8")
        table = markdown_table(Results.read(RESULTS))
        assert with_table(readme, table) == readme, "run `python -m benchmarks.report`"


class TestChart:
    def test_the_scale_holds_every_pair_and_the_goal(self, results: Results) -> None:
        low, high = limits(list(results.figures))
        assert low < 0.2 / 0.35 < 1 < 0.9 / 0.6 < high

    def test_the_text_beside_a_bar_says_whether_the_goal_is_reached(self, results: Results) -> None:
        assert [value_text(figure) for figure in results.figures[:2]] == [
            "✓ 0.72  (goal ≥ 0.6)",
            "✗ 0.2  (goal ≥ 0.35)",
        ]

    def test_a_reason_is_shortened_to_a_line(self, results: Results) -> None:
        failed = results.figures[2]
        assert shortened(failed) == "failed: TimeoutError: waited 300 s"
        assert shortened(failed, 12) == "failed: Tim…"

    def test_it_is_drawn_as_png_and_svg(self, results: Results, tmp_path: Path) -> None:
        pytest.importorskip("matplotlib", reason="matplotlib comes with `make bench`")
        png, svg = draw(results, tmp_path)
        assert png.read_bytes().startswith(b"\x89PNG")
        assert "failed: TimeoutError" in svg.read_text()
