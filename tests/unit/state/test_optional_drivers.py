"""Databases' drivers are extras: nothing imports them before a connection is made, and a missing one is told."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from stormline.errors import MissingExtra
from stormline.state import MySQLStore, PostgreSQLStore, RedisStore
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


def test_declaring_stores_and_maps_imports_no_driver() -> None:
    code = "from stormline.state import *; TransactionalMap(PostgreSQLStore('host=db'), 't', {'k': str}, {'v': int})"
    assert loaded_after(code) & {"psycopg", "pymysql", "redis", "pyarrow", "pyspark", "kazoo"} == set()
