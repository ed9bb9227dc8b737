"""The page on Kafka runs as it stands, and so does the example."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from examples import kafka_words
from stormline import InProcessCluster
from stormline.spouts.kafka import KafkaTransactionalSpout
from tests.services.kafka_broker import Kafka

ROOT = Path(__file__).resolve().parents[2]
COUNTS = {"the": 150, "dog": 60, "ox": 60, "saw": 60, "cat": 30, "slept": 30}


def test_the_page_and_the_example_count_every_committed_word_once(
    kafka: Kafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kafka_words.write(kafka.servers, kafka_words.SENTENCES)
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "kafka.md").read_text(encoding="utf-8"), re.DOTALL)
    script = tmp_path / "as_on_the_page.py"
    script.write_text("\n".join(blocks), encoding="utf-8")
    env = {**os.environ, "KAFKA_SERVERS": kafka.servers}
    done = subprocess.run(
        [sys.executable, str(script)], cwd=tmp_path, capture_output=True, text=True, timeout=240, env=env
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"{sorted(COUNTS.items())}\n"

    monkeypatch.setenv("KAFKA_SERVERS", kafka.servers)
    monkeypatch.setenv("KAFKA_WORDS_DATABASE", str(tmp_path / "example.sqlite"))
    with InProcessCluster() as cluster:
        handle = cluster.submit_topology("kafka-words", kafka_words.config, kafka_words.topology())
        handle.await_drained(timeout_secs=120)
    assert [line.split() for line in kafka_words.report().splitlines()] == [[w, str(n)] for w, n in COUNTS.items()]


def test_the_page_says_what_the_spout_takes() -> None:
    page = (ROOT / "docs" / "kafka.md").read_text(encoding="utf-8")
    arguments = KafkaTransactionalSpout.__init__.__kwdefaults__ or {}
    assert [name for name in arguments if name not in page] == []
