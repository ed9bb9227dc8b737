"""What bolts can do."""

from __future__ import annotations

from tests.fault_matrix.node_ids import (
    CAMPAIGN,
    COMMITTER_DEADLINES,
    CONTRACT,
    HOSTILE_RUNNER,
    IN_TASKS,
    IN_TUPLES,
    KEYS,
    MESSAGES,
    ON_SPARK,
    PLACED_ON_SPARK,
    RUNNER,
    SUBMIT,
    TEXTS,
    THREADS,
)
from tests.fault_matrix.row import ONE_PROCESS, Open, Row

ROWS = (
    Row(
        key="bolt-fails",
        fault="a bolt raises FailedException, in whichever method",
        must="this and later transactions are replayed",
        simulated=("bolt: failed", f"{CONTRACT}test_failed_in_a_batch_bolt_replays"),
        real=("failing-tuple", f"{ON_SPARK}test_failed_in_a_batch_bolt_replays"),
    ),
    Row(
        key="bolt-fails-in-commit",
        fault="a committer raises FailedException, before or after its effect",
        must="replayed; counts once",
        simulated=("committer: failed", f"{CONTRACT}test_failed_in_a_committer_replays_and_counts_once"),
        real=(
            f"{ON_SPARK}test_failed_in_a_committer_replays_and_counts_once",
            f"{ON_SPARK}test_failed_on_the_executors_replays_and_counts_once",
        ),
    ),
    Row(
        key="bolt-fails-always",
        fault="a batch fails in every attempt",
        must="replays slow down, and end where the user sets a limit, with the cause",
        simulated=(f"{CONTRACT}test_a_batch_that_fails_too_often_stops_with_the_cause",),
        real=(f"{ON_SPARK}test_a_batch_that_fails_too_often_stops_with_the_cause",),
    ),
    Row(
        key="bolt-raises",
        fault="a bolt raises anything else: a tuple that no code was written for",
        must="those before it are committed, then the topology stops with the traceback; mended, it goes on",
        simulated=(
            "bolt: bug",
            "committer: bug",
            f"{IN_TASKS}test_unusual_bolts.py::test_whatever_user_code_raises_stops_the_topology_with_its_traceback",
            f"{CONTRACT}test_another_exception_stops_at_its_transaction_and_the_next_run_goes_on",
        ),
        real=(
            "poison-tuple",
            f"{ON_SPARK}test_another_exception_stops_at_its_transaction_and_the_next_run_goes_on",
            f"{SUBMIT}test_a_failing_bolt_ends_with_the_users_traceback_and_an_exit_code",
        ),
    ),
    Row(
        key="bolt-exits",
        fault="a bolt ends its process (`os._exit`, a crash in C)",
        must="as a Python worker that dies",
        simulated=ONE_PROCESS,
        real=(f"{PLACED_ON_SPARK}test_a_python_worker_that_dies_in_a_commit_shows_no_token_to_user_code_twice",),
    ),
    Row(
        key="bolt-hangs-in-commit",
        fault="a committer hangs",
        must=(
            "after the time-out it begins and emits nothing more and is not recorded; its replay waits for its end, so "
            "that what it still does comes before the replay's; where it stands is told, again and again"
        ),
        simulated=(
            "committer: hangs",
            f"{COMMITTER_DEADLINES}test_after_a_commit_that_hangs_nothing_begins_before_it_has_ended_and_it_is_told_of",
            f"{HOSTILE_RUNNER}test_a_commit_that_was_abandoned_begins_nothing_more_when_it_wakes_up",
        ),
        real=(
            f"{ON_SPARK}test_a_commit_that_hangs_is_waited_for_and_told_of",
            f"{PLACED_ON_SPARK}test_what_a_cancelled_commit_does_has_ended_before_the_next_attempt_begins",
        ),
    ),
    Row(
        key="bolt-emits-wrongly",
        fault="emits what was not declared, or what cannot travel",
        must="stops; component, stream and field are named",
        simulated=(f"{CONTRACT}test_emitting_what_was_not_declared_stops_at_once",),
        real=(f"{ON_SPARK}test_emitting_what_was_not_declared_stops_at_once",),
    ),
    Row(
        key="bolt-catches-emit",
        fault="catches what an emit raises, and goes on",
        must="the attempt fails all the same where tuples of other calls went with it",
        simulated=(
            f"{IN_TASKS}test_unusual_bolts.py::test_an_error_of_emit_that_a_bolt_catches_does_not_lose_the_rows_of_its_other_calls",
        ),
        real=Open("the collector on Spark is the same object as in the double"),
    ),
    Row(
        key="bolt-hangs-in-prepare",
        fault="hangs in prepare at the commit",
        must="it is told of; the topology can be killed, and goes on when it is submitted again",
        simulated=(
            f"{RUNNER}test_a_topology_whose_bolt_hangs_in_prepare_at_the_commit_can_be_killed_and_goes_on_when_it_is_submitted_again",
        ),
        real=Open("the loop and its locks on Spark are those of the double"),
    ),
    Row(
        key="bolt-hides-state",
        fault="a committer's class leaves out, when it is pickled, what it gathers",
        must="it is executed in the driver, and nothing of it is pickled; where it declares gathers, it is refused",
        simulated=(
            f"{IN_TASKS}test_bolt_state.py::test_what_a_committer_gathers_beside_its_pickled_state_is_not_lost",
            f"{IN_TASKS}test_gathered.py::test_what_is_no_plain_data_is_refused_with_attribute_and_remedy",
        ),
        real=Open("what is gathered travels by Spark as by the double"),
    ),
    Row(
        key="bolt-module-object",
        fault="a committer writes into an object of its module: a dict that is its database",
        must="it is executed in the driver, where that object is",
        simulated=(f"{CONTRACT}test_a_committer_whose_database_is_a_dict_of_its_module_writes_into_that_one",),
        real=(f"{ON_SPARK}test_a_committer_whose_database_is_a_dict_of_its_module_writes_into_that_one",),
    ),
    Row(
        key="bolt-gathers-less",
        fault="execute of a bolt that declares gathers changes what gathers does not name",
        must="the topology stops before the commit, and names the attribute",
        simulated=(
            f"{IN_TASKS}test_other_state.py::test_what_execute_changes_beside_what_it_gathers_stops_the_topology_by_name",
        ),
        real=Open("the check is of the bolt's task, the same on Spark"),
    ),
    Row(
        key="bolt-one-thread",
        fault="a task of a committer keeps a connection that belongs to the thread that made it",
        must="it is called in that thread for as long as the topology runs",
        simulated=(
            f"{IN_TASKS}test_commit_threads.py::test_what_a_task_keeps_from_batch_to_batch_is_used_in_the_thread_that_made_it",
        ),
        real=Open("commits run in the driver, with Spark as without"),
    ),
    Row(
        key="bolt-emits-late",
        fault="a thread of a bolt emits when its attempt is over",
        must="refused",
        simulated=(f"{MESSAGES}test_a_collector_that_outlives_its_attempt_refuses_tuples",),
        real=Open("the collector is the same in every process"),
    ),
    Row(
        key="bolt-not-deterministic",
        fault="gives other tuples, in another order, on each attempt; hashes differ by process",
        must="each attempt is complete in itself; routing is the same everywhere",
        simulated=(
            CAMPAIGN,
            f"{IN_TUPLES}test_partitioning.py::test_routing_is_the_same_in_every_process_and_for_ever",
        ),
        real=Open("the chaos runs' bolts are deterministic, so that their sums can be checked"),
    ),
    Row(
        key="bolt-emits-from-threads",
        fault="threads of a component's own emit, side by side; joined before the call returns, or not",
        must="what was emitted by then is there; what is seen to come later stops the topology, with a sentence",
        simulated=(
            f"{THREADS}test_what_a_bolt_emits_from_threads_is_all_committed",
            f"{THREADS}test_what_an_emitter_emits_from_threads_is_all_committed",
            f"{THREADS}test_a_topology_whose_bolt_does_not_join_its_thread_stops_and_says_so",
        ),
        real=Open("the collector on Spark is the same object as in the double"),
    ),
    Row(
        key="bolt-hostile-exception",
        fault="raises what ends a process, or hangs, when it is shown, pickled or unpickled; or says 30 MB, or escapes",
        must="the topology fails, with a text that is bounded and that no terminal obeys",
        simulated=(
            f"{TEXTS}test_whatever_an_exception_does_the_topology_fails_with_a_text_that_can_be_shown",
            f"{TEXTS}test_an_exception_that_hangs_when_it_is_unpickled_does_not_keep_a_topology_from_ending",
        ),
        real=Open("failures of executors are made and told by the same code"),
    ),
    Row(
        key="bolt-keys-of-types",
        fault="keys of a fields grouping are equal to Python and of different types: 5, numpy.int64(5), Decimal(5)",
        must="a key's task is the same in every process, whatever was seen before; equal numbers are one key",
        simulated=(
            f"{KEYS}test_where_a_key_goes_does_not_depend_on_what_was_seen_before",
            f"{KEYS}test_another_process_sends_each_key_to_the_same_task_though_its_strings_hash_otherwise",
        ),
        real=Open("Spark's workers route by the same code; two processes are compared without it"),
    ),
    Row(
        key="bolt-holds-connection",
        fault="a committer holds what cannot travel (a connection)",
        must="it is prepared, executed and finished in the driver",
        simulated=(f"{CONTRACT}test_a_committer_that_opens_in_prepare_what_cannot_travel_works_as_written",),
        real=(f"{ON_SPARK}test_a_committer_that_opens_in_prepare_what_cannot_travel_works_as_written",),
    ),
)
