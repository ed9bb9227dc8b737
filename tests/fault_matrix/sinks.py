"""What can befall a two-phase sink, and what is pre-committed there."""

from __future__ import annotations

from tests.fault_matrix.node_ids import SINK_SWEEPS, TRANSFERS, TWO_PHASE, TWO_PHASE_KILLED
from tests.fault_matrix.row import Open, Row

FILES = Open("the ready sink writes files, which lose no answer; sinks on servers have tests of their own")
LOST = (f"{TRANSFERS}test_replies_that_are_lost_and_a_bank_that_fails_leave_each_transfer_once",)
KILLED = (f"{TWO_PHASE_KILLED}test_files_of_a_driver_that_is_killed_at_any_moment_hold_each_row_once",)

ROWS = (
    Row(
        key="sink-prepare-lost",
        fault="a pre-commit fails, before or after its effect",
        must="replayed under other labels; what is left is aborted",
        simulated=(f"{TWO_PHASE}test_what_fails_before_the_decision_is_written_again_and_what_is_left_is_aborted",),
        real=LOST,
    ),
    Row(
        key="sink-commit-lost",
        fault="a commit is refused, or its answer is lost",
        must="asked again until it is done; nothing is written again",
        simulated=(f"{TWO_PHASE}test_a_commit_that_gets_no_answer_is_asked_again_and_nothing_is_written_again",),
        real=LOST,
    ),
    Row(
        key="sink-driver-dies",
        fault="the driver dies before, between or after the commits of a batch",
        must="what was decided is committed, all else is aborted, before anything is written",
        simulated=(f"{TWO_PHASE}test_a_driver_that_dies_in_a_commit_leaves_the_rest_to_the_next_one",),
        real=KILLED,
    ),
    Row(
        key="sink-zombie",
        fault="a zombie pre-commits late",
        must="invisible; swept",
        simulated=(f"{TWO_PHASE}test_what_a_zombie_pre_commits_late_is_swept",),
        real=FILES,
    ),
    Row(
        key="sink-two-executions",
        fault="Spark runs a task twice, and both pre-commit",
        must="each under a label of its own; the one whose report counts is committed, the other is aborted",
        simulated=(f"{SINK_SWEEPS}test_only_what_nobody_will_ever_commit_was_left_behind",),
        real=FILES,
    ),
    Row(
        key="sink-committer-fails",
        fault="a committer beside the sink fails after the decision",
        must="it is replayed; the handles are used again, and nothing is written twice",
        simulated=(
            f"{TWO_PHASE}test_where_a_committer_fails_the_handles_are_used_again_and_the_rows_are_not_written_twice",
        ),
        real=FILES,
    ),
    Row(
        key="sink-forgets",
        fault="the resource has dropped what was decided",
        must="the topology halts, with what is known, until a person has settled it",
        simulated=(f"{TWO_PHASE}test_lost_halts_and_says_what_is_known_and_so_does_the_next_driver",),
        real=(f"{TRANSFERS}test_a_transfer_that_an_operator_has_rolled_back_halts_and_nothing_later_is_committed",),
    ),
)
