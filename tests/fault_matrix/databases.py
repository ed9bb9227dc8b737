"""What can befall the database that committers write to."""

from __future__ import annotations

from tests.fault_matrix.node_ids import (
    CONTRACT,
    FLIGHTS,
    KAFKA_SINK,
    KAFKA_SINK_REFUSALS,
    LEDGER,
    OF_OPERATORS,
    PLACED,
    POSTGRESQL,
    SQLITE,
    STORE_STOPS,
    TWO_PHASE,
    TWO_PHASE_KILLED,
)
from tests.fault_matrix.row import ONE_PROCESS, Open, Row

ROWS = (
    Row(
        key="database-down",
        fault="is down, or refuses",
        must="replayed until it is back",
        simulated=("database: refused",),
        real=(
            "postgresql-kill: server",
            f"{LEDGER}test_a_database_that_does_not_answer_fails_the_attempt_and_leaves_nothing",
        ),
    ),
    Row(
        key="database-backend-killed",
        fault="the process that serves a commit's connection dies",
        must="rolled back there, replayed",
        simulated=("database: refused",),
        real=("postgresql-kill: backend",),
    ),
    Row(
        key="database-commit-reply-lost",
        fault="the reply to COMMIT is lost: nobody knows whether it happened",
        must="the replay's fence tells, and skips what is there",
        simulated=("database: lost COMMIT reply",),
        real=("postgresql-lost: reply",),
    ),
    Row(
        key="database-request-lost",
        fault="a request is lost",
        must="replayed",
        simulated=("database: refused",),
        real=("postgresql-lost: request",),
    ),
    Row(
        key="database-slow",
        fault="is slow",
        must="later commits wait",
        simulated=("database: slow",),
        real=("postgresql-delay",),
    ),
    Row(
        key="database-cut",
        fault="connections break",
        must="replayed, over a new one",
        simulated=("database: refused",),
        real=("postgresql-cut",),
    ),
    Row(
        key="database-half-open",
        fault="connections stay open and nothing gets through: the commit outlives its time-out",
        must="replayed; what arrives late meets the fence",
        simulated=("database: slow", f"{CONTRACT}test_a_commit_that_does_not_finish_in_time_is_replayed"),
        real=("postgresql-half-open",),
    ),
    Row(
        key="database-deadlock",
        fault="a commit is the victim of a deadlock",
        must="replayed; counts once",
        simulated=("database: refused",),
        real=(f"{POSTGRESQL}test_a_commit_that_is_the_victim_of_a_deadlock_is_replayed_and_counts_once",),
    ),
    Row(
        key="database-serialization",
        fault="a commit cannot be serialized",
        must="replayed; counts once",
        simulated=("database: refused",),
        real=(f"{POSTGRESQL}test_a_commit_that_cannot_be_serialized_is_replayed_and_counts_once",),
    ),
    Row(
        key="database-dirty-connection",
        fault="a pool hands out a connection that is within a transaction",
        must="never: a connection whose commit was broken off is closed (the user's code; the pattern is tested)",
        simulated=ONE_PROCESS,
        real=(f"{POSTGRESQL}test_a_connection_whose_commit_was_broken_off_is_never_used_again",),
    ),
    Row(
        key="database-zombie",
        fault="a write of an attempt, or of a driver, that was replaced arrives late",
        must="the token in the fence turns it away",
        simulated=(
            "job: zombie",
            "driver: paused",
            f"{SQLITE}test_a_driver_that_was_taken_over_stores_nothing",
        ),
        real=(
            "driver-stop",
            f"{PLACED}test_a_zombie_that_outlives_its_executor_is_turned_away_by_its_token",
            f"{LEDGER}test_a_commit_that_comes_again_is_skipped_and_one_that_was_replaced_or_is_too_early_is_turned_away",
        ),
    ),
    Row(
        key="database-lost-commits",
        fault="fails over, or is restored, and has lost commits that it had confirmed",
        must="its fence is behind: the topology stops",
        simulated=(f"{FLIGHTS}test_a_state_that_outlived_the_database_is_refused",),
        real=(
            f"{LEDGER}test_a_commit_that_comes_again_is_skipped_and_one_that_was_replaced_or_is_too_early_is_turned_away",
        ),
    ),
    Row(
        key="database-fence-edited",
        fault="somebody sets the fence to a later transaction",
        must="the topology stops; nothing is changed",
        simulated=(
            f"{OF_OPERATORS}test_a_fence_that_somebody_set_to_a_later_transaction_stops_the_topology_and_stays",
        ),
        real=Open("the fence is compared by the user's code, which is the same in any process"),
    ),
    Row(
        key="database-value-edited",
        fault="somebody edits a value",
        must="nothing can notice; later batches add to it",
        simulated=Open("the values are the user's"),
        real=Open("the values are the user's"),
    ),
    Row(
        key="database-full",
        fault="its disk is full",
        must="replayed until there is room",
        simulated=("database: refused",),
        real=(f"{STORE_STOPS}test_a_postgresql_whose_disk_is_full_is_a_replay_until_there_is_room",),
    ),
    Row(
        key="database-prepared-orphans",
        fault="transactions were prepared (2PC) and never decided",
        must="decided before new work begins",
        simulated=(f"{TWO_PHASE}test_what_a_driver_left_undecided_is_swept_before_anything_is_written",),
        real=(f"{TWO_PHASE_KILLED}test_files_of_a_driver_that_is_killed_at_any_moment_hold_each_row_once",),
    ),
    Row(
        key="database-producer-fenced",
        fault="a queue's producer was fenced, or timed out",
        must="a marker decides, not the error: what is written in the same transaction",
        simulated=ONE_PROCESS,
        real=(
            f"{KAFKA_SINK}test_a_driver_that_was_taken_over_commits_nothing_and_is_stopped",
            f"{KAFKA_SINK_REFUSALS}test_a_producer_that_was_fenced_takes_nothing_more",
        ),
    ),
)
