"""Ratios, medians, slopes, the rule of linear cost, and what the recorder keeps."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.__main__ import chosen
from benchmarks.figure import Figure, Goal, Pair, Status, percentile, plain, slope, step_ratios, worst_step
from benchmarks.figures import RUNS
from benchmarks.figures.killed_driver import turns
from benchmarks.goals import GOALS, ROWS
from benchmarks.measuring.bench import alternately
from benchmarks.measuring.machine import ROOT
from benchmarks.measuring.recorder import NotAvailable, Recorder

KAFKA = ("K1", "K2", "K3", "K4", "K5")
TWO_PHASE = ("T1", "T2")
AT_LEAST = Goal("P1", "P1", "ours", "theirs", "tuples/s", 0.6)
AT_MOST = Goal("P7", "P7", "ours", "theirs", "ms", 1.5, at_most=True)


def figure(goal: Goal, *pairs: tuple[float, float]) -> Figure:
    return Figure(goal, Status.MEASURED, [Pair(ours, theirs) for ours, theirs in pairs])


def test_the_ratio_is_the_median_of_the_pairs_ratios_not_the_ratio_of_the_medians() -> None:
    measured = figure(AT_LEAST, (1, 10), (5, 10), (9, 1))
    assert measured.ratios == [0.1, 0.5, 9]
    assert measured.ratio == 0.5
    assert (measured.ours, measured.theirs) == (5, 10)


def test_a_goal_is_reached_from_above_or_from_below() -> None:
    assert figure(AT_LEAST, (6, 10)).reached is True
    assert figure(AT_LEAST, (5.9, 10)).reached is False
    assert figure(AT_MOST, (15, 10)).reached is True
    assert figure(AT_MOST, (15.1, 10)).reached is False


def test_the_score_is_above_one_where_the_goal_is_more_than_reached_whatever_its_direction() -> None:
    assert AT_LEAST.score(1.2) == pytest.approx(2)
    assert AT_MOST.score(0.75) == pytest.approx(2)
    assert (AT_LEAST.text, AT_MOST.text) == ("≥ 0.6", "≤ 1.5")


def test_nothing_is_said_of_a_goal_where_the_figure_was_not_measured_to_its_end() -> None:
    assert Figure(AT_LEAST).ratio is None
    assert Figure(AT_LEAST).reached is None
    broken_off = Figure(AT_LEAST, Status.INTERRUPTED, [Pair(9, 1)])
    assert (broken_off.ratio, broken_off.reached) == (9, None)


def test_a_figure_survives_json() -> None:
    kept = Figure(AT_MOST, Status.FAILED, [Pair(1, 2, {"secs": [3.5]})], "why", ["note"])
    assert Figure.from_data(kept.to_data()) == kept


def test_percentiles_are_values_that_were_measured() -> None:
    values = [float(n) for n in range(1, 101)]
    assert (percentile(values, 50), percentile(values, 99), percentile(values, 100)) == (50, 99, 100)
    assert (percentile([7.0], 50), percentile([3.0, 1.0, 2.0], 50)) == (7, 2)


def test_the_slope_is_that_of_the_line_through_the_points() -> None:
    assert slope([(0, 1), (10, 3), (20, 5)]) == pytest.approx(0.2)
    assert slope([(0, 4), (10, 4)]) == 0
    assert slope([(5, 4)]) == 0


def test_the_worst_step_is_found_between_any_two_sizes_by_the_median_of_the_rounds() -> None:
    costs = {1: [9.0, 9.0, 9.0], 10: [2.0, 2.0, 2.0], 100: [1.0, 2.1, 9.0], 1_000: [2.4, 2.2, 2.3]}
    assert worst_step(costs) == (10, 1_000)  # not (100, 1_000), whose ratio is 2.4 in one round only
    assert step_ratios(costs, 10, 1_000) == [1.2, 1.1, 1.15]


def test_linear_costs_have_no_bad_step() -> None:
    costs = {2: [1.0, 2.0], 8: [1.0, 2.0], 64: [1.0, 2.0]}
    assert step_ratios(costs, *worst_step(costs)) == [1, 1]


@pytest.mark.parametrize(
    ("number", "text"),
    [(1234567.8, "1,234,568"), (123.4, "123"), (12.34, "12.3"), (1.234, "1.23"), (0.1234, "0.123"), (0.6, "0.6")],
)
def test_numbers_are_written_with_three_digits(number: float, text: str) -> None:
    assert plain(number) == text


def test_every_other_round_is_taken_in_reverse_and_given_in_order() -> None:
    taken: list[str] = []

    def measure(name: str) -> str:
        taken.append(name)
        return name

    assert alternately(0, lambda: measure("a"), lambda: measure("b")) == ["a", "b"]
    assert alternately(1, lambda: measure("a"), lambda: measure("b")) == ["a", "b"]
    assert taken == ["a", "b", "b", "a"]


class TestRecorder:
    def test_rows_that_are_not_asked_for_are_left_out(self) -> None:
        recorder = Recorder(frozenset(["P1"]))
        assert recorder.wants("P1")
        assert not recorder.wants("P2")
        assert recorder.figures["P2"].status is Status.LEFT_OUT

    def test_a_row_that_ends_well_is_measured_and_one_without_pairs_has_failed(self) -> None:
        recorder = Recorder(frozenset(["P10"]))
        recorder.pair("P10a", 1, 2, secs=3)
        recorder.ended(("P10",))
        assert recorder.figures["P10a"].status is Status.MEASURED
        assert recorder.figures["P10a"].pairs == [Pair(1, 2, {"secs": 3})]
        assert recorder.figures["P10b"].status is Status.FAILED

    def test_a_row_that_raises_has_failed_with_its_reason_and_keeps_its_pairs(self) -> None:
        recorder = Recorder(frozenset(["P1", "P8"]))
        recorder.pair("P1", 1, 2)
        recorder.ended(("P1",), ZeroDivisionError("no time has passed"))
        recorder.ended(("P8",), NotAvailable("columnar bolts"))
        failed = recorder.figures["P1"]
        assert (failed.status, failed.reason) == (Status.FAILED, "ZeroDivisionError: no time has passed")
        assert len(failed.pairs) == 1
        assert recorder.figures["P8a"].status is Status.NOT_AVAILABLE

    def test_a_pair_that_grows_with_the_run_is_the_only_one(self) -> None:
        recorder = Recorder(frozenset(["S6"]))
        recorder.in_place("S6b", 1, 2, kills=5)
        recorder.in_place("S6b", 3, 4, kills=10)
        recorder.interrupted()
        assert recorder.figures["S6b"].pairs == [Pair(3, 4, {"kills": 10})]

    def test_a_figure_that_was_given_up_stays_so(self) -> None:
        recorder = Recorder(frozenset(["P5"]))
        recorder.give_up("P5a", Status.FAILED, "bytewax: gone")
        recorder.give_up("P5a", Status.FAILED, "another reason")
        recorder.pair("P5b", 1, 2)
        recorder.ended(("P5",))
        assert recorder.figures["P5a"].reason == "bytewax: gone"
        assert recorder.figures["P5b"].status is Status.MEASURED

    def test_an_interrupted_run_keeps_what_was_measured(self) -> None:
        recorder = Recorder(frozenset(["P1", "P2"]))
        recorder.pair("P1", 1, 2)
        recorder.ended(("P1",))
        recorder.pair("P2", 1, 2)
        recorder.interrupted()
        assert recorder.figures["P1"].status is Status.MEASURED
        assert recorder.figures["P2"].status is Status.INTERRUPTED
        assert recorder.figures["P2"].reason == "the run was stopped after 1 pairs"

    def test_reasons_name_no_place_of_this_machine(self) -> None:
        recorder = Recorder(frozenset(["P1"]))
        recorder.ended(("P1",), OSError(f"cannot read {ROOT / 'benchmarks'} or {Path.home() / 'x'}"))
        assert recorder.figures["P1"].reason == "OSError: cannot read ./benchmarks or ~/x"


def test_every_row_has_one_run_and_every_figure_a_row() -> None:
    assert sorted(row for run in RUNS for row in run.rows) == sorted(ROWS)
    assert len({goal.key for goal in GOALS}) == len(GOALS)
    ours = (*(f"P{number}" for number in range(1, 12)), *(f"S{number}" for number in range(1, 7)))
    assert (*ours, *KAFKA, *TWO_PHASE) == ROWS


def test_kills_are_taken_in_turns() -> None:
    assert (turns(20), turns(7), turns(1)) == ([5, 5, 5, 5], [5, 2], [1])


def test_rows_are_chosen_by_name() -> None:
    assert chosen("p1, P3", no_peers=False) == {"P1", "P3"}
    assert chosen(None, no_peers=True) == set(ROWS) - {"P4", "P5", "P6", "S5", "S6", "K3", "K4"}
    with pytest.raises(Exception, match="there is no row 'P99'; there are P1, P2"):
        chosen("P99", no_peers=False)
