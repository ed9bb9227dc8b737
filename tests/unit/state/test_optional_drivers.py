"""Databases' drivers are extras: nothing imports them before a connection is made, and a missing one is told."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from stormline.errors import MissingExtra
from stormline.state import MySQLStore, PostgreSQLStore, RedisStore
from stormline.state.kafka import KafkaSink
from tests.unit.project.test_public_names import loaded_after

STORES = [
    (PostgreSQLStore("host=db"), "psycopg", "postgresql"),
    (MySQLStore("mysql://me@db/x"), "pymysql", "mysql"),
    (RedisStore("redis://db/0"), "redis", "redis"),
]


@pytest.mark.parametrize(("store", "driver", "extra"), STORES, ids=["postgresql", "mysql", "redis"])
def test_a_driver_that_is_not_installed_is_told_with_its_extra(
    store: Any, driver: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, f"stormline.state.{extra}_connection", raising=False)
    monkeypatch.setitem(sys.modules, driver, None)
    with pytest.raises(MissingExtra, match=rf"needs the package {driver}, which is not installed: .*stormline\["):
        store.connect()


def test_a_client_of_kafka_that_is_not_installed_is_told_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("stormline.state.kafka.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    with pytest.raises(MissingExtra, match=r"needs the package confluent-kafka, .*stormline\[kafka\]"):
        KafkaSink("host:9092").open_resource()


def test_declaring_stores_and_maps_imports_no_driver() -> None:
    code = "from stormline.state import *; TransactionalMap(PostgreSQLStore('host=db'), 't', {'k': str}, {'v': int})"
    code += "; from stormline.state.kafka import *; KafkaCommitter(KafkaSink('host:9092'), 'topic')"
    code += "; from stormline.state.xa import *; PostgresTwoPhaseBolt(PostgreSQLStore('host=db'), 't')"
    assert (
        loaded_after(code) & {"confluent_kafka", "psycopg", "pymysql", "redis", "pyarrow", "pyspark", "kazoo"} == set()
    )
