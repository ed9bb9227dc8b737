"""Secrets by reference: where they are read, what is said where they are not, and that nothing shows them."""

from __future__ import annotations

import io
import json
import logging
import os
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

import pytest

from stormline import InProcessCluster, resolve_secret
from stormline.runtime.tasks import user_code
from stormline.runtime.zookeeper.session import _kazoo_logger, _LastWarning
from stormline.topology import secrets
from stormline.topology.errors import FailedException, InvalidConfig, SecretMissing
from stormline.topology.secrets import HIDDEN, is_reference, literal_secrets, names_a_secret, without_secrets
from tests.kits.components import Batch, line, numbers

CANARY = "canary-5d1f0a"


@pytest.fixture(autouse=True)
def forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secrets, "_known", ())
    log = logging.getLogger("stormline")
    monkeypatch.setattr(log, "filters", [])


def test_a_secret_is_read_from_the_environment_or_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MINE", "first")
    assert resolve_secret("env:MINE") == "first"
    file = tmp_path / "a b"
    for content, secret in (("x", "x"), ("x\n", "x"), ("x\r\n", "x"), (" x \n\n", " x \n"), ("é", "é")):
        file.write_bytes(content.encode())
        assert resolve_secret(f"file:{file}") == secret


@pytest.mark.parametrize(
    "wrong", [CANARY, "env:", f"env:{CANARY}", "file:", "file:a\0b", "http://x", "", None, 3, b"env:A"]
)
def test_what_is_no_reference_is_refused_and_not_shown(wrong: Any) -> None:
    assert not is_reference(wrong)
    with pytest.raises(InvalidConfig) as caught:
        resolve_secret(wrong, "a.b")
    assert str(caught.value) == (
        f"a.b is given as a {type(wrong).__name__} that is not shown here, expected a reference to it: env:NAME or "
        "file:PATH"
    )


def test_a_secret_that_is_missing_says_where_it_was_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NOBODY", raising=False)
    with pytest.raises(
        SecretMissing, match=r"^a\.b refers to env:NOBODY, which is not set here; set the environment var"
    ):
        resolve_secret("env:NOBODY", "a.b")
    cases = [
        ("missing", None, r"which cannot be read here \(No such file or directory\); put the secret there"),
        ("empty", b"\n", "which is empty; write the secret into it"),
        ("large", b"x" * 65537, "which is more than 65536 bytes; expected a file with the secret alone"),
        ("binary", b"\xff", "which is not UTF-8; expected a text"),
    ]
    for name, content, message in cases:
        path = tmp_path / name
        if content is not None:
            path.write_bytes(content)
        with pytest.raises(SecretMissing, match=rf"^a\.b refers to file:{path}, {message}"):
            resolve_secret(f"file:{path}", "a.b")
    os.mkfifo(tmp_path / "fifo")
    for path in (tmp_path / "fifo", Path(os.devnull)):
        with pytest.raises(SecretMissing, match="which is not a regular file; expected a file with the secret alone"):
            resolve_secret(f"file:{path}")
    with pytest.raises(SecretMissing, match="which cannot be read here"):
        resolve_secret(f"file:{tmp_path}")


@pytest.mark.parametrize(
    ("key", "is_one"),
    [
        ("spark.hadoop.fs.s3a.secret.key", True), ("app.secret.key", True), ("fs.azure.sas.box.acct", True),
        ("spark.hadoop.fs.azure.account.key.acct.dfs.core.windows.net", True),
        ("spark.hadoop.fs.azure.account.oauth2.client.secret.acct.dfs.core.windows.net", True),
        ("spark.kubernetes.executor.secrets.x", False), ("spark.kubernetes.driver.secretKeyRef.X", False),
        ("db.password", True), ("MY_TOKEN", True), ("spark.hadoop.fs.s3a.access.key", True), ("apiSecret", True),
        ("spark.authenticate.secret.file", False), ("spark.kubernetes.driver.secrets.x", False), ("mine", False),
        ("ssl.key-password.path", False), (3, False),
    ],
)  # fmt: skip
def test_keys_that_are_called_as_secrets_are(key: Any, is_one: bool) -> None:
    assert names_a_secret(key) is is_one
    assert literal_secrets({key: "x"}) == ([key] if is_one else [])
    assert literal_secrets({key: "env:X"}) == literal_secrets({key: True}) == literal_secrets({key: ""}) == []


def test_resolved_secrets_are_hidden_in_texts_and_in_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    assert without_secrets(CANARY) == CANARY
    monkeypatch.setenv("MINE", CANARY)
    monkeypatch.setenv("SHORT", "abc")
    resolve_secret("env:MINE")
    resolve_secret("env:SHORT")
    assert without_secrets(f"<{CANARY}> abc") == f"<{HIDDEN}> abc"
    shown = io.StringIO()
    log, handler = logging.getLogger("stormline"), logging.StreamHandler(shown)
    log.addHandler(handler)
    try:
        log.warning("%s at %s", CANARY, 3)
        try:
            raise ValueError(CANARY)
        except ValueError:
            log.exception("it failed")
    finally:
        log.removeHandler(handler)
    assert shown.getvalue().startswith(f"{HIDDEN} at 3\nit failed\nTraceback (most")
    assert shown.getvalue().endswith(f"ValueError: {HIDDEN}\n")


WRITTEN: list[Callable[[str], str]] = [
    str, repr, ascii, json.dumps, quote, quote_plus, lambda secret: json.dumps(secret, ensure_ascii=False),
    lambda secret: repr(secret.encode()), lambda secret: repr(f"dsn={secret}"), lambda secret: repr(f"a'b{secret}"),
    lambda secret: repr(f'a"b{secret}'), lambda secret: repr(f"a'b\"c{secret}"), lambda secret: quote(secret, safe=""),
    lambda secret: "".join(traceback.format_exception(KeyError(secret))), lambda secret: str(OSError(2, "no", secret)),
    lambda secret: str(ValueError(("dsn", secret))), lambda secret: secret.replace("\n", "\n  | "),
]  # fmt: skip


@pytest.mark.parametrize("written", WRITTEN)
@pytest.mark.parametrize(
    "between", ["'", '"', "\\", "'\\\"", "\n", "\r\n", "\t", "é", "😀", " ", "@/:", "\\'", "%", "+"]
)
def test_a_secret_is_hidden_however_it_is_written(
    monkeypatch: pytest.MonkeyPatch, written: Callable[[str], str], between: str
) -> None:
    secret = f"can41f7{between}ary93d2"
    monkeypatch.setenv("MINE", secret)
    resolve_secret("env:MINE")
    shown = without_secrets(written(secret))
    assert "can41f7" not in shown
    assert "ary93d2" not in shown


def test_what_kazoo_logs_tells_no_secret(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setenv("MINE", CANARY)
    resolve_secret("env:MINE")
    _kazoo_logger(_LastWarning(), debug=True).warning("Sending Auth(auth=%r)", f"me:{CANARY}")
    assert caplog.messages == [f"Sending Auth(auth='me:{HIDDEN}')"]


@pytest.mark.parametrize("kind", [ValueError, FailedException])
def test_a_failure_tells_no_secret(monkeypatch: pytest.MonkeyPatch, kind: type[Exception]) -> None:
    monkeypatch.setenv("MINE", CANARY)
    error = kind(f"cannot log in with {CANARY}")
    assert CANARY in repr(user_code.failure_of(error, "b", 1, "execute"))  # nobody knows yet that it is one
    resolve_secret("env:MINE")
    failure = user_code.failure_of(error, "b", 1, "execute")
    assert CANARY not in repr(failure)
    assert f"cannot log in with {HIDDEN}" in failure.message
    assert failure.exception is None
    assert user_code.failure_of(ZeroDivisionError("x"), "b", 1, "execute").exception is not None


def test_a_secret_that_stands_in_the_configuration_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    class Quiet(Batch):
        def get_component_configuration(self) -> Any:
            return {"its.token": CANARY}

    topology = line("t", numbers(2), 1, lambda b: b.set_bolt("quiet", Quiet()).shuffle_grouping("spout"))
    with InProcessCluster() as cluster:
        handle = cluster.submit_topology("t", {"my.password": CANARY, "other.password": "env:X"}, topology)
        handle.await_drained(timeout_secs=30)
    assert [record.getMessage() for record in caplog.records] == [
        f"topology t: {where} sets {key} to a text that is sent to all executors; set it to env:NAME or file:PATH, and "
        f"read it in prepare() by resolve_secret(conf['{key}'])"
        for where, key in (("its configuration", "my.password"), ("component 'quiet'", "its.token"))
    ]
    assert CANARY not in caplog.text
