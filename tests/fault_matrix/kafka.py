"""What can befall the brokers that a topology reads and writes, and who writes into them."""

from __future__ import annotations

from tests.fault_matrix.node_ids import (
    KAFKA_AWAY,
    KAFKA_COPIED,
    KAFKA_KILLED,
    KAFKA_LOST,
    KAFKA_SINK,
    KAFKA_SINK_FAULTS,
    KAFKA_SINK_GROUPS,
    KAFKA_SINK_KILLED,
    KAFKA_SINK_REFUSALS,
    KAFKA_THREE,
    KAFKA_TRANSACTIONS,
    KAFKA_UNREADABLE,
)
from tests.fault_matrix.row import Open, Row

NO_BROKER = Open("the simulation has no double of a broker: what one would say of a transaction is what is in question")
COPIED = f"{KAFKA_COPIED}test_kafka_to_kafka_with_fifty_kills_holds_each_record_once_and_in_order"

ROWS = (
    Row(
        key="kafka-broker-killed",
        fault="the broker dies, at any point of a commit, and comes back",
        must="replayed by a new producer until it is there; a `read_committed` reader sees each record once, in order",
        simulated=NO_BROKER,
        real=(
            "kafka-kill",
            f"{KAFKA_SINK_FAULTS}test_a_broker_that_is_killed_doubles_and_loses_nothing",
            COPIED,
        ),
    ),
    Row(
        key="kafka-broker-killed-before-markers",
        fault="the only broker dies between its answer to a commit and the markers that make the records visible",
        must="the same; but Kafka 4.4.0 may come back and never write them: a sentence says so",
        simulated=NO_BROKER,
        real=Open("a fault of the broker's, seen with one alone; tests kill it before, or when the markers are there"),
    ),
    Row(
        key="kafka-leader-killed",
        fault="of three brokers the leader of what is written, or the coordinator, dies in a commit",
        must="the others go on at once; each record once and in order, also before it is back",
        simulated=NO_BROKER,
        real=(
            f"{KAFKA_THREE}test_a_broker_that_dies_in_a_commit_doubles_and_loses_nothing_and_the_others_go_on",
            f"{KAFKA_THREE}test_a_topology_goes_on_while_brokers_are_killed_one_after_another",
        ),
    ),
    Row(
        key="kafka-partition-away",
        fault="a partition that is read has no leader",
        must="the opaque spout goes on without it, the other one waits; nothing is lost",
        simulated=NO_BROKER,
        real=(f"{KAFKA_AWAY}test_a_partition_without_a_leader_keeps_nobody_waiting_and_loses_nothing",),
    ),
    Row(
        key="kafka-broker-paused",
        fault="a broker takes requests, and answers nothing for a while",
        must="replayed until it does",
        simulated=NO_BROKER,
        real=(
            "kafka-pause",
            f"{KAFKA_AWAY}test_a_broker_that_hangs_fails_the_attempt_or_gives_nothing_and_is_read_when_it_answers_again",
        ),
    ),
    Row(
        key="kafka-commit-reply-lost",
        fault="the request to commit, or the reply to it, is lost",
        must="asked again over a new connection; where no answer comes, the ledger tells the next producer",
        simulated=NO_BROKER,
        real=(
            "kafka-lost",
            f"{KAFKA_SINK_FAULTS}test_a_connection_that_breaks_in_a_commit_is_made_again",
            f"{KAFKA_SINK_FAULTS}test_the_outcome_of_a_commit_without_an_answer_is_found_out_by_the_ledger",
        ),
    ),
    Row(
        key="kafka-slow",
        fault="brokers are slow",
        must="later commits wait, and share a transaction of Kafka's",
        simulated=NO_BROKER,
        real=("kafka-delay",),
    ),
    Row(
        key="kafka-cut",
        fault="connections to brokers break",
        must="made again; nothing is lost or double",
        simulated=NO_BROKER,
        real=("kafka-cut",),
    ),
    Row(
        key="kafka-half-open",
        fault="connections to brokers stay open, and nothing gets through",
        must="replayed after the time-out; what arrives late meets the fence of the producer's epoch",
        simulated=NO_BROKER,
        real=("kafka-half-open",),
    ),
    Row(
        key="kafka-driver-killed",
        fault="the driver dies at a point of a commit into Kafka, or while it reads",
        must="its open transaction is aborted by the next one, which finds by the ledger what is written",
        simulated=NO_BROKER,
        real=(
            f"{KAFKA_SINK_KILLED}test_drivers_that_are_killed_at_each_point_of_a_commit_write_each_transaction_once",
            f"{KAFKA_KILLED}test_exactly_the_committed_records_are_counted_though_the_driver_is_killed_on_the_way",
            COPIED,
        ),
    ),
    Row(
        key="kafka-zombie",
        fault="a driver that was taken over goes on committing",
        must="fenced by Kafka, and stopped by the ledger; or its successor finds the same batch written",
        simulated=NO_BROKER,
        real=(
            f"{KAFKA_SINK}test_a_driver_that_was_taken_over_commits_nothing_and_is_stopped",
            f"{KAFKA_SINK}test_a_zombie_that_is_faster_commits_the_same_batch_which_its_successor_finds",
        ),
    ),
    Row(
        key="kafka-transaction-timed-out",
        fault="a transaction takes longer than the brokers allow",
        must="aborted by them, replayed by a new producer",
        simulated=NO_BROKER,
        real=(
            f"{KAFKA_SINK_REFUSALS}test_a_transaction_that_took_too_long_is_aborted_by_the_broker_and_replayed",
            f"{KAFKA_SINK_REFUSALS}test_a_producer_that_was_fenced_takes_nothing_more",
        ),
    ),
    Row(
        key="kafka-group-member-fails",
        fault="one of several transactions that share one of Kafka's fails",
        must="all are replayed, each by itself",
        simulated=NO_BROKER,
        real=(f"{KAFKA_SINK_GROUPS}test_one_that_fails_after_it_has_sent_lets_the_whole_group_be_replayed",),
    ),
    Row(
        key="kafka-ledger",
        fault="the ledger is of another history: deleted, set back, written to by others",
        must="the topology stops before anything is written",
        simulated=NO_BROKER,
        real=(
            f"{KAFKA_SINK}test_a_ledger_of_another_history_stops_the_topology",
            f"{KAFKA_SINK}test_a_ledger_that_is_not_compacted_is_refused",
            f"{KAFKA_SINK}test_a_ledger_that_others_write_to_is_refused",
        ),
    ),
    Row(
        key="kafka-records-gone",
        fault="records are gone that were to be read: retention, a topic made anew, a log cut off",
        must="the topology stops and says which, and why; or goes on where the user has said so",
        simulated=NO_BROKER,
        real=(
            f"{KAFKA_LOST}test_records_that_retention_took_before_they_were_read_are_told",
            f"{KAFKA_LOST}test_a_batch_that_must_come_again_and_is_gone_stops_the_topology",
            f"{KAFKA_LOST}test_a_topic_that_was_made_anew_is_told_whether_it_is_shorter_or_longer",
            f"{KAFKA_LOST}test_a_log_that_ends_before_what_was_read_is_told_when_that_is_found_twice",
        ),
    ),
    Row(
        key="kafka-open-transaction",
        fault="a writer's transaction stays open, or aborts",
        must="what comes after it waits; what was aborted is never read, wherever ranges begin and end",
        simulated=NO_BROKER,
        real=(
            f"{KAFKA_TRANSACTIONS}test_an_open_transaction_holds_back_what_comes_after_it_until_it_ends",
            f"{KAFKA_TRANSACTIONS}test_ranges_that_begin_and_end_in_aborted_records_and_markers_lose_and_double_nothing",
        ),
    ),
    Row(
        key="kafka-unreadable",
        fault="a record cannot be decoded",
        must="the topology stops and names it; or it is skipped and counted, or emitted to a stream of its own",
        simulated=NO_BROKER,
        real=(
            f"{KAFKA_UNREADABLE}test_the_topology_stops_and_names_the_record",
            f"{KAFKA_UNREADABLE}test_a_committer_that_listens_to_the_stream_gets_them_once",
        ),
    ),
)
