"""A commit that holds the interpreter's lock for longer than the session lasts, where ZooKeeper is the embedded one."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark import SparkContext

from stormline import LocalCluster
from stormline.topology.config import ZOOKEEPER_SESSION_TIMEOUT_MS
from tests.kits.components import LEDGERS, Store, line, numbers
from tests.kits.interpreter import match_for

pytestmark = pytest.mark.proof

SESSION_MS = 1000


class Matching(Store):
    """Matches a regular expression that takes three times as long as the session lasts, at transaction 2."""

    def finish_batch(self) -> None:
        if self.attempt.transaction_id == 2:
            match_for(3 * SESSION_MS / 1000)
        super().finish_batch()


def test_a_commit_that_holds_the_interpreters_lock_for_longer_than_the_session_is_committed(
    spark: SparkContext, tmp_path: Path
) -> None:
    topology = line("held", numbers(40), 5, lambda b: b.set_bolt("store", Matching("held")).global_grouping("spout"))
    with LocalCluster(tmp_path) as cluster:
        handle = cluster.submit_topology("held", {ZOOKEEPER_SESSION_TIMEOUT_MS: SESSION_MS}, topology)
        handle.await_drained(90)
        assert handle.snapshot().replays == 0
    assert sorted(LEDGERS["held"].all()) == list(range(40))
