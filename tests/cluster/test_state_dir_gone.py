"""The state directory is deleted under a living driver."""

from __future__ import annotations

import shutil

import pytest

from tests.cluster.lives import ENDS_SECS, LIFE_SECS, Lives
from tests.topologies.keyed_sums import TRANSACTIONS

pytestmark = pytest.mark.proof


def test_a_driver_whose_state_directory_is_deleted_stops_with_one_sentence(lives: Lives) -> None:
    driver = lives.start_and_commit()
    shutil.rmtree(lives.state_dir)
    assert driver.end(ENDS_SECS) == 1, lives.output
    assert lives.txid_stored() < TRANSACTIONS
    assert f"error: state directory {lives.state_dir / 'zookeeper'} was deleted, moved or replaced" in lives.output


def test_an_idle_driver_notices_too(lives: Lives) -> None:
    driver = lives.start("finish_batch", "", "--keep-running")
    assert driver.wait_until(lambda: lives.txid_stored() == TRANSACTIONS, LIFE_SECS), lives.output
    shutil.rmtree(lives.state_dir)
    assert driver.end(ENDS_SECS) == 1, lives.output
    assert f"error: state directory {lives.state_dir / 'zookeeper'} was deleted, moved or replaced" in lives.output
