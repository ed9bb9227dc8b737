"""LocalCluster: its embedded ZooKeeper, its workers, and what only a real Spark can show."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kazoo.client import KazooClient
from pyspark import SparkContext

from stormline import (
    BaseBasicBolt,
    BaseBatchBolt,
    Config,
    Fields,
    LocalCluster,
    TransactionalState,
    TransactionalTopologyBuilder,
    TransactionAttempt,
    Tuple,
)
from stormline.runtime.errors import StateElsewhere
from stormline.runtime.state.stored_value import unseal
from stormline.topology.errors import InvalidConfig
from stormline.topology.serialization import PLAIN
from tests.contracts.running import PENDING_4
from tests.kits.components import LEDGERS, Batch, Store, line, numbers
from tests.kits.spouts import PartitionedSpout, Ranges
from tests.kits.user_state import Notes, PositionsOfStorm


@pytest.fixture(scope="module")
def cluster(spark: SparkContext) -> Iterator[LocalCluster]:
    with LocalCluster(master="local[2]", conf={"spark.ui.enabled": "false"}) as made:
        yield made


class Dying(Batch):
    """Its Python worker is killed in the middle of the first attempt of transaction 2."""

    def finish_batch(self) -> None:
        if self.attempt == TransactionAttempt(2, 1):
            os.kill(os.getpid(), signal.SIGKILL)
        super().finish_batch()


class Diary(BaseBasicBolt):
    """Writes down, in files, what is called in which process."""

    def __init__(self, directory: str) -> None:
        self.directory = directory

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("tx", "value"))

    def note(self, what: str) -> None:
        with (Path(self.directory) / f"{what}-{os.getpid()}").open("a", encoding="utf-8") as file:
            file.write("x")

    def prepare(self, conf: Any, context: Any) -> None:
        self.note("prepare")

    def execute(self, tup: Any, collector: Any) -> None:
        collector.emit([tup[0], tup[1]])

    def cleanup(self) -> None:
        self.note("cleanup")


def test_a_wave_whose_result_is_larger_than_the_driver_takes_is_tried_as_smaller_ones(
    spark: SparkContext, cluster: LocalCluster, caplog: pytest.LogCaptureFixture
) -> None:
    conf = spark._jsc.sc().conf()
    before = conf.get("spark.driver.maxResultSize")
    rows = numbers(64)
    long = {p: [f"{number} {os.urandom(10_000).hex()}" for number in part] for p, part in rows.items()}
    topology = line("large", long, 2, lambda b: b.set_bolt("store", Store("large")).global_grouping("spout"))
    conf.set("spark.driver.maxResultSize", "300k")  # four batches are 320 kB
    try:
        with caplog.at_level("INFO", "stormline"):
            handle = cluster.submit_topology("large", {"topology.max.spout.pending": 8}, topology)
            handle.await_drained(60)
            handle.kill()
    finally:
        conf.set("spark.driver.maxResultSize", before)
    assert sorted(LEDGERS["large"].all()) == sorted([*long[0], *long[1]])
    assert "is replayed: its wave has no room for it beside those before it" in caplog.text
    assert "came to nothing" not in caplog.text, "no job has failed for it"


def test_a_killed_python_worker_is_replayed(cluster: LocalCluster) -> None:
    topology = line(
        "killed-worker",
        numbers(40),
        5,
        lambda b: b.set_bolt("x", Dying()).shuffle_grouping("spout"),
        lambda b: b.set_bolt("store", Store("killed-worker")).global_grouping("x"),
    )
    handle = cluster.submit_topology("killed-worker", PENDING_4, topology)
    handle.await_drained(60)
    assert sorted(LEDGERS["killed-worker"].all()) == list(range(40))
    assert handle.snapshot().replays >= 1
    handle.kill()


def test_a_basic_bolt_is_prepared_once_a_worker_and_cleaned_up(cluster: LocalCluster, tmp_path: Path) -> None:
    rows: dict[int, list[Any]] = {0: [1]}
    topology = line(
        "diary",
        rows,
        1,
        lambda b: b.set_bolt("diary", Diary(str(tmp_path)), 1).shuffle_grouping("spout"),
        lambda b: b.set_bolt("store", Store("diary")).global_grouping("diary"),
    )
    handle = cluster.submit_topology("diary", {"topology.max.spout.pending": 1}, topology)
    for n in range(2, 7):
        handle.await_drained(60)
        rows[0].append(n)
    handle.await_drained(60)
    handle.kill()
    noted = {path.name: path.read_text(encoding="utf-8") for path in tmp_path.iterdir()}
    prepared = [name for name in noted if name.startswith("prepare")]
    assert 1 <= len(prepared) <= 3, noted
    assert all(noted[name] == "x" for name in prepared), noted
    assert any(name.startswith("cleanup") for name in noted), noted


def test_emitters_on_executors_share_partitions_without_overlap(cluster: LocalCluster) -> None:
    spout = PartitionedSpout(Ranges("shared", batches=3, partitions=5))
    builder = TransactionalTopologyBuilder("shared", "spout", spout, 3)
    builder.set_bolt("x", Batch(), 2).local_or_shuffle_grouping("spout")
    builder.set_bolt("store", Store("shared"), 2).fields_grouping("x", ["value"])
    handle = cluster.submit_topology("shared", PENDING_4, builder.build_topology())
    handle.await_committed(3, 60)
    handle.kill()
    assert sorted(LEDGERS["shared"].all()) == [("new", p, o) for p in range(5) for o in range(9)]


def test_ctrl_c_does_not_cancel_sparks_jobs_which_may_be_commits(spark: SparkContext) -> None:
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_any_zookeeper_client_can_look_at_the_state(cluster: LocalCluster) -> None:
    topology = line(
        "looked-at", numbers(10), 5, lambda b: b.set_bolt("s", Store("looked-at")).shuffle_grouping("spout")
    )
    handle = cluster.submit_topology("looked-at", PENDING_4, topology)
    handle.await_drained(60)
    client = KazooClient(hosts=handle.zookeeper_hosts)
    client.start(timeout=10)
    try:
        assert "state" in client.get_children("/transactional/looked-at")
        assert client.get("/transactional/looked-at/state/committed")[0]
    finally:
        client.stop()
        client.close()
    handle.kill()


class TellsConf(BaseBatchBolt):
    """Emits what its conf says of the run, and what becomes of state on an executor."""

    def prepare(self, conf: Any, context: Any, collector: Any, batch_id: Any) -> None:
        self.conf, self.collector, self.id = conf, collector, batch_id

    def execute(self, tup: Tuple) -> None: ...

    def finish_batch(self) -> None:
        state = TransactionalState.new_user_state(self.conf, self.conf[Config.TOPOLOGY_TRANSACTIONAL_ID])
        try:
            state.set_data("a", 1)
            refused = ""
        except StateElsewhere as error:
            refused = str(error)
        keys = "topology.name", "transactional.zookeeper.servers", "transactional.zookeeper.port"
        self.collector.emit([self.id, [refused, *(self.conf[key] for key in keys)]])

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("tx", "value"))


def test_user_state_is_the_drivers_and_every_conf_leads_to_zookeeper(cluster: LocalCluster) -> None:
    builder = TransactionalTopologyBuilder("state", "spout", PositionsOfStorm(batches=3), 2)
    builder.set_bolt("tells", TellsConf()).shuffle_grouping("spout")
    builder.set_bolt("told", Store("state")).shuffle_grouping("tells")
    builder.set_bolt("notes", Notes(), 1).global_grouping("spout")
    with cluster.submit(builder.build_topology(), PENDING_4, name="a name") as handle:
        handle.await_drained(60)
        refused, name, servers, port = LEDGERS["state"].all()[0]
        assert "TransactionalState is kept by the driver process, and this code runs on an executor" in refused
        assert (name, f"{servers[0]}:{port}") == ("a name", handle.zookeeper_hosts)
        client = KazooClient(hosts=f"{servers[0]}:{port}")
        client.start(timeout=10)
        try:
            stored = client.get("/transactional/state/state/user/notes/count")[0]
        finally:
            client.stop()
            client.close()
    assert unseal(stored, PLAIN, "") == (3 * 6, 3)


def test_a_second_cluster_on_the_same_state_dir_goes_on_where_the_first_stopped(tmp_path: Path) -> None:
    rows: dict[int, list[Any]] = {**numbers(20)}
    topology = line("resumed", rows, 5, lambda b: b.set_bolt("store", Store("resumed")).shuffle_grouping("spout"))
    for expected in (2, 3):
        with LocalCluster(tmp_path, master="local[2]") as cluster:
            handle = cluster.submit_topology("resumed", PENDING_4, topology)
            handle.await_drained(60)
            assert handle.txid_committed == expected
        rows[0].append("more")
    assert sorted(map(str, LEDGERS["resumed"].all())) == sorted([*map(str, range(20)), "more"])


def test_spark_settings_only() -> None:
    with pytest.raises(InvalidConfig, match=r"takes spark.\* settings, got 'topology.debug'"):
        LocalCluster(conf={"topology.debug": True})


SCRIPT = """
import logging
from stormline import LocalCluster
from tests.kits.components import Batch, line

logging.basicConfig(level=logging.WARNING)
logging.getLogger("stormline").setLevel(logging.INFO)
sink = lambda b: b.set_bolt("s", Batch()).shuffle_grouping("spout").set_debug(True)
topology = line("logged", {0: ["seen"]}, 1, sink)
with LocalCluster(master="local[2]") as cluster:
    cluster.submit_topology("logged", {}, topology).await_drained(60)
"""


def test_the_log_of_executors_arrives_and_spark_is_quiet() -> None:
    root = Path(__file__).resolve().parents[2]
    shown = subprocess.run(
        [sys.executable, "-c", SCRIPT], cwd=root, capture_output=True, text=True, timeout=120, check=True
    )
    assert shown.stdout == ""
    lines = shown.stderr.splitlines()
    assert any("INFO stormline.debug executor: s, task 2 emits to default" in line for line in lines), shown.stderr
    assert [line for line in lines if "stormline" not in line] == []


@pytest.mark.proof
def test_debug_shows_the_tuples_of_executors_where_no_logging_was_configured() -> None:
    plain = "\n".join(row for row in SCRIPT.splitlines() if not row.startswith("logging."))
    assert len(plain.splitlines()) == len(SCRIPT.splitlines()) - 2
    root = Path(__file__).resolve().parents[2]
    shown = subprocess.run(
        [sys.executable, "-c", plain], cwd=root, capture_output=True, text=True, timeout=120, check=True
    )
    lines = shown.stderr.splitlines()
    assert any("INFO stormline.debug executor: s, task 2 emits to default" in line for line in lines), shown.stderr
    assert [line for line in lines if "stormline.debug" not in line] == []


def test_a_master_that_does_not_exist_is_told_in_one_sentence() -> None:
    code = (
        "from stormline.runtime.spark.context import start_spark\n"
        "from stormline import StormlineError\n"
        "try:\n"
        "    start_spark('app', 'sparc://x', {})\n"
        "except StormlineError as error:\n"
        "    print(type(error).__name__, error)\n"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert shown.stdout.startswith("SparkUnavailable Spark did not start with master 'sparc://x': ")
    assert "check the master's URL" in shown.stdout


def test_a_script_that_forgets_to_shut_down_ends_and_leaves_nothing(tmp_path: Path) -> None:
    code = (
        "from stormline import LocalCluster\n"
        "from tests.kits.components import LEDGERS, Store, line\n"
        "topology = line('forgot', {0: [1, 2]}, 1, lambda b: b.set_bolt('s', Store('x')).shuffle_grouping('spout'))\n"
        "cluster = LocalCluster(master='local[2]')\n"
        "cluster.submit_topology('forgot', {}, topology).await_drained(60)\n"
        "print(LEDGERS['x'].all())\n"
    )
    root = Path(__file__).resolve().parents[2]
    shown = subprocess.run(
        [sys.executable, "-c", code],
        cwd=root,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert shown.stdout == "[1, 2]\n"
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith("stormline")] == []
