"""A driver that writes into Kafka is killed at each point of a commit: the next one finds out by the ledger."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.kafka.killed_driver import POINTS, values_of
from tests.kafka.output import is_settled, values
from tests.services.kafka_broker import Kafka

LIFE_SECS = 120.0


def test_drivers_that_are_killed_at_each_point_of_a_commit_write_each_transaction_once(
    kafka: Kafka, tmp_path: Path
) -> None:
    topic, recorded = kafka.topic(), tmp_path / "recorded"
    recorded.write_text("0")
    last = len(POINTS) + 1

    def lives(epoch: int, kill: str) -> int:
        arguments = [kafka.servers, topic, recorded, epoch, last, kill]
        command = [sys.executable, "-m", "tests.kafka.killed_driver", *map(str, arguments)]
        return subprocess.run(command, timeout=LIFE_SECS, check=False).returncode

    for i, point in enumerate(POINTS):
        assert lives(i + 1, f"{point}:{i + 1}") == -9, point
        assert recorded.read_text() == str(i + (point == "recorded"))
        if point == "prepared":
            assert not is_settled(kafka, topic)
    assert lives(len(POINTS) + 1, "") == 0
    assert values(kafka, topic) == [value for txid in range(1, last + 1) for value in values_of(txid)]
