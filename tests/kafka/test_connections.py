"""How the spouts come to the brokers: TLS, passwords, and what is left when they are closed."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import psutil
import pytest

from stormline import FailedException
from stormline.errors import KafkaRefused, SecretMissing
from stormline.spouts.kafka import KafkaTransactionalSpout
from tests.kafka.conftest import Open
from tests.kits.components import eventually
from tests.services.free_port import free_port
from tests.services.kafka_broker import Kafka


def secured(kafka: Kafka, **more: Any) -> dict[str, Any]:
    return {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "alice",
        "sasl.password": "env:KAFKA_PASSWORD",
        "ssl.ca.location": str(kafka.ca_file),
        **more,
    }


def test_tls_and_a_password_by_reference_let_the_spout_in(
    kafka: Kafka, kind: Any, open_spout: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = kafka.topic()
    kafka.write(topic, [b"secret"])
    monkeypatch.setenv("KAFKA_PASSWORD", "alice-secret")
    spout = open_spout(kind, topic, servers=kafka.secured_servers, client=secured(kafka))
    assert spout.all() == [b"secret"]


def test_a_wrong_password_and_a_foreign_certificate_are_told_and_not_tried_for_ever(
    kafka: Kafka, open_spout: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = kafka.topic()
    monkeypatch.setenv("KAFKA_PASSWORD", "wrong-secret")
    spout = open_spout(
        KafkaTransactionalSpout, topic, servers=kafka.secured_servers, client=secured(kafka), timeout_secs=2
    )
    with pytest.raises(KafkaRefused, match=r"was refused: .*check the settings given as client=") as refused:
        spout.ready()
    assert "wrong-secret" not in str(refused.value)
    monkeypatch.setenv("KAFKA_PASSWORD", "alice-secret")
    system = {name: value for name, value in secured(kafka).items() if name != "ssl.ca.location"}
    spout = open_spout(KafkaTransactionalSpout, topic, servers=kafka.secured_servers, client=system, timeout_secs=2)
    with pytest.raises(KafkaRefused, match=r"was refused: .*certificate"):
        spout.ready()


def test_a_password_that_is_not_there_is_told(kafka: Kafka, open_spout: Open) -> None:
    with pytest.raises(SecretMissing, match=r"the Kafka setting sasl\.password refers to env:KAFKA_PASSWORD"):
        open_spout(KafkaTransactionalSpout, "t", client=secured(kafka))


def test_brokers_that_are_away_are_tried_again(open_spout: Open) -> None:
    nowhere = f"127.0.0.1:{free_port()}"
    spout = open_spout(KafkaTransactionalSpout, "t", servers=nowhere, timeout_secs=0.5)
    with pytest.raises(FailedException, match=f"at {nowhere}"):
        spout.coordinator.is_ready_after({}, 0)


def test_closing_leaves_no_connection_and_no_thread(kafka: Kafka, kind: Any, open_spout: Open) -> None:
    topic = kafka.topic(2)
    kafka.write(topic, [b"1", b"2"])
    process = psutil.Process()
    before = process.num_threads(), threading.active_count(), len(process.net_connections())
    spout = open_spout(kind, topic)
    assert len(spout.all()) == 2
    assert process.num_threads() > before[0]
    assert len(process.net_connections()) > before[2]
    spout.close()
    eventually(lambda: process.num_threads() <= before[0], 30)
    assert threading.active_count() == before[1]
    eventually(lambda: len(process.net_connections()) <= before[2], 30)


def test_importing_and_declaring_a_spout_imports_no_client() -> None:
    code = (
        "from stormline.spouts.kafka import *; import sys; KafkaTransactionalSpout('h:1', 't', ['value']);"
        "import stormline.errors; print({'confluent_kafka', 'msgspec', 'fastavro', 'pyarrow', 'ssl'} & {*sys.modules})"
    )
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=root, check=True)
    assert done.stdout == "set()\n"
