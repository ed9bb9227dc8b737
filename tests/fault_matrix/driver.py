"""What can befall a driver."""

from __future__ import annotations

from tests.fault_matrix.node_ids import (
    CLI,
    COMMITTER,
    CONTRACT,
    HOSTILE_RUNNER,
    IN_COORDINATION,
    IN_SPARK,
    IN_STATE,
    JVM,
    KILLED,
    LIMITS,
    ON_SPARK,
    RUNNER,
    SIMULATED,
    SUBMIT,
    ZK_CONTRACT,
    ZK_STORE,
)
from tests.fault_matrix.row import ONE_PROCESS, Open, Row

ROWS = (
    Row(
        key="driver-killed",
        fault="killed at any moment (`kill -9`)",
        must="the next driver goes on with the stored batches; every tuple counts once",
        simulated=("driver: killed", "driver: killed in a write"),
        real=(
            "driver-kill",
            KILLED,
            "tests/cluster/test_flight_delays_killed.py::test_killed_and_resumed_it_equals_what_pandas_computes",
        ),
    ),
    Row(
        key="driver-killed-before-effect",
        fault="killed when a commit has begun, before its first effect",
        must="the same batch is committed by the next driver",
        simulated=("driver: killed",),
        real=("driver-kill: at before-commit", KILLED),
    ),
    Row(
        key="driver-killed-in-effect",
        fault="killed within a transaction of the database",
        must="the database rolls back; the same batch is committed by the next driver",
        simulated=Open("a transaction of the simulated databases is one event, which nothing divides"),
        real=("driver-kill: at within-commit", KILLED),
    ),
    Row(
        key="driver-killed-after-effect",
        fault="killed after the last effect, before the commit is recorded",
        must="the replay finds its txid beside the values and changes nothing",
        simulated=("driver: killed",),
        real=("driver-kill: at after-commit", KILLED),
    ),
    Row(
        key="driver-killed-between-effects",
        fault="killed when some tasks of a commit have stored and others have not",
        must="the frozen batch comes again, as it was; each task stores once",
        simulated=("driver: killed", "committer: failed"),
        real=("driver-kill: at after-commit", KILLED),
    ),
    Row(
        key="driver-killed-between-writes",
        fault="killed between the writes of what a wave has fixed, which was too large for one",
        must="no fixed batch that the next driver finds begins elsewhere than the one before it ends",
        simulated=(
            "driver: killed",
            f"{RUNNER}test_what_defined_later_batches_is_withdrawn_before_earlier_ones_are_fixed_anew",
        ),
        real=Open("no test has a megabyte of metadata"),
    ),
    Row(
        key="driver-executors-survive",
        fault="its Python process dies; its JVM and executors live on",
        must="they end by themselves; what they still do belongs to an attempt that is over",
        simulated=Open("the simulated executors end with their driver"),
        real=("driver-kill: driver", KILLED),
    ),
    Row(
        key="driver-jvm-dies",
        fault="its JVM dies; its Python process lives on",
        must="the topology stops and says so; the next driver goes on",
        simulated=ONE_PROCESS,
        real=(f"{JVM}test_a_driver_whose_jvm_is_killed_ends_in_time_with_an_error_and_the_next_run_goes_on",),
    ),
    Row(
        key="driver-jvm-hangs",
        fault="its JVM hangs: no call to Spark returns",
        must="the loop goes on; the topology ends in time, of itself or when told to, and the JVM with it; the next "
        "one goes on",
        simulated=(
            f"{IN_COORDINATION}test_wave_thread.py::test_a_cancel_that_does_not_return_is_told_of_and_waited_for_no_longer",
            f"{IN_SPARK}test_hung_jvm.py::test_a_jvm_that_hangs_is_killed_where_this_process_started_it",
        ),
        real=(
            f"{JVM}test_a_driver_whose_jvm_hangs_ends_in_time_with_an_error_and_the_next_run_goes_on",
            f"{JVM}test_an_idle_driver_whose_jvm_hangs_ends_in_time_when_it_is_told_to_and_the_next_run_goes_on",
        ),
    ),
    Row(
        key="driver-sleeps",
        fault="sleeps past its session, another one takes over, and it wakes up (zombie)",
        must="each of its writes is refused and it ends; its database writes are turned away by the token",
        simulated=("driver: paused", "driver: paused in a write", "closed unheard"),
        real=("driver-stop", f"{ZK_STORE}TestTakeOver::test_a_driver_that_slept_past_its_session_writes_nothing"),
    ),
    Row(
        key="driver-sleeps-in-commit",
        fault="sleeps in the middle of a commit, and wakes up when its successor is further",
        must="the fence of the database turns it away; it begins no further commit",
        simulated=(
            "driver: paused",
            f"{HOSTILE_RUNNER}test_a_driver_that_lost_its_session_in_a_commit_begins_nothing_more",
        ),
        real=("driver-stop: at within-commit", "driver-stop: at before-commit"),
    ),
    Row(
        key="driver-second",
        fault="a second driver of the same topology is started",
        must="it is refused, with process and machine of the first",
        simulated=("driver: second", f"{CONTRACT}test_a_second_driver_of_the_same_topology_is_refused"),
        real=(
            "driver-rival",
            f"{ZK_STORE}TestTakeOver::test_a_second_driver_in_another_process_is_refused_at_once",
            f"{ZK_STORE}TestTakeOver::test_of_two_that_open_at_once_one_is_refused",
        ),
    ),
    Row(
        key="driver-second-elsewhere",
        fault="a second driver on another machine, which cannot see whether the first lives",
        must="it waits for the first one's session to end, and is refused where it does not",
        simulated=("driver: second",),
        real=(
            f"{ZK_STORE}TestTakeOver::test_a_driver_of_another_host_is_given_time_to_vanish",
            f"{ZK_STORE}TestTakeOver::test_a_live_driver_of_another_host_is_refused_in_the_end",
        ),
    ),
    Row(
        key="driver-hidden",
        fault="a second driver, of another user, where /proc hides processes of others (`hidepid`)",
        must="what cannot be seen is not dead: as on another machine",
        simulated=(
            f"{IN_STATE}test_driver_identity.py::test_of_a_process_that_proc_hides_it_is_only_known_whether_its_id_is_taken",
        ),
        real=(
            "tests/cluster/test_hidden_processes.py::"
            "test_a_driver_that_proc_hides_from_other_users_is_not_taken_for_dead",
        ),
    ),
    Row(
        key="driver-cloned-machine",
        fault="machines are clones of one snapshot: same boot id, host name and process ids",
        must="a driver that lives on one is not dead to the others; of a driver and its clone the second to write ends",
        simulated=(
            f"{IN_STATE}test_driver_identity.py::test_who_left_no_mark_here_may_live_on_a_clone_of_this_machine",
            f"{SIMULATED}test_of_a_driver_and_its_clone_the_first_to_write_goes_on_and_the_other_is_fenced",
        ),
        real=Open("no test clones a machine"),
    ),
    Row(
        key="driver-closes-for-ever",
        fault="its components, or Spark without workers, do not close at its end",
        must="it gives the topology up all the same, and says so",
        simulated=(f"{RUNNER}test_what_hangs_while_it_closes_keeps_neither_the_topology_nor_who_waits_for_its_end",),
        real=Open("no test takes all workers away while a topology ends"),
    ),
    Row(
        key="driver-error-in-commit",
        fault="stops by an error of a later transaction, or of the spout, while a healthy commit runs",
        must="the commit ends and is recorded before the topology ends, so that it is over when the next run begins",
        simulated=(
            "bolt: bug",
            f"{HOSTILE_RUNNER}test_a_topology_that_stops_by_an_error_lets_the_commit_that_runs_end_and_records_it",
            f"{HOSTILE_RUNNER}test_a_commit_that_hangs_keeps_a_topology_that_stops_by_an_error_for_a_while_only",
        ),
        real=Open("the double and Spark share the runner; no real test times an error into a commit"),
    ),
    Row(
        key="driver-supervised",
        fault="a supervisor starts it again while the old one still lives, as `--supervise` or YARN may",
        must="as a second driver",
        simulated=("driver: second",),
        real=Open("clusters are tried in client mode only; the chaos runs have a supervisor of their own"),
    ),
    Row(
        key="driver-taken-over-unawares",
        fault="is taken over and hears nothing of it",
        must="it begins no commit without a proof of its ownership, and is told by its next write",
        simulated=(f"{RUNNER}test_a_driver_that_was_taken_over_unawares_begins_no_commit",),
        real=(f"{ZK_CONTRACT}test_the_write_of_a_zombie_is_rejected_after_a_take_over",),
    ),
    Row(
        key="driver-submit-killed",
        fault="the spark-submit that started it is killed",
        must="it gives the topology up and ends",
        simulated=ONE_PROCESS,
        real=(f"{SUBMIT}test_a_driver_whose_spark_submit_is_killed_gives_the_topology_up",),
    ),
    Row(
        key="driver-stopped",
        fault="is told to stop (SIGTERM, Ctrl-C) while a commit runs",
        must="it stops after that commit; the next run goes on",
        simulated=("driver: stopped",),
        real=(f"{CLI}test_a_signal_stops_after_the_commit_that_runs_and_the_next_run_goes_on",),
    ),
    Row(
        key="driver-stopped-twice",
        fault="is told to stop again, or while Spark starts",
        must="it ends at once; the next run goes on",
        simulated=("driver: killed",),
        real=(
            f"{CLI}test_a_second_signal_stops_at_once_and_the_next_run_goes_on",
            f"{CLI}test_a_signal_while_spark_starts_ends_the_process_at_once",
        ),
    ),
    Row(
        key="driver-machine-sleeps",
        fault="its machine sleeps past the session: a laptop is closed, a virtual machine paused",
        must="it proves its ownership before it begins a commit: time that was slept through counts",
        simulated=(
            "driver: paused",
            "driver: paused in a write",
            f"{COMMITTER}test_a_machine_that_slept_proves_its_ownership_before_the_next_commit",
            f"{COMMITTER}test_a_driver_that_slept_while_it_proved_its_ownership_proves_it_again",
        ),
        real=Open("no test puts a machine to sleep"),
    ),
    Row(
        key="driver-clock",
        fault="its clock jumps by an hour or a day, and back: what `time.time` tells its Python code",
        must="nothing: what is measured is measured by the monotonic clock",
        simulated=Open("the simulated clock is monotonic, and there is no other"),
        real=("clock-jump",),
    ),
    Row(
        key="server-clock",
        fault="the clock of ZooKeeper's machine, of the database's, or of an executor's jumps",
        must="nothing: sessions are measured by ZooKeeper's monotonic clock, and no law leans on a time of day",
        simulated=Open("the simulated clock is monotonic, and there is no other"),
        real=Open("a container has no clock of its own; under libfaketime Python 3.11 hangs"),
    ),
    Row(
        key="driver-attempt-ids",
        fault="restarts while replies to its predecessor's attempts are under way",
        must="no attempt id comes twice; they change nothing",
        simulated=(
            "driver: killed",
            f"{IN_COORDINATION}test_coordinator.py::test_attempt_ids_of_a_later_epoch_are_greater_than_all_of_an_earlier_one",
        ),
        real=(f"{ON_SPARK}test_kill_stops_and_the_same_id_goes_on_with_a_higher_epoch",),
    ),
    Row(
        key="driver-stale-events",
        fault="hears of an attempt that is over: processed, failed or committed, late or twice",
        must="it is dropped",
        simulated=(
            "task: late",
            f"{IN_COORDINATION}test_coordinator.py::test_whatever_belongs_to_an_attempt_that_is_not_current_changes_nothing",
            "tests/model/test_coordinator_model.py::TestHistories",
        ),
        real=("python-worker-stop", "executor-pause"),
    ),
    Row(
        key="driver-many-pending",
        fault="works on 10,000 transactions at once",
        must="what a transaction costs does not grow with their number",
        simulated=(
            f"{IN_COORDINATION}test_coordinator.py::test_a_step_copies_little_of_ten_thousand_active_transactions",
        ),
        real=Open("the coordinator knows no engine"),
    ),
    Row(
        key="driver-memory",
        fault="runs out of memory",
        must="it ends; no commit is half recorded; the next one goes on",
        simulated=Open("no double has a limit of memory"),
        real=Open(
            "the kernel ends it, as kill -9 does; where `ulimit -v` lets Python fail instead, starting a thread may "
            "hang for ever (CPython's bug 140746): a warning says so, and the next driver goes on when it is killed"
        ),
    ),
    Row(
        key="driver-files",
        fault="runs out of file descriptors",
        must="the topology stops with the error; the next run goes on",
        simulated=Open("no double opens files"),
        real=(f"{LIMITS}test_a_driver_without_file_descriptors_stops_with_the_error_and_the_next_run_goes_on",),
    ),
    Row(
        key="driver-disk-full-at-start",
        fault="its disk is full when it starts: that of the state directory, or that of Spark's local directory",
        must="one sentence says what found no room, and where; with room it starts",
        simulated=Open("no double writes to a disk"),
        real=(
            "tests/cluster/test_full_disk.py::test_a_disk_that_has_no_room_for_the_state_is_told_of_in_one_sentence",
            "tests/cluster/test_full_disk.py::test_a_disk_that_has_no_room_for_sparks_files_is_told_of_in_one_sentence",
        ),
    ),
    Row(
        key="driver-disk",
        fault="its disk is full: Spark's own files, or the embedded ZooKeeper's",
        must="it stops or waits; nothing recorded is lost",
        simulated=Open("no double writes to a disk"),
        real=(f"{LIMITS}test_a_driver_whose_files_can_take_no_byte_more_stops_and_the_next_run_goes_on",),
    ),
)
