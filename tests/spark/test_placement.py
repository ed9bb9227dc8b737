"""Commits on the executors and Spark's own ways: retries, cancelling, job groups, what its UI shows."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark import SparkContext

from stormline import Config, LocalCluster
from stormline.runtime.spark.context import start_spark
from tests.cluster import placed_driver
from tests.cluster.placed_driver import ROWS, RUN_SECS, TRANSACTIONS, TXID_OF_TROUBLE
from tests.kits.components import Batch, Fault, eventually, line, numbers
from tests.kits.placement import FencedStore, Keep

pytestmark = pytest.mark.proof

PLACED = {Config.TOPOLOGY_COMMIT_PLACEMENT: "executors", "topology.max.spout.pending": 4}


@pytest.fixture(scope="module")
def cluster(spark: SparkContext) -> Iterator[LocalCluster]:
    with LocalCluster(master="local[2]") as made:
        yield made


@pytest.mark.parametrize(
    ("master", "message"),
    [
        ("local[2]", "commit of txid 2: store came to nothing: "),
        ("local[2,4]", "this Spark task may have run before (attempt number 1 of Spark's): nothing is run twice"),
    ],
)
def test_a_python_worker_that_dies_in_a_commit_shows_no_token_to_user_code_twice(
    tmp_path: Path, master: str, message: str
) -> None:
    """With one failure allowed the job fails; with four Spark runs the task again, and that is refused."""
    with placed_driver.started(master, tmp_path, "exits") as driver:
        out, _ = driver.communicate(timeout=RUN_SECS)
    log = (tmp_path / "log").read_text()
    assert driver.returncode == 0, log
    assert f"attempt {TXID_OF_TROUBLE}:1 fails and is replayed: {message}" in log
    assert int(out) >= 1
    store = FencedStore(tmp_path / "store.sqlite")
    store.check_tokens()
    assert sorted(store.values()) == list(range(ROWS))
    assert {one.txid for one in store.begun()} == set(range(1, TRANSACTIONS + 1))
    assert (TXID_OF_TROUBLE, 1) in {(one.txid, one.attempt) for one in store.begun()}


class Sleeps(Keep):
    """In its first commit it goes on and on, and notes when it did."""

    def finish_batch(self) -> None:
        store = FencedStore(self.path)
        if not store.begun():
            store.note_begin(self.context, self.attempt)
            for _ in range(600):
                time.sleep(0.05)
                store.note(self.attempt.transaction_id, self.context.this_component_id, str(time.time()))
        super().finish_batch()


def test_what_a_cancelled_commit_does_has_ended_before_the_next_attempt_begins(
    cluster: LocalCluster, tmp_path: Path
) -> None:
    store = FencedStore(tmp_path / "store.sqlite")
    topology = line(
        "cancelled", {0: [1]}, 1, lambda b: b.set_bolt("store", Sleeps(store.path)).global_grouping("spout")
    )
    handle = cluster.submit_topology("cancelled", {**PLACED, "topology.message.timeout.secs": 5.0}, topology)
    handle.await_drained(60)
    handle.kill()
    assert store.values() == [1]
    store.check_tokens()
    last = max(float(note) for _, _, note in store.notes())
    assert last < store.begun()[1].at


def jobs(sc: SparkContext, name: str) -> list[tuple[str, str, str]]:
    """Return description, group and status of Spark's jobs of a topology."""
    listed = sc._jsc.sc().statusStore().jobsList(None)
    found = [listed.apply(i) for i in range(listed.size())]
    named = [job for job in found if job.description().isDefined() and job.jobGroup().isDefined()]
    shown = [(job.description().get(), job.jobGroup().get(), str(job.status())) for job in named]
    return [(what, group, status) for what, group, status in shown if what.startswith(f"{name}: ")]


def test_sparks_ui_says_which_transaction_commits_where_waves_and_commits_are_groups_of_their_own(
    spark: SparkContext, cluster: LocalCluster, tmp_path: Path
) -> None:
    store = FencedStore(tmp_path / "store.sqlite")
    topology = line(
        "shown",
        numbers(20),
        5,
        lambda b: b.set_bolt("x", Batch(), 2).shuffle_grouping("spout"),
        lambda b: b.set_bolt("store", Keep(store.path), 3).fields_grouping("x", ["value"]),
    )
    handle = cluster.submit_topology("shown", PLACED, topology)
    handle.await_drained(60)
    handle.kill()
    eventually(lambda: all(status != "RUNNING" for _, _, status in jobs(spark, "shown")))
    shown = jobs(spark, "shown")
    commits = {what: group for what, group, _ in shown if "commit" in what}
    assert sorted(commits) == ["shown: commit of txid 1: store", "shown: commit of txid 2: store"]
    assert len(set(commits.values())) == 2
    assert set(commits.values()).isdisjoint(group for what, group, _ in shown if "wave" in what)
    assert [group.rpartition("/commit/")[2] for _, group in sorted(commits.items())] == ["1:1", "2:1"]


class SlowBatch(Batch):
    """Works for a while in every batch but the first."""

    def finish_batch(self) -> None:
        if self.attempt.transaction_id > 1:
            time.sleep(1.0)
        super().finish_batch()


def test_cancelling_a_wave_does_not_cancel_a_commit(cluster: LocalCluster, tmp_path: Path) -> None:
    """Transaction 2 fails and its wave is cancelled, while transaction 1 still commits."""
    store = FencedStore(tmp_path / "store.sqlite")
    slow = Fault("before", txid=1, error="", sleep_secs=2.0)
    topology = line(
        "beside",
        numbers(12),
        1,
        lambda b: b.set_bolt("x", SlowBatch(Fault("execute", txid=4))).shuffle_grouping("spout"),
        lambda b: b.set_bolt("store", Keep(store.path, slow)).global_grouping("x"),
    )
    handle = cluster.submit_topology("beside", {**PLACED, "topology.max.spout.pending": 2}, topology)
    handle.await_drained(60)
    handle.kill()
    assert sorted(store.values()) == list(range(12))
    assert handle.snapshot().replays >= 1
    store.check_tokens()
    assert [one.attempt for one in store.begun() if one.txid == 1] == [1], "the commit that ran was not touched"


class Works(Batch):
    """Works for a while in each batch."""

    def finish_batch(self) -> None:
        time.sleep(0.1)
        super().finish_batch()


def launches(sc: SparkContext, title: str) -> list[tuple[int, list[int]]]:
    """Return the jobs whose description begins so: number, and when the tasks of its last stage began (ms)."""
    status = sc._jsc.sc().statusStore()
    listed = status.jobsList(None)
    found = []
    for job in (listed.apply(i) for i in range(listed.size())):
        if job.description().isDefined() and job.description().get().startswith(title):
            stages = job.stageIds()
            tasks = status.taskList(max(stages.apply(i) for i in range(stages.size())), 0, 100)
            found.append((job.jobId(), sorted(tasks.apply(i).launchTime().getTime() for i in range(tasks.size()))))
    return sorted(found)


def test_a_commit_gets_the_next_slot_that_is_free_while_a_wave_waits_for_all_of_them(
    spark: SparkContext, cluster: LocalCluster, tmp_path: Path
) -> None:
    """Six tasks of a wave share two slots; the second turn of the commit before, a younger job, comes between them."""
    store, last = FencedStore(tmp_path / "store.sqlite"), FencedStore(tmp_path / "last.sqlite")
    topology = line(
        "starved",
        numbers(80),
        5,
        lambda b: b.set_bolt("works", Works(), 6).shuffle_grouping("spout"),
        lambda b: b.set_bolt("store", Keep(store.path)).global_grouping("works"),
        lambda b: b.set_bolt("last", Keep(last.path)).global_grouping("store"),
    )
    handle = cluster.submit_topology("starved", {**PLACED, "topology.workers": 6}, topology)
    handle.await_drained(60)
    handle.kill()
    eventually(lambda: bool(launches(spark, "starved: commit of txid 8: last")))
    waves = [(job, tasks) for job, tasks in launches(spark, "starved: wave") if len(tasks) == 6]
    commits = [(job, tasks[0]) for job, tasks in launches(spark, "starved: commit") if tasks]
    assert any(commit > wave and works[0] < begun < works[-1] for wave, works in waves for commit, begun in commits), (
        waves,
        commits,
    )
    assert sorted(store.values()) == list(range(80))


def test_a_commit_is_cancelled_too_where_spark_has_not_heard_of_it_yet(spark: SparkContext) -> None:
    """What `SparkEngine.cancel_commit` leans on: Spark's plain cancelJobGroup would miss a job that comes later."""
    sc, _ = start_spark("stormline-tests", None, {})
    sc._jsc.sc().cancelJobGroupAndFutureJobs("early")
    caught: list[Any] = []

    def job() -> None:
        sc.setJobGroup("early", "early")
        try:
            sc.parallelize([1], 1).collect()
        except Exception as error:
            caught.append(error)

    thread = threading.Thread(target=job)
    thread.start()
    thread.join(30)
    assert "cancelled" in str(caught[0])
