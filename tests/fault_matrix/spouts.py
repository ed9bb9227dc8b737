"""What a spout, or its source, can do."""

from __future__ import annotations

from tests.fault_matrix.node_ids import (
    CAMPAIGN,
    CONTRACT,
    FILES_CHANGE,
    HOSTILE_SPOUT,
    IN_COORDINATION,
    IN_SPOUTS,
    IN_SPOUTS_FILE,
    IN_TASKS,
    KAFKA_LOST,
    MESSAGES,
    OF_EMITTERS,
    OF_SPOUTS,
    ON_SPARK,
    RUNNER,
    SPOUT_ANSWERS,
)
from tests.fault_matrix.row import Open, Row

ROWS = (
    Row(
        key="spout-emitter-remembers",
        fault="an emitter remembers what it has emitted, or holds a connection of its thread",
        must="one object a task, made, called, committed and closed in one thread, for as long as the topology runs",
        simulated=(
            f"{OF_EMITTERS}test_each_task_has_one_emitter_that_is_made_called_and_closed_in_one_thread",
            f"{OF_EMITTERS}test_an_emitter_may_hold_a_connection_of_its_thread",
        ),
        real=Open("such emitters live in the driver, with Spark as without"),
    ),
    Row(
        key="spout-coordinator-sleeps",
        fault="is_ready of a coordinator sleeps",
        must="it is asked in a thread of its own; what is ready after one question begins",
        simulated=(
            "coordinator: hangs",
            f"{IN_COORDINATION}test_spout_questions.py::test_what_a_coordinator_that_sleeps_has_ready_begins_after_one_question",
        ),
        real=Open("coordinators live in the driver, with Spark as without"),
    ),
    Row(
        key="spout-partition-gone",
        fault="a partition of an opaque spout vanishes before its batch is fixed",
        must="the others go on; it goes on where it stood",
        simulated=(
            "partition: vanished",
            f"{HOSTILE_SPOUT}test_a_partition_that_was_gone_for_a_batch_goes_on_where_it_stood",
        ),
        real=("partition-gone",),
    ),
    Row(
        key="spout-partition-gone-after",
        fault="a partition of an opaque spout vanishes after the first effect of its batch",
        must="the transaction waits for it",
        simulated=(
            "partition: vanished",
            f"{CONTRACT}test_an_opaque_batch_whose_rows_are_gone_after_its_commit_began_waits_for_them",
        ),
        real=(
            "partition-gone",
            f"{ON_SPARK}test_an_opaque_batch_whose_rows_are_gone_after_its_commit_began_waits_for_them",
        ),
    ),
    Row(
        key="spout-partition-blocks",
        fault="a partition of a transactional spout vanishes",
        must="its transaction waits; nothing is skipped",
        simulated=(
            "partition: vanished",
            f"{OF_SPOUTS}test_a_partition_that_vanishes_after_the_first_effect_blocks_its_transaction_and_nothing_is_skipped",
        ),
        real=("partition-gone",),
    ),
    Row(
        key="spout-partition-added",
        fault="partitions are added while it runs",
        must="they are read from their beginning",
        simulated=(CAMPAIGN, f"{CONTRACT}test_rows_and_partitions_that_appear_while_it_runs_are_taken"),
        real=(f"{ON_SPARK}test_rows_and_partitions_that_appear_while_it_runs_are_taken",),
    ),
    Row(
        key="spout-reads-otherwise",
        fault="an opaque spout gives more or fewer rows on a replay, before the first effect",
        must="the batch is what it gave last",
        simulated=(
            "spout: read otherwise",
            f"{CONTRACT}test_an_opaque_spout_may_change_until_its_commit_begins_and_not_after",
        ),
        real=(f"{ON_SPARK}test_an_opaque_spout_may_change_until_its_commit_begins_and_not_after",),
    ),
    Row(
        key="spout-fewer-rows",
        fault="fewer rows on a replay than when the commit began",
        must="never committed: replayed until it is the same batch",
        simulated=(
            "spout: read otherwise",
            f"{OF_SPOUTS}test_fewer_rows_than_a_commit_began_with_are_never_committed",
            f"{MESSAGES}test_a_batch_of_another_number_of_tuples_after_its_commit_began_is_not_committed",
        ),
        real=(f"{ON_SPARK}test_an_opaque_batch_whose_rows_are_gone_after_its_commit_began_waits_for_them",),
    ),
    Row(
        key="spout-other-rows",
        fault="an opaque spout gives as many rows as when the commit began, but others",
        must="the checksum differs: replayed until it is the same batch",
        simulated=(
            "spout: read otherwise",
            f"{IN_TASKS}test_batch_recorder.py::test_another_batch_is_never_taken_for_it",
        ),
        real=(f"{ON_SPARK}test_an_opaque_batch_that_comes_out_differently_waits",),
    ),
    Row(
        key="spout-not-idempotent",
        fault="a spout that calls itself transactional gives other rows, as many as before",
        must="it should be noticed; it is not",
        simulated=Open("only their number is compared: the contract of transactional spouts is taken at its word"),
        real=Open("as simulated"),
    ),
    Row(
        key="spout-stale-definition",
        fault="an opaque batch is fixed anew, and later ones, fixed before, began elsewhere",
        must="their definitions are withdrawn first",
        simulated=(
            "spout: read otherwise",
            f"{RUNNER}test_a_stale_batch_of_an_opaque_spout_is_not_taken_for_one_whose_commit_began",
        ),
        real=Open("no real spout of the tests widens its batches between attempts"),
    ),
    Row(
        key="spout-rows-gone",
        fault="rows that a stored batch consists of are gone for ever: retention, a deleted file",
        must="halts and names them",
        simulated=(
            f"{IN_SPOUTS}test_memory.py::test_a_replay_whose_rows_are_gone_halts_instead_of_emitting_fewer",
            f"{FILES_CHANGE}test_a_vanished_file_halts",
        ),
        real=(f"{KAFKA_LOST}test_a_batch_that_must_come_again_and_is_gone_stops_the_topology",),
    ),
    Row(
        key="spout-recreated",
        fault="a source is made anew under its old name, with other content",
        must="halts and names it",
        simulated=(
            f"{FILES_CHANGE}test_other_bytes_in_what_was_read_halt",
            f"{FILES_CHANGE}test_a_restart_reads_the_prefix_again_even_if_size_and_time_are_the_same",
        ),
        real=(f"{KAFKA_LOST}test_a_topic_that_was_made_anew_is_told_whether_it_is_shorter_or_longer",),
    ),
    Row(
        key="spout-file-changes",
        fault="a file grows, shrinks or ends early while it is read",
        must="halts and names it",
        simulated=(
            f"{FILES_CHANGE}test_an_appended_file_halts_planning_restart_and_reading",
            f"{FILES_CHANGE}test_a_shrunk_file_halts",
            f"{FILES_CHANGE}test_a_file_cut_off_while_it_is_read_halts",
        ),
        real=Open("files are read by the same code in one process and on executors"),
    ),
    Row(
        key="spout-bad-record",
        fault="a record cannot be read",
        must="named with file and line, or skipped where the user says so",
        simulated=(
            f"{IN_SPOUTS_FILE}test_lines.py::test_a_bad_csv_row_is_named_or_skipped",
            f"{IN_SPOUTS_FILE}test_lines.py::test_bytes_that_are_no_utf8_are_a_bad_row",
        ),
        real=Open("files are read by the same code in one process and on executors"),
    ),
    Row(
        key="spout-idle",
        fault="has nothing for a long time",
        must="no wave, no write, no busy loop",
        simulated=(f"{OF_SPOUTS}test_an_idle_source_costs_no_wave_no_write_and_few_questions",),
        real=(f"{ON_SPARK}test_nothing_left_means_not_ready_and_no_empty_batches",),
    ),
    Row(
        key="spout-coordinator-fails",
        fault="its coordinator raises FailedException",
        must="it is asked again later",
        simulated=("coordinator: failed", f"{CONTRACT}test_failed_in_a_coordinator_means_asked_again_later"),
        real=(f"{ON_SPARK}test_failed_in_a_coordinator_means_asked_again_later",),
    ),
    Row(
        key="spout-coordinator-raises",
        fault="its coordinator raises anything else",
        must="the topology stops with the traceback",
        simulated=(f"{CONTRACT}test_an_exception_in_a_coordinator_stops",),
        real=(f"{ON_SPARK}test_an_exception_in_a_coordinator_stops",),
    ),
    Row(
        key="spout-coordinator-hangs",
        fault="its coordinator does not answer",
        must="ready commits go on; a warning says in which call the topology waits; all goes on when it answers",
        simulated=(
            f"{IN_COORDINATION}test_loop_watch.py::test_a_coordinator_that_does_not_answer_is_told_of_and_all_goes_on",
        ),
        real=Open("it is called in the driver's one thread, without a time-out, under any engine"),
    ),
    Row(
        key="spout-emitter-fails",
        fault="an emitter raises FailedException, in some of its partitions",
        must="replayed; a partition that was new stays as it was taken",
        simulated=(
            "emitter: failed",
            f"{HOSTILE_SPOUT}test_a_partition_is_new_once_also_where_the_next_partition_fails",
        ),
        real=(f"{ON_SPARK}test_failed_in_an_emitter_replays",),
    ),
    Row(
        key="spout-no-position",
        fault="an emitter emits tuples of a partition and returns None: a return forgotten in one branch",
        must="the topology stops before the batch is fixed, and goes on with a mended spout; they came twice",
        simulated=(
            f"{SPOUT_ANSWERS}"
            "test_an_opaque_emitter_that_emits_and_gives_no_position_stops_the_topology_before_the_batch_is_fixed",
            f"{SPOUT_ANSWERS}"
            "test_a_partitioned_emitter_that_gives_no_position_stops_the_topology_before_its_partition_is_read_again",
        ),
        real=Open("emitters run by the same code in one process and on executors"),
    ),
    Row(
        key="spout-partitions-uncounted",
        fault="says that there are 2.0, None, -1 or '2' partitions",
        must="the topology stops before that is stored, and goes on with a mended spout; no driver could start again",
        simulated=(f"{SPOUT_ANSWERS}test_a_number_of_partitions_that_is_none_is_refused_and_a_mended_spout_goes_on",),
        real=Open("it is refused before it reaches any store"),
    ),
    Row(
        key="spout-direct-tasks",
        fault="another bolt moves the ids of the tasks that a batch was emitted to directly, whose commit has begun",
        must="the batch is known again: which task gets a tuple does not define it",
        simulated=(
            f"{HOSTILE_SPOUT}test_a_frozen_batch_of_direct_tuples_goes_on_where_another_bolt_has_moved_the_task_ids",
        ),
        real=Open("what defines a batch is found out by the same code in one process and on executors"),
    ),
    Row(
        key="spout-commit-beside-emit",
        fault="an emitter in the driver is to commit while it emits",
        must="one call at a time, in the order in which they were due",
        simulated=(
            f"{OF_EMITTERS}test_one_emitter_for_several_tasks_has_one_thread_for_its_calls_and_is_closed_once",
            f"{OF_EMITTERS}test_a_commit_that_is_abandoned_while_the_emitter_emits_is_not_begun_afterwards",
        ),
        real=Open("both are calls in the driver, under any engine"),
    ),
    Row(
        key="spout-commit-hangs",
        fault="an emitter in the driver hangs as it emits, or as it commits",
        must="it is told of, and waited for: what it remembers is needed; its replay follows when it comes back",
        simulated=(
            "emitter: hangs",
            f"{OF_EMITTERS}test_an_emitter_that_hangs_is_told_of_waited_for_and_goes_on_with_what_it_remembers",
        ),
        real=Open("both are calls in the driver, under any engine"),
    ),
    Row(
        key="spout-metadata",
        fault="gives metadata that cannot be stored, or changes it in place",
        must="the first is named; the second does no harm",
        simulated=(
            f"{IN_COORDINATION}test_metadata.py::test_metadata_that_cannot_be_stored_stops_with_the_spouts_name",
            f"{SPOUT_ANSWERS}test_metadata_of_a_partition_that_cannot_be_stored_names_spout_and_partition",
            f"{HOSTILE_SPOUT}test_a_coordinator_and_an_emitter_may_change_metadata_in_place",
        ),
        real=Open("metadata is packed before it reaches any store"),
    ),
)
