"""What can befall StarRocks, and what is loaded there: tried on the emulator, since no server can be had."""

from __future__ import annotations

from tests.fault_matrix.node_ids import STARROCKS, STARROCKS_FAULTS, STARROCKS_KILLED
from tests.fault_matrix.row import Open, Row

EMULATED = Open("on the other side is an emulator: its connections are real, and it is no StarRocks")

ROWS = (
    Row(
        key="starrocks-lost",
        fault="begin, load, prepare or commit does not arrive, or its answer gets lost",
        must="before the decision rolled back and replayed under other labels; a commit is asked for again",
        simulated=EMULATED,
        real=(
            f"{STARROCKS}test_lost_answers_change_nothing",
            f"{STARROCKS_FAULTS}test_a_commit_is_not_believed_lost_while_the_front_end_cannot_be_asked",
        ),
    ),
    Row(
        key="starrocks-restarts",
        fault="a back end restarts and forgets what is not prepared; front ends restart, or are away",
        must="replayed; what is prepared is committed in its turn",
        simulated=EMULATED,
        real=(f"{STARROCKS}test_ends_that_restart_change_nothing",),
    ),
    Row(
        key="starrocks-killed",
        fault="the driver is killed, while answers get lost and both ends restart",
        must="the next one commits what was decided, rolls back what else bears its labels; each row once",
        simulated=EMULATED,
        real=(
            f"{STARROCKS}test_what_a_killed_driver_has_prepared_is_rolled_back_by_the_next_one",
            STARROCKS_KILLED,
        ),
    ),
    Row(
        key="starrocks-dropped",
        fault="what is decided is not committed within prepared_timeout",
        must="the topology halts, with what is known",
        simulated=EMULATED,
        real=(f"{STARROCKS}test_a_transaction_that_starrocks_has_dropped_halts_the_topology",),
    ),
    Row(
        key="starrocks-label-forgotten",
        fault="no answer to a commit, and the label is forgotten",
        must="the topology halts: nobody knows whether it was committed",
        simulated=EMULATED,
        real=(f"{STARROCKS}test_a_label_that_was_forgotten_halts_the_topology",),
    ),
    Row(
        key="starrocks-row-unfit",
        fault="a row does not fit into its table",
        must="the topology stops, in StarRocks' words; nothing is left",
        simulated=EMULATED,
        real=(f"{STARROCKS}test_rows_that_can_never_be_loaded_stop_the_topology",),
    ),
)
