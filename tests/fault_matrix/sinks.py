"""What can befall a two-phase sink, and what is pre-committed there."""

from __future__ import annotations

from tests.fault_matrix.node_ids import (
    SINK_SWEEPS,
    THREE_SINKS,
    TRANSFERS,
    TWO_PHASE,
    TWO_PHASE_CHANGES,
    TWO_PHASE_KILLED,
)
from tests.fault_matrix.row import Open, Row

LOST = f"{TRANSFERS}test_replies_that_are_lost_and_a_bank_that_fails_leave_each_transfer_once"
FILES_KILLED = f"{TWO_PHASE_KILLED}test_files_of_a_driver_that_is_killed_at_any_moment_hold_each_row_once"
FIFTY_KILLS = f"{THREE_SINKS}test_fifty_kills_leave_each_row_once_in_three_databases_and_nothing_prepared"

ROWS = (
    Row(
        key="sink-prepare-lost",
        fault="a pre-commit fails, before or after its effect",
        must="replayed under other labels; what is left is aborted",
        simulated=(f"{TWO_PHASE}test_what_fails_before_the_decision_is_written_again_and_what_is_left_is_aborted",),
        real=("prepared-lost: prepare reply", "prepared-lost: prepare request", LOST),
    ),
    Row(
        key="sink-commit-lost",
        fault="a commit is refused, or its answer is lost",
        must="asked again until it is done; nothing is written again",
        simulated=(f"{TWO_PHASE}test_a_commit_that_gets_no_answer_is_asked_again_and_nothing_is_written_again",),
        real=("prepared-lost: commit reply", "prepared-lost: commit request", LOST),
    ),
    Row(
        key="sink-driver-dies",
        fault="the driver dies before, between or after the commits of a batch",
        must="what was decided is committed, all else is aborted, before anything is written",
        simulated=(f"{TWO_PHASE}test_a_driver_that_dies_in_a_commit_leaves_the_rest_to_the_next_one",),
        real=("prepared-driver-kill", FIFTY_KILLS, FILES_KILLED),
    ),
    Row(
        key="sink-server-dies",
        fault="the resource dies before or after a pre-commit, or between the commits of a batch",
        must="what is pre-committed survives; a commit is asked again until the resource is back",
        simulated=(f"{TWO_PHASE}test_a_commit_that_gets_no_answer_is_asked_again_and_nothing_is_written_again",),
        real=("prepared-server-kill", FIFTY_KILLS),
    ),
    Row(
        key="sink-worker-dies",
        fault="a worker dies before or after it has pre-committed, and nobody heard of it",
        must="processed again, under other labels; what it has left is swept",
        simulated=(f"{TWO_PHASE}test_what_fails_before_the_decision_is_written_again_and_what_is_left_is_aborted",),
        real=(FIFTY_KILLS,),
    ),
    Row(
        key="sink-bolt-removed",
        fault="a bolt that has pre-committed is taken out of the topology",
        must="refused, with what stays there; where it is allowed, what was decided halts, and the rest is told of",
        simulated=(
            f"{TWO_PHASE_CHANGES}test_what_a_bolt_that_is_gone_has_prepared_is_told_of_and_aborted_where_it_comes_back",
            f"{TWO_PHASE_CHANGES}test_a_decided_transaction_of_a_bolt_that_is_gone_stops_the_topology",
        ),
        real=Open("nothing of it depends on the resource"),
    ),
    Row(
        key="sink-zombie",
        fault="a zombie pre-commits late",
        must="invisible; swept",
        simulated=(f"{TWO_PHASE}test_what_a_zombie_pre_commits_late_is_swept",),
        real=("prepared-late",),
    ),
    Row(
        key="sink-two-executions",
        fault="Spark runs a task twice, and both pre-commit",
        must="each under a label of its own; the one whose report counts is committed, the other is aborted",
        simulated=(f"{SINK_SWEEPS}test_only_what_nobody_will_ever_commit_was_left_behind",),
        real=(FIFTY_KILLS,),
    ),
    Row(
        key="sink-committer-fails",
        fault="a committer beside the sink fails after the decision",
        must="it is replayed; the handles are used again, and nothing is written twice",
        simulated=(
            f"{TWO_PHASE}test_where_a_committer_fails_the_handles_are_used_again_and_the_rows_are_not_written_twice",
        ),
        real=Open("the committers beside sinks of the chaos runs fail by the database, with the sink"),
    ),
    Row(
        key="sink-forgets",
        fault="the resource has dropped what was decided",
        must="the topology halts, with what is known, until a person has settled it",
        simulated=(f"{TWO_PHASE}test_lost_halts_and_says_what_is_known_and_so_does_the_next_driver",),
        real=(f"{TRANSFERS}test_a_transfer_that_an_operator_has_rolled_back_halts_and_nothing_later_is_committed",),
    ),
)
