"""What can befall a store of `stormline.state`: its server, its connections, its tables."""

from __future__ import annotations

from tests.fault_matrix.node_ids import SQLITE_DAYS, STORE_DAYS, STORE_SESSIONS, STORE_STOPS, STORE_TOPOLOGIES
from tests.fault_matrix.row import Open, Row

SERVER = Open("a server is another process")
WHATEVER = (f"{STORE_TOPOLOGIES}test_every_word_counts_once_whatever_fails",)
REPLAY = "replayed until it is back; counts once"

ROWS = (
    Row(
        key="store-killed",
        fault="the server is killed, and comes back",
        must=REPLAY,
        simulated=WHATEVER,
        real=(
            "redis-kill",
            "postgresql-kill: server",
            f"{STORE_DAYS}test_a_server_that_is_killed_in_a_commit_and_comes_back_is_a_replay",
        ),
    ),
    Row(
        key="store-commit-lost",
        fault="the connection is cut before the server has COMMIT (EXEC), or before its answer",
        must="replayed; the fence tells which it was",
        simulated=WHATEVER,
        real=(
            "redis-lost",
            "postgresql-lost",
            f"{STORE_DAYS}test_a_connection_that_is_cut_around_the_commit_is_a_replay_which_finds_out_by_the_fence",
        ),
    ),
    Row(
        key="store-half-open",
        fault="nothing gets through any more, and nobody says so; the server does not hear of the driver's end",
        must="given up after the store's time-out; the server lets the fence go after six of them; replayed",
        simulated=SERVER,
        real=(
            "redis-half-open",
            "postgresql-half-open",
            f"{STORE_DAYS}test_a_connection_that_falls_silent_around_the_commit_is_given_up_in_time",
        ),
    ),
    Row(
        key="store-paused",
        fault="the server answers nothing for a while",
        must=REPLAY,
        simulated=SERVER,
        real=(
            "redis-pause",
            "postgresql-pause",
            f"{STORE_DAYS}test_a_server_that_answers_nothing_for_a_while_is_a_replay",
        ),
    ),
    Row(
        key="store-slow",
        fault="the server, or the way to it, is slow",
        must="waited for; past the time-out replayed until it is quicker",
        simulated=SERVER,
        real=(
            f"{STORE_DAYS}test_a_server_that_is_slow_is_waited_for",
            f"{STORE_DAYS}test_a_server_that_is_slower_than_the_time_out_is_a_replay_until_it_is_quicker",
        ),
    ),
    Row(
        key="store-full",
        fault="its disk, tablespace or memory is full",
        must="replayed until there is room; counts once",
        simulated=(f"{SQLITE_DAYS}test_a_disk_that_is_full_is_a_replay_until_there_is_room",),
        real=(
            f"{STORE_STOPS}test_a_postgresql_whose_disk_is_full_is_a_replay_until_there_is_room",
            f"{STORE_STOPS}test_a_mariadb_that_is_full_is_a_replay_until_there_is_room",
            f"{STORE_STOPS}test_a_redis_whose_memory_is_full_is_a_replay_until_there_is_room",
            f"{STORE_STOPS}test_a_redis_that_takes_nothing_because_its_disk_failed_is_a_replay",
        ),
    ),
    Row(
        key="store-locked",
        fault="another process holds the file, the row or the fence locked for longer than the time-out",
        must="replayed until it lets go",
        simulated=(f"{SQLITE_DAYS}test_a_file_that_another_process_has_locked_is_a_replay_until_it_lets_go",),
        real=(
            "tests/cluster/test_postgresql_store.py::TestPostgreSQLStore::"
            "test_a_second_driver_waits_for_the_fence_and_then_finds_what_the_first_has_stored",
            "tests/cluster/test_mysql_store.py::TestMySQLStore::"
            "test_a_second_driver_waits_for_the_fence_and_then_finds_what_the_first_has_stored",
        ),
    ),
    Row(
        key="store-deadlock",
        fault="a commit is the victim of a deadlock with another program",
        must="replayed; counts once",
        simulated=SERVER,
        real=(
            f"{STORE_SESSIONS}test_a_commit_that_is_the_victim_of_a_deadlock_in_postgresql_is_replayed",
            f"{STORE_SESSIONS}test_a_commit_that_is_the_victim_of_a_deadlock_in_mariadb_is_replayed",
        ),
    ),
    Row(
        key="store-serialization",
        fault="a commit cannot be serialized with what another program writes",
        must="replayed; counts once",
        simulated=SERVER,
        real=(
            f"{STORE_SESSIONS}test_a_commit_that_cannot_be_serialized_is_replayed",
            f"{STORE_SESSIONS}test_a_commit_whose_fence_somebody_else_wrote_in_redis_is_replayed",
        ),
    ),
    Row(
        key="store-connection-closed",
        fault="the server closed a connection that was kept: while idle, or in the transaction",
        must="replaced without a word; in the transaction replayed",
        simulated=SERVER,
        real=(
            "postgresql-cut",
            f"{STORE_DAYS}test_a_connection_that_the_server_closed_while_it_was_idle_is_replaced_without_a_replay",
            f"{STORE_DAYS}test_a_connection_that_the_server_closed_in_a_commit_is_a_replay",
            f"{STORE_SESSIONS}test_a_transaction_that_was_idle_for_longer_than_the_server_allows_is_replayed",
        ),
    ),
    Row(
        key="store-session-dirty",
        fault="own SQL leaves settings, temporary tables or another database behind in the session",
        must="gone in the next transaction",
        simulated=(f"{SQLITE_DAYS}test_what_own_sql_leaves_in_a_session_is_gone_in_the_next_transaction",),
        real=(
            f"{STORE_SESSIONS}test_what_own_sql_leaves_in_a_session_of_postgresqls_is_gone_in_the_next_transaction",
            f"{STORE_SESSIONS}test_what_own_sql_leaves_in_a_session_of_mariadbs_is_gone_in_the_next_transaction",
            f"{STORE_SESSIONS}test_another_database_that_own_commands_select_in_redis_is_theirs_alone",
        ),
    ),
    Row(
        key="store-emptied",
        fault="the database comes back empty, or its file is removed under the topology",
        must="the topology stops; the message says how to go on",
        simulated=(f"{SQLITE_DAYS}test_a_file_that_was_removed_stops_the_topology_as_its_database_is_gone",),
        real=(f"{STORE_STOPS}test_a_database_that_was_emptied_stops_the_topology",),
    ),
    Row(
        key="store-older-copy",
        fault="the database comes back as an older copy",
        must="the topology stops; the message says how to go on",
        simulated=(f"{SQLITE_DAYS}test_a_file_that_is_an_older_copy_stops_the_topology",),
        real=(f"{STORE_STOPS}test_a_server_that_came_back_as_an_older_copy_stops_the_topology",),
    ),
    Row(
        key="store-no-rights",
        fault="the user may not write, or not make tables",
        must="the topology stops; the message names the table and what to grant",
        simulated=(f"{SQLITE_DAYS}test_a_file_that_this_user_may_not_write_stops_the_topology_with_the_remedy",),
        real=(
            f"{STORE_STOPS}test_a_role_without_rights_in_postgresql_is_told_with_the_remedy",
            f"{STORE_STOPS}test_a_user_without_rights_in_mariadb_is_told_with_the_remedy",
            f"{STORE_STOPS}test_a_user_without_rights_in_redis_is_told_with_the_remedy",
        ),
    ),
    Row(
        key="store-row-refused",
        fault="a key is longer than its column, a value does not fit, a constraint refuses it",
        must="the topology stops; the message names table and key; nothing is stored",
        simulated=(f"{SQLITE_DAYS}test_a_row_that_a_table_refuses_is_named_by_its_key",),
        real=(f"{STORE_STOPS}test_a_row_that_does_not_fit_is_named_with_table_and_key",),
    ),
    Row(
        key="store-other-shape",
        fault="a table has other columns, another key, or is another map's",
        must="the topology stops; the message names table, column and remedy",
        simulated=(
            "tests/unit/state/test_sqlite_store.py::TestSQLiteStore::"
            "test_a_table_of_another_shape_is_told_with_its_remedy",
        ),
        real=(
            "tests/cluster/test_postgresql_store.py::TestPostgreSQLStore::"
            "test_a_table_of_another_shape_is_told_with_its_remedy",
            "tests/cluster/test_mysql_store.py::TestMySQLStore::test_a_table_of_another_shape_is_told_with_its_remedy",
            "tests/cluster/test_redis_store.py::TestRedisStore::test_what_others_have_put_there_is_told",
        ),
    ),
    Row(
        key="store-corrupt",
        fault="a row holds what no map writes",
        must="the topology stops; the message names table and key",
        simulated=(
            "tests/unit/state/test_sqlite_store.py::TestSQLiteStore::test_a_row_that_no_map_writes_stops_the_topology",
        ),
        real=(
            "tests/cluster/test_postgresql_store.py::TestPostgreSQLStore::"
            "test_a_row_that_no_map_writes_stops_the_topology",
            "tests/cluster/test_mysql_store.py::TestMySQLStore::test_a_row_that_no_map_writes_stops_the_topology",
            "tests/cluster/test_redis_store.py::TestRedisStore::test_a_row_that_no_map_writes_stops_the_topology",
        ),
    ),
)
