"""What can befall ZooKeeper and the state in it."""

from __future__ import annotations

from tests.fault_matrix.node_ids import (
    CAMPAIGN,
    COMMITTER,
    EMBEDDED,
    ENSEMBLE,
    IN_COORDINATION,
    IN_FUZZ,
    IN_STATE,
    IN_ZOOKEEPER,
    RUNNER,
    SIMULATED,
    STORE,
    ZK_CONTRACT,
    ZK_FOREIGN,
    ZK_QUOTA,
    ZK_SECURITY,
    ZK_STORE,
)
from tests.fault_matrix.row import ONE_PROCESS, Open, Row

ROWS = (
    Row(
        key="zookeeper-killed",
        fault="is killed and comes back",
        must="waited for; all that was written is there",
        simulated=("zookeeper: outage",),
        real=(
            "zookeeper-kill",
            f"{ZK_STORE}TestServerFaults::test_a_killed_server_comes_back_with_all_that_was_written",
        ),
    ),
    Row(
        key="zookeeper-hangs",
        fault="hangs for a moment",
        must="waited for",
        simulated=("slow",),
        real=("zookeeper-pause", f"{ZK_STORE}TestServerFaults::test_a_server_that_hangs_for_a_moment_is_waited_for"),
    ),
    Row(
        key="zookeeper-hangs-long",
        fault="hangs longer than the session lasts",
        must="the driver stops; the next one goes on",
        simulated=("zookeeper: outage",),
        real=("zookeeper-pause", f"{ZK_STORE}TestServerFaults::test_a_server_that_hangs_ends_the_ownership"),
    ),
    Row(
        key="zookeeper-cut",
        fault="connections break",
        must="connected again; no commit begins meanwhile",
        simulated=(
            "lost request",
            "connection: flaps",
            f"{COMMITTER}test_while_the_connection_is_suspended_no_commit_begins_and_it_can_be_taken_back",
        ),
        real=("zookeeper-cut", f"{ZK_STORE}TestLostAnswers::test_an_interruption_passes"),
    ),
    Row(
        key="zookeeper-reply-lost",
        fault="the reply to a write is lost: it was applied",
        must="the owner's node tells so; it is not sent again",
        simulated=("lost reply",),
        real=("zookeeper-lost: reply", f"{ZK_STORE}TestLostAnswers::test_a_write_whose_answer_was_lost_is_done_once"),
    ),
    Row(
        key="zookeeper-request-lost",
        fault="a write is lost on its way",
        must="the owner's node tells so; it is sent again",
        simulated=("lost request",),
        real=("zookeeper-lost: request", f"{ZK_STORE}TestLostAnswers::test_a_write_that_never_arrived_is_sent_again"),
    ),
    Row(
        key="zookeeper-request-late",
        fault="a write arrives late, perhaps after a take-over",
        must="the owner's version refuses it",
        simulated=("late request",),
        real=(
            "zookeeper-half-open",
            f"{ZK_STORE}TestLostAnswers::test_a_write_taken_over_while_its_answer_was_lost_is_fenced",
        ),
    ),
    Row(
        key="zookeeper-slow",
        fault="answers slowly",
        must="commits are slow",
        simulated=("slow",),
        real=("zookeeper-delay",),
    ),
    Row(
        key="zookeeper-half-open",
        fault="connections stay open and nothing gets through",
        must="bounded by the session's time-out",
        simulated=("zookeeper: outage",),
        real=(
            "zookeeper-half-open",
            f"{ZK_STORE}TestLostAnswers::test_connections_that_are_never_answered_do_not_cost_the_session",
        ),
    ),
    Row(
        key="zookeeper-expired",
        fault="the session expires before, or after, a write is applied",
        must="the driver stops at once; the next one reads what is there",
        simulated=("expired before", "expired after", f"{STORE}test_a_lost_session_is_told_once_and_ends_all_writing"),
        real=("driver-stop", f"{ZK_CONTRACT}test_a_lost_session_is_told_once_and_ends_all_writing"),
    ),
    Row(
        key="zookeeper-starved",
        fault="one call of user code holds the interpreter's lock for longer than the session lasts",
        must="the embedded one keeps the session; with another the topology stops, and names the call and the setting",
        simulated=(f"{IN_ZOOKEEPER}test_interpreter_watch.py::test_a_session_that_ends_meanwhile_says_why",),
        real=(
            "tests/spark/test_interpreter_held.py::"
            "test_a_commit_that_holds_the_interpreters_lock_for_longer_than_the_session_is_committed",
            "tests/cluster/test_interpreter_held.py::"
            "test_a_session_that_one_long_call_has_ended_says_so_and_names_the_setting",
        ),
    ),
    Row(
        key="zookeeper-away-at-start",
        fault="goes away while a driver takes the topology over",
        must="the driver ends with one sentence, or has taken it over once",
        simulated=("zookeeper: outage",),
        real=(
            f"{ZK_STORE}TestServerFaults::test_a_server_that_goes_away_while_opening_is_reported",
            f"{ZK_STORE}TestLostAnswers::test_a_claim_is_made_once",
        ),
    ),
    Row(
        key="zookeeper-not-there",
        fault="nothing listens there, or something else does",
        must="refused in time, with the settings",
        simulated=ONE_PROCESS,
        real=(
            f"{ZK_STORE}TestUnreachable::test_nothing_listens",
            f"{ZK_STORE}TestUnreachable::test_something_else_listens",
        ),
    ),
    Row(
        key="zookeeper-minority",
        fault="most servers of an ensemble are lost",
        must="no progress, nothing corrupt; goes on when they are back",
        simulated=Open("the simulated server is one"),
        real=(
            f"{ENSEMBLE}test_without_most_of_its_servers_a_write_waits_and_is_done_once_when_they_are_back",
            f"{ENSEMBLE}test_without_most_of_its_servers_for_long_the_driver_stops_and_the_next_one_finds_what_was_written",
        ),
    ),
    Row(
        key="zookeeper-lags",
        fault="a server of an ensemble is behind the others, and is asked",
        must="whose the topology is is read as it is: no driver goes on, and none is refused, for what was",
        simulated=("follower: lags",),
        real=Open("no test holds one server of an ensemble back"),
    ),
    Row(
        key="zookeeper-leader",
        fault="the ensemble elects another leader",
        must="an interruption, as any",
        simulated=Open("the simulated server is one"),
        real=(f"{ENSEMBLE}test_the_leader_dies_in_the_midst_of_writes_and_each_write_is_done_once",),
    ),
    Row(
        key="zookeeper-disk-full",
        fault="its disk is full",
        must="the topology waits or stops; nothing recorded is lost",
        simulated=Open("the simulated server has no disk"),
        real=("zookeeper-disk-full",),
    ),
    Row(
        key="zookeeper-disk-grows",
        fault="runs for ever",
        must="the number of znodes, and of the embedded server's files, is bounded",
        simulated=(CAMPAIGN,),
        real=(f"{EMBEDDED}test_the_disk_does_not_fill_up",),
    ),
    Row(
        key="zookeeper-watch-missed",
        fault="the event that tells of a lost claim does not come",
        must="the next write, or the proof before a commit, notices",
        simulated=(f"{RUNNER}test_a_driver_that_was_taken_over_unawares_begins_no_commit",),
        real=(f"{ZK_STORE}TestTakeOver::test_a_claim_that_vanishes_is_noticed_by_a_write_before_any_take_over",),
    ),
    Row(
        key="zookeeper-claim-deleted",
        fault="somebody deletes the claim of a live driver, or puts a copy in its place",
        must="the driver stops",
        simulated=(
            "driver: unclaimed",
            "driver: ousted",
            f"{STORE}test_the_write_of_a_zombie_is_rejected_after_a_take_over",
        ),
        real=(
            f"{ZK_STORE}TestTakeOver::test_a_claim_that_vanishes_is_noticed_without_a_write",
            f"{ZK_STORE}TestTakeOver::test_a_claim_that_was_deleted_and_copied_is_another_ones",
        ),
    ),
    Row(
        key="zookeeper-too-large",
        fault="a value, or a write, is larger than ZooKeeper's 1 MB",
        must="refused here with its path; never sent, where it would be an endless connection loss",
        simulated=(
            f"{STORE}test_a_value_that_is_too_large_is_not_sent",
            f"{STORE}test_a_write_that_is_too_large_is_not_sent",
            f"{IN_COORDINATION}test_metadata.py::test_metadata_that_cannot_be_stored_stops_with_the_spouts_name",
            f"{IN_ZOOKEEPER}test_security.py::test_whose_the_znodes_are_counts_in_what_fits_one_request",
        ),
        real=(
            f"{ZK_SECURITY}TestDigest::"
            "test_thousands_of_small_values_whose_owner_is_named_with_each_fit_one_request_or_are_split",
            f"{ZK_CONTRACT}test_a_value_that_is_too_large_is_not_sent",
            f"{ZK_CONTRACT}test_a_write_that_is_too_large_is_not_sent",
            f"{ZK_FOREIGN}TestForeignData::test_a_large_description_is_not_sent",
        ),
    ),
    Row(
        key="zookeeper-version",
        fault="has counted 2^31 writes of a znode: its versions turn negative, and at -1 are compared with nothing",
        must="the znode is made anew in time, by the transaction that would write it; a zombie stays fenced",
        simulated=(
            f"{SIMULATED}test_a_driver_and_the_next_one_go_on_past_the_last_version",
            f"{SIMULATED}test_a_driver_that_was_taken_over_past_the_last_version_is_fenced",
            f"{SIMULATED}test_past_the_last_version_a_write_without_an_answer_is_done_once",
            f"{SIMULATED}test_an_owner_at_the_version_that_is_compared_with_nothing_is_refused",
        ),
        real=(f"{ZK_CONTRACT}test_after_the_last_version_that_can_be_counted_all_goes_on",),
    ),
    Row(
        key="zookeeper-bits",
        fault="bits of a znode flip",
        must="halts with the path; nothing is changed",
        simulated=(f"{IN_STATE}test_stored_value.py::test_every_flipped_bit_and_every_cut_is_noticed",),
        real=(f"{ZK_FOREIGN}TestForeignData::test_a_flipped_bit_halts",),
    ),
    Row(
        key="zookeeper-foreign",
        fault="a znode holds foreign bytes, or none",
        must="halts with the path; never a default",
        simulated=(
            f"{IN_STATE}test_stored_value.py::test_foreign_bytes_are_refused_with_path_and_remedy",
            f"{IN_FUZZ}test_fuzz.py::test_bad_inputs_give_typed_errors_and_nothing_else",
        ),
        real=(f"{ZK_FOREIGN}TestForeignData::test_foreign_bytes_halt",),
    ),
    Row(
        key="zookeeper-pickle",
        fault="a znode holds a pickle that runs code",
        must="halts with the path; it is not run",
        simulated=(f"{IN_STATE}test_stored_value.py::test_a_pickle_is_refused_and_not_run",),
        real=(
            f"{ZK_FOREIGN}TestForeignData::test_a_pickle_halts_and_is_not_run",
            f"{ZK_SECURITY}test_a_pickle_in_a_sound_envelope_is_not_run",
        ),
    ),
    Row(
        key="zookeeper-other-values",
        fault="a znode holds a sound value that means nothing",
        must="halts with the path",
        simulated=(
            f"{IN_FUZZ}test_bad_bytes.py::test_a_stored_batch_of_other_values_halts",
            f"{IN_FUZZ}test_bad_bytes.py::test_an_owner_out_of_range_halts",
        ),
        real=(
            f"{ZK_FOREIGN}TestForeignData::test_an_owner_that_is_none_halts",
            f"{ZK_FOREIGN}TestForeignData::test_a_claim_that_is_none_halts",
        ),
    ),
    Row(
        key="zookeeper-power-cut",
        fault="power is cut, and the embedded server's snapshot was not on disk",
        must="snapshots are synced before anything leans on them; a state without any is refused in one sentence",
        simulated=Open("the simulated server has no disk"),
        real=(
            f"{EMBEDDED}test_snapshots_are_on_disk_before_anything_leans_on_them",
            f"{EMBEDDED}test_a_state_that_lost_its_snapshots_is_refused_in_one_sentence",
        ),
    ),
    Row(
        key="zookeeper-start-fails",
        fault="the embedded server's disk fails when it has begun to serve",
        must="it serves no more when the directory's lock is free",
        simulated=Open("the simulated server has no disk"),
        real=(f"{EMBEDDED}test_a_server_that_could_not_sync_serves_no_more_when_its_directory_is_free",),
    ),
    Row(
        key="zookeeper-quota",
        fault="refuses a write for good, as for a quota",
        must="the driver stops with the reason; it does not send it again without end",
        simulated=Open("the simulated server has no quotas"),
        real=(
            f"{ZK_QUOTA}test_a_claim_that_is_over_the_quota_is_refused",
            f"{ZK_QUOTA}test_a_write_that_is_over_the_quota_is_refused_and_smaller_ones_go_on",
        ),
    ),
)
