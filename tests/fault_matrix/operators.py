"""What an operator can do."""

from __future__ import annotations

from tests.fault_matrix.node_ids import (
    CONTRACT,
    EMBEDDED,
    FILES,
    FLIGHTS,
    IN_CLUSTER,
    IN_COORDINATION,
    IN_FUZZ,
    IN_STATE,
    IN_TOPOLOGY,
    IN_ZOOKEEPER,
    MESSAGES,
    OF_OPERATORS,
    ON_SPARK,
    SET_BACK,
    SIMULATED,
    SQLITE,
    STORE,
    ZK_CONTRACT,
    ZK_FOREIGN,
    ZK_SECURITY,
    ZK_STORE,
)
from tests.fault_matrix.row import Open, Row

ROWS = (
    Row(
        key="operator-state-dir-deleted",
        fault="deletes, moves or replaces the state directory under a living driver",
        must="noticed at the next record, or within seconds; nothing is recorded any more, and one sentence says why",
        simulated=(
            f"{IN_CLUSTER}test_state_files.py::test_files_that_are_taken_away_are_told_of_each_time",
            f"{IN_CLUSTER}test_state_files.py::test_logs_that_are_begun_and_purged_are_the_servers_own_doing",
        ),
        real=(
            f"{EMBEDDED}test_a_directory_that_is_deleted_under_its_server_ends_all_writing_and_is_told_once",
            "tests/cluster/test_state_dir_gone.py::"
            "test_a_driver_whose_state_directory_is_deleted_stops_with_one_sentence",
            "tests/cluster/test_state_dir_gone.py::test_an_idle_driver_notices_too",
        ),
    ),
    Row(
        key="operator-graph",
        fault="submits another graph under the same id",
        must="refused, with what changed",
        simulated=(
            f"{CONTRACT}test_a_changed_graph_is_refused_with_what_changed_unless_allowed",
            f"{STORE}test_a_topology_that_changed_is_refused_before_anything_is_written",
        ),
        real=(
            f"{ON_SPARK}test_a_changed_graph_is_refused_with_what_changed_unless_allowed",
            f"{ZK_CONTRACT}test_a_topology_that_changed_is_refused_before_anything_is_written",
        ),
    ),
    Row(
        key="operator-graph-allowed",
        fault="submits another graph, with permission, while a commit is half done",
        must="each value counts once, where the txid stands beside each value",
        simulated=(
            f"{OF_OPERATORS}test_a_graph_redeployed_while_a_commit_was_half_done_needs_permission_and_then_counts_once",
        ),
        real=Open("the runner is the same; no real process is killed for it"),
    ),
    Row(
        key="operator-spout-kind",
        fault="submits a spout of another kind under the same id, with permission",
        must="goes on where both keep a position of each partition and all that began is committed; else it is refused",
        simulated=(
            f"{OF_OPERATORS}test_a_spout_of_another_kind_goes_on_where_the_old_one_has_committed_all_and_not_before",
            f"{STORE}test_another_kind_of_spout_goes_on_only_from_committed_batches_and_where_both_have_partitions",
        ),
        real=(
            f"{ZK_CONTRACT}"
            "test_another_kind_of_spout_goes_on_only_from_committed_batches_and_where_both_have_partitions",
        ),
    ),
    Row(
        key="operator-code",
        fault="submits the same graph with other code, while a commit is half done",
        must="the same batch is committed, the rest of it by the new code",
        simulated=Open("the stored description holds the graph, not the code: nothing can notice"),
        real=Open("as simulated"),
    ),
    Row(
        key="operator-set-back",
        fault="puts an old snapshot of ZooKeeper back, several transactions old",
        must="the database's fence is ahead: the topology stops, at each start; nothing is changed",
        simulated=(
            f"{OF_OPERATORS}test_a_state_set_back_by_transactions_is_refused_by_the_databases_fence_whatever_its_epoch",
        ),
        real=(f"{SET_BACK}test_a_snapshot_that_was_put_back_is_refused_by_the_databases_fence",),
    ),
    Row(
        key="operator-set-back-by-one",
        fault="puts a snapshot back that lacks just the last transaction",
        must="the database's fence holds the transaction under another commit id: the topology stops, at each start",
        simulated=(
            "state: set back",
            f"{OF_OPERATORS}test_a_state_set_back_by_the_last_transaction_is_refused_whether_its_batch_comes_out_the_same_or_not",
        ),
        real=(f"{SET_BACK}test_a_snapshot_that_lacks_just_the_last_transaction_is_refused_by_its_commit_id",),
    ),
    Row(
        key="operator-another-id",
        fault="submits a topology under another id, with the database of the old one",
        must="the database's fence refuses it: it would count all once more",
        simulated=(f"{SQLITE}test_a_table_belongs_to_one_topology",),
        real=Open("the database is the same in the double"),
    ),
    Row(
        key="operator-set-back-live",
        fault="puts an old snapshot back, or removes the data, while a driver runs",
        must="the driver ends and changes nothing",
        simulated=Open("the simulated server never forgets"),
        real=(f"{SET_BACK}test_a_driver_that_lives_through_it_ends_and_changes_nothing",),
    ),
    Row(
        key="operator-wiped",
        fault="removes the state, or submits to another ZooKeeper or root, and keeps the database",
        must="the database's fence is ahead: the topology stops, and says what to remove",
        simulated=(f"{FLIGHTS}test_a_database_that_outlived_the_state_is_refused_and_left_alone",),
        real=(f"{SET_BACK}test_data_that_was_removed_is_refused_by_the_databases_fence",),
    ),
    Row(
        key="operator-meddles",
        fault="removes or restores a part of the state",
        must="halts; nothing is changed",
        simulated=(f"{MESSAGES}test_a_state_that_was_meddled_with_is_refused",),
        real=(
            f"{ZK_FOREIGN}TestForeignData::test_a_missing_node_halts",
            f"{ZK_STORE}TestTakeOver::test_a_deleted_topology_is_nobodys",
        ),
    ),
    Row(
        key="operator-edits",
        fault="edits a znode while a driver runs",
        must="its next write halts with the path",
        simulated=Open("the double's state is not shared with anybody"),
        real=(f"{ZK_FOREIGN}TestForeignData::test_a_value_edited_behind_a_drivers_back_halts",),
    ),
    Row(
        key="operator-foreign-node",
        fault="points it at a node of other software, or of Storm itself",
        must="halts; nothing is changed",
        simulated=(f"{IN_FUZZ}test_bad_bytes.py::test_a_znode_with_a_name_of_somebody_elses_halts",),
        real=(
            f"{ZK_FOREIGN}TestForeignData::test_a_node_of_other_software_halts",
            f"{ZK_FOREIGN}TestForeignData::test_storms_own_state_halts",
        ),
    ),
    Row(
        key="operator-claim-stays",
        fault="makes the claim a node that stays, or copies one that does",
        must="halts and says when to delete it",
        simulated=Open("the claim of the double is no node"),
        real=(f"{ZK_FOREIGN}TestForeignData::test_a_claim_that_would_stay_for_ever_halts",),
    ),
    Row(
        key="operator-newer",
        fault="starts an older Stormline on the state of a newer one",
        must="refused",
        simulated=(f"{IN_STATE}test_stored_value.py::test_a_newer_schema_is_refused",),
        real=(f"{ZK_FOREIGN}TestForeignData::test_a_newer_schema_is_refused",),
    ),
    Row(
        key="operator-classes",
        fault="takes away, or changes, a class whose objects are stored",
        must="halts and names the class",
        simulated=(
            f"{STORE}test_a_value_whose_class_is_registered_no_more_halts",
            f"{IN_TOPOLOGY}test_registration.py::test_an_object_stored_by_another_version_of_its_class_is_corrupt",
            f"{IN_TOPOLOGY}test_registration.py::test_the_fields_of_a_named_tuple_are_found_by_their_names",
        ),
        real=(f"{ZK_CONTRACT}test_a_value_whose_class_is_registered_no_more_halts",),
    ),
    Row(
        key="operator-fields",
        fault="starts again with other columns than the stored ones, or fewer pending transactions",
        must="the first halts; with the second all stored batches are taken up",
        simulated=(
            f"{FILES}test_a_restart_with_other_fields_than_the_stored_columns_halts",
            f"{IN_COORDINATION}test_coordinator.py::test_a_start_takes_up_all_stored_batches_even_beyond_pending",
        ),
        real=Open("both are decided before anything reaches Spark or ZooKeeper"),
    ),
    Row(
        key="operator-acl",
        fault="leaves znodes open to others",
        must="refused at the start, with the path and its access control list",
        simulated=Open("the double has no access control"),
        real=(
            f"{ZK_SECURITY}TestDigest::test_a_znode_that_others_can_change_is_refused_at_the_start",
            f"{ZK_SECURITY}TestDigest::test_a_node_that_somebody_made_first_is_refused",
        ),
    ),
    Row(
        key="operator-rights",
        fault="takes the driver's rights away, before or while it runs",
        must="it ends with the path; nothing is written",
        simulated=Open("the double has no access control"),
        real=(
            f"{ZK_SECURITY}TestDigest::test_a_driver_that_lost_its_rights_writes_nothing",
            f"{ZK_FOREIGN}TestForeignData::test_access_that_is_denied_is_reported",
        ),
    ),
    Row(
        key="operator-credentials",
        fault="gives a wrong user, password or certificate",
        must="refused; no secret is shown",
        simulated=(
            f"{IN_ZOOKEEPER}test_security.py::test_a_payload_that_is_no_user_and_password",
            f"{IN_ZOOKEEPER}test_security.py::test_certificates_are_tried_at_once",
        ),
        real=(
            f"{ZK_SECURITY}TestDigest::test_the_same_identity_goes_on_and_another_cannot",
            f"{ZK_SECURITY}TestSasl::test_a_wrong_password_or_user_is_refused",
            f"{ZK_SECURITY}TestTls::test_a_server_that_nobody_vouches_for_is_not_believed",
        ),
    ),
    Row(
        key="operator-settings",
        fault="misspells a setting, or sets half of what protects",
        must="refused, with the nearest one",
        simulated=(
            f"{IN_TOPOLOGY}test_config.py::test_an_unknown_key_of_ours_is_an_error_with_the_nearest_one",
            f"{IN_ZOOKEEPER}test_security.py::test_settings_that_do_not_go_together",
        ),
        real=Open("refused before anything real starts"),
    ),
    Row(
        key="operator-state-dir",
        fault="runs two processes on one state directory",
        must="the second waits a little, and is refused",
        simulated=(f"{IN_CLUSTER}test_state_dir.py::test_a_directory_that_another_process_serves_is_refused_by_name",),
        real=(
            f"{EMBEDDED}test_another_process_keeps_its_directory_until_it_is_killed_and_leaves_its_data",
            f"{EMBEDDED}test_one_directory_is_served_once",
        ),
    ),
    Row(
        key="operator-nested-roots",
        fault="gives a topology a root that lies within another topology, or around one",
        must="refused, whichever was first; the other goes on",
        simulated=(
            f"{SIMULATED}test_a_topology_within_another_is_refused_and_the_other_goes_on",
            f"{SIMULATED}test_a_topology_around_another_is_refused_and_the_other_goes_on",
        ),
        real=(f"{ZK_FOREIGN}TestForeignData::test_a_topology_within_another_or_around_one_is_refused",),
    ),
    Row(
        key="operator-lock-taken",
        fault="another user takes the lock of a state directory, to keep its owner from starting",
        must="directory and lock are the owner's alone; who holds a lock is named",
        simulated=(
            f"{IN_CLUSTER}test_state_dir.py::test_the_directory_and_its_lock_are_kept_from_other_users",
            f"{IN_CLUSTER}test_state_dir.py::test_another_user_cannot_take_the_lock",
        ),
        real=(f"{EMBEDDED}test_another_process_keeps_its_directory_until_it_is_killed_and_leaves_its_data",),
    ),
    Row(
        key="operator-names",
        fault="gives a name that leads elsewhere (`..`, `/zookeeper`)",
        must="refused before anything is sent",
        simulated=(
            f"{IN_TOPOLOGY}test_identifiers.py::test_what_leads_elsewhere_is_no_part_of_a_path",
            f"{IN_TOPOLOGY}test_identifiers.py::test_a_root_that_is_zookeepers_own_or_no_path_is_refused_before_anything_is_sent",
        ),
        real=(f"{ZK_STORE}TestUnreachable::test_a_root_that_is_no_znode_path_is_refused",),
    ),
)
