"""A store that a setting or a command line names."""

from __future__ import annotations

import pytest

from stormline.errors import InvalidStore
from stormline.state import (
    MemoryStore,
    MySQLStore,
    PostgreSQLStore,
    RedisStore,
    SQLiteStore,
    Store,
    store_at,
)


@pytest.mark.parametrize(
    ("url", "store"),
    [
        ("sqlite:a/b.sqlite", SQLiteStore("a/b.sqlite")),
        ("sqlite:/a/b.sqlite", SQLiteStore("/a/b.sqlite")),
        ("memory:x", MemoryStore("x")),
        ("postgresql:host=db dbname=x", PostgreSQLStore("host=db dbname=x")),
        ("postgresql:env:DSN", PostgreSQLStore("env:DSN")),
        ("postgresql://u@db/x", PostgreSQLStore("postgresql://u@db/x")),
        ("postgres://u@db/x", PostgreSQLStore("postgres://u@db/x")),
        ("mysql://u@db/x", MySQLStore("mysql://u@db/x")),
        ("mariadb://u@db/x", MySQLStore("mariadb://u@db/x")),
        ("redis://db/0", RedisStore("redis://db/0")),
        ("rediss://db/0", RedisStore("rediss://db/0")),
    ],
)
def test_each_form_is_the_store_that_it_names(url: str, store: Store) -> None:
    assert store_at(url) == store


def test_what_a_store_prints_leads_back_to_it() -> None:
    for store in (SQLiteStore("a"), MemoryStore("m"), PostgreSQLStore("host=db"), MySQLStore("mysql://u@db/x")):
        assert store_at(str(store)) == store


def test_a_password_is_given_by_reference() -> None:
    assert store_at("mysql://u@db/x", "env:SECRET") == MySQLStore("mysql://u@db/x", "env:SECRET")
    assert store_at("postgresql:host=db", "file:/s") == PostgreSQLStore("host=db", "file:/s")


@pytest.mark.parametrize(
    ("url", "password", "why"),
    [
        ("sqlit:x", "", r"begins with 'sqlit', expected sqlite:PATH, .*; did you mean 'sqlite'\?"),
        ("host=db password=hunter2", "", r"has no scheme \(it is not shown: it may hold a password\), expected sqlite"),
        (None, "", r"has no scheme"),
        ("sqlite:", "", r"a store is named by 'sqlite:', expected sqlite:NAME"),
        ("sqlite:x", "env:X", r"a sqlite store is given a password, and has none; leave it out"),
        ("postgresql://u:hunter2@db/x", "", r"holds a password, which is not shown here; leave it out"),
        ("redis://:hunter2@db/0", "", r"not shown here, expected redis://"),
    ],
)
def test_what_names_no_store_is_told_without_secrets(url: str, password: str, why: str) -> None:
    with pytest.raises(InvalidStore, match=why) as caught:
        store_at(url, password)
    assert "hunter2" not in str(caught.value)
