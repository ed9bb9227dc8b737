"""The page on Kafka runs as it stands, and so does the example."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from examples import kafka_to_kafka, kafka_words
from stormline import InProcessCluster
from stormline.spouts.kafka import KafkaTransactionalSpout
from stormline.state.kafka import KafkaCommitter
from tests.kafka.output import messages
from tests.services.kafka_broker import Kafka

ROOT = Path(__file__).resolve().parents[2]
COUNTS = {"the": 150, "dog": 60, "ox": 60, "saw": 60, "cat": 30, "slept": 30}


def test_the_page_and_the_example_count_every_committed_word_once(
    kafka: Kafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kafka_words.write(kafka.servers, kafka_words.SENTENCES)
    kafka.topic(name="words")
    kafka.topic(name="copies")
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "kafka.md").read_text(encoding="utf-8"), re.DOTALL)
    script = tmp_path / "as_on_the_page.py"
    script.write_text("\n".join(blocks), encoding="utf-8")
    env = {**os.environ, "KAFKA_SERVERS": kafka.servers}
    done = subprocess.run(
        [sys.executable, str(script)], cwd=tmp_path, capture_output=True, text=True, timeout=240, env=env
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"{sorted(COUNTS.items())}\n"
    written = Counter(json.loads(message.value())["word"] for message in messages(kafka, "words"))
    assert written == COUNTS
    assert Counter(message.value().decode() for message in messages(kafka, "copies")) == COUNTS

    monkeypatch.setenv("KAFKA_SERVERS", kafka.servers)
    monkeypatch.setenv("KAFKA_WORDS_DATABASE", str(tmp_path / "example.sqlite"))
    with InProcessCluster() as cluster:
        handle = cluster.submit_topology("kafka-words", kafka_words.config, kafka_words.topology())
        handle.await_drained(timeout_secs=120)
    assert [line.split() for line in kafka_words.report().splitlines()] == [[w, str(n)] for w, n in COUNTS.items()]


def test_of_each_committed_order_the_example_makes_one_invoice_a_customers_in_order(
    kafka: Kafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KAFKA_SERVERS", kafka.servers)
    kafka_to_kafka.make_topics(kafka.servers)
    orders = kafka_to_kafka.write_orders(kafka.servers, 200)
    assert len(orders) == 150
    with InProcessCluster() as cluster:
        handle = cluster.submit_topology("kafka-to-kafka", kafka_to_kafka.config, kafka_to_kafka.topology())
        handle.await_drained(timeout_secs=120)
    invoices = [json.loads(message.value()) for message in messages(kafka, kafka_to_kafka.INVOICES)]
    total, *customers = kafka_to_kafka.comparison(orders, invoices).splitlines()
    assert total == "150 orders, 150 invoices"
    assert [line.rpartition(": ")[2] for line in customers] == ["yes"] * 3
    missing, doubled = invoices[1:], [*invoices, invoices[0]]
    assert "NO" in kafka_to_kafka.comparison(orders, missing)
    assert "NO" in kafka_to_kafka.comparison(orders, doubled)


@pytest.mark.proof
def test_the_example_kills_its_driver_twice_and_there_is_one_invoice_of_each_order(kafka: Kafka) -> None:
    command = [sys.executable, "-m", "examples.kafka_to_kafka"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=400)
    assert done.returncode == 0, done.stderr
    *kills, total, ada, bob, cyd = done.stdout.splitlines()
    assert [line.partition(" after ")[0] for line in kills] == ["killed the driver"] * kafka_to_kafka.KILLS
    assert all(0 < int(line.split()[-2]) < 2250 for line in kills), kills
    assert total == "2250 orders, 2250 invoices"
    assert [line.rpartition(": ")[2] for line in (ada, bob, cyd)] == ["yes"] * 3


@pytest.mark.parametrize("kind", [KafkaTransactionalSpout, KafkaCommitter])
def test_the_page_says_what_spouts_and_committers_take(kind: Any) -> None:
    page = (ROOT / "docs" / "kafka.md").read_text(encoding="utf-8")
    arguments = kind.__init__.__kwdefaults__ or {}
    assert [name for name in arguments if name not in page] == []
