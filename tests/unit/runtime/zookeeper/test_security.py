"""What settings of security go together, and what is said where they do not: half of them would protect nothing."""

from __future__ import annotations

import builtins
from bisect import bisect_left
from pathlib import Path
from typing import Any

import pytest
import trustme
from click.testing import CliRunner
from kazoo.protocol.serialization import Create, SetData, Transaction
from kazoo.security import OPEN_ACL_UNSAFE

from stormline import LocalCluster
from stormline.cli.compile import compile_command
from stormline.cli.errors import UnsafeConf
from stormline.cli.submit import submit_command
from stormline.runtime.errors import StateTooLarge, UnsafeSpark
from stormline.runtime.spark.context import start_spark
from stormline.runtime.spark.settings import check_no_secrets
from stormline.runtime.state.state_store import Put
from stormline.runtime.state.state_tree import Change, StateTree
from stormline.runtime.zookeeper.security import OPEN, ZooKeeperSecurity
from stormline.topology.errors import InvalidConfig, MissingExtra, SecretMissing
from stormline.topology.serialization import PLAIN
from tests.kits.components import Store, line, numbers

CANARY = "canary-77b0"
SCHEME, PAYLOAD = "storm.zookeeper.auth.scheme", "storm.zookeeper.auth.payload"
SSL, CA = "storm.zookeeper.ssl.enable", "transactional.zookeeper.ssl.ca"
CERTIFICATE, KEY = "transactional.zookeeper.ssl.certificate", "transactional.zookeeper.ssl.key"
KEY_PASSWORD = "transactional.zookeeper.ssl.key.password"
MODULE = "tests.topologies.cluster_sum"


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({SCHEME: "digest"}, rf"^{SCHEME} is set and {PAYLOAD} is not; set both, or neither$"),
        ({PAYLOAD: "env:X"}, rf"^{PAYLOAD} is set and {SCHEME} is not; set both, or neither$"),
        *(
            (
                {key: "x"},
                rf"^{key} is set and {SSL} is not, so nothing would be encrypted; set {SSL} to True, or remove",
            )
            for key in (CA, CERTIFICATE, KEY, KEY_PASSWORD)
        ),
        (
            {SSL: True, CERTIFICATE: "c"},
            rf"^{CERTIFICATE} is 'c' and {KEY} is None; a certificate needs its private key",
        ),
        ({SSL: True, KEY: "k"}, rf"^{CERTIFICATE} is None and {KEY} is 'k'; a certificate needs its private key"),
        ({SSL: True, KEY_PASSWORD: "env:X"}, rf"^{CERTIFICATE} is None and {KEY} is None; a certificate needs"),
        (
            {SSL: True, CERTIFICATE: "c", KEY: "k"},
            rf"^{CERTIFICATE} opens the connection and protects no znode; say whose",
        ),
    ],
)
def test_settings_that_do_not_go_together(config: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidConfig, match=message):
        ZooKeeperSecurity.of(config)


def test_without_settings_all_is_open() -> None:
    assert ZooKeeperSecurity.of({"mine": 1}) == OPEN
    credentials = OPEN.credentials()
    assert (credentials.client_options, credentials.protects) == ({}, False)
    credentials.check("/t", OPEN_ACL_UNSAFE)


def test_sasl_without_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *args: Any) -> Any:
        if name == "puresasl":
            raise ImportError
        return real(name, *args)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(
        MissingExtra, match=rf"^{SCHEME}=sasl needs the package pure-sasl.*pip install 'stormline\[sasl\]'$"
    ):
        ZooKeeperSecurity.of({SCHEME: "sasl", PAYLOAD: "env:X"})


@pytest.mark.parametrize("scheme", ["digest", "sasl"])
@pytest.mark.parametrize("payload", [CANARY, f":{CANARY}", f"{CANARY}:"])
def test_a_payload_that_is_no_user_and_password(monkeypatch: pytest.MonkeyPatch, scheme: str, payload: str) -> None:
    monkeypatch.setenv("MINE", payload)
    security = ZooKeeperSecurity.of({SCHEME: scheme, PAYLOAD: "env:MINE"})
    with pytest.raises(
        InvalidConfig, match=rf"^{PAYLOAD} refers to env:MINE, which does not hold user:password"
    ) as caught:
        security.credentials()
    assert CANARY not in str(caught.value)


def test_a_payload_that_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MINE", raising=False)
    with pytest.raises(SecretMissing, match=rf"^{PAYLOAD} refers to env:MINE, which is not set here"):
        ZooKeeperSecurity.of({SCHEME: "digest", PAYLOAD: "env:MINE"}).credentials()


@pytest.mark.parametrize("scheme", ["digest", "sasl"])
def test_credentials_are_read_late_and_show_nothing(monkeypatch: pytest.MonkeyPatch, scheme: str) -> None:
    security = ZooKeeperSecurity.of({SCHEME: scheme, PAYLOAD: "env:MINE"})
    monkeypatch.setenv("MINE", f"me:{CANARY}:x")
    credentials = security.credentials()
    assert CANARY not in repr(security) + repr(credentials) + repr(credentials.client_options)
    assert credentials.protects


@pytest.mark.parametrize("user", [None, "ä" * 60, "s" * 5000])
@pytest.mark.parametrize("scheme", ["digest", "sasl"])
def test_whose_the_znodes_are_counts_in_what_fits_one_request(
    monkeypatch: pytest.MonkeyPatch, scheme: str, user: str | None
) -> None:
    monkeypatch.setenv("MINE", f"{user}:{CANARY}")
    security = OPEN if user is None else ZooKeeperSecurity.of({SCHEME: scheme, PAYLOAD: "env:MINE"})
    credentials = security.credentials()
    acl = credentials.client_options.get("default_acl", OPEN_ACL_UNSAFE)
    tree = StateTree(PLAIN, "/transactional/t/state", credentials.acl_bytes)

    def plan(batches: int) -> list[Change]:
        return tree.plan([Put(f"batches/{txid:012}", None) for txid in range(batches)])

    def fits(batches: int) -> bool:
        try:
            return bool(plan(batches))
        except StateTooLarge:
            return False

    most = bisect_left(range(1, 20_000), True, key=lambda batches: not fits(batches))
    ops = [Create(f"/transactional/t/state/{change.path}", change.data, acl, 0) for change in plan(most)]
    request = len(Transaction([SetData("/transactional/t/owner", b"x" * 1000, 0), *ops]).serialize())
    assert 700_000 < request < 1_020_000, "ZooKeeper takes 1,048,575"
    tree.apply(plan(most))
    tree.plan([Put(f"batches/{txid:012}", "") for txid in range(most)])


def test_certificates_are_tried_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    authority = trustme.CA()
    ca, certificate, key, junk = (tmp_path / name for name in ("ca", "certificate", "key", "junk"))
    authority.cert_pem.write_to_path(ca)
    issued = authority.issue_cert("driver.example")
    issued.cert_chain_pems[0].write_to_path(certificate)
    issued.private_key_pem.write_to_path(key)
    junk.write_text("junk")
    monkeypatch.setenv("MINE", f"me:{CANARY}")
    sound = {
        SCHEME: "digest",
        PAYLOAD: "env:MINE",
        SSL: True,
        CA: str(ca),
        CERTIFICATE: str(certificate),
        KEY: str(key),
    }
    options = ZooKeeperSecurity.of(sound).credentials().client_options
    assert (options["use_ssl"], options["verify_certs"], options["check_hostname"]) == (True, True, True)
    for wrong in (str(junk), str(tmp_path / "missing")):
        with pytest.raises(
            InvalidConfig, match=rf"^{CA}: {wrong} cannot be used \(.*\); expected PEM files that exist$"
        ):
            ZooKeeperSecurity.of({**sound, CA: wrong}).credentials()
        with pytest.raises(InvalidConfig, match=rf"^{CERTIFICATE}, {KEY} or its password: .*cannot be used"):
            ZooKeeperSecurity.of({**sound, KEY: wrong}).credentials()


@pytest.mark.parametrize("config", [{SSL: True}, {SCHEME: "sasl", PAYLOAD: "env:X"}])
def test_the_embedded_zookeeper_has_neither_tls_nor_sasl(config: dict[str, Any]) -> None:
    topology = line("t", numbers(2), 1, lambda b: b.set_bolt("s", Store("l")).shuffle_grouping("spout"))
    message = rf"^{SSL} or {SCHEME}=sasl is set, and the embedded ZooKeeper has neither; name the servers that have"
    with LocalCluster() as cluster, pytest.raises(InvalidConfig, match=message):
        cluster.submit_topology("t", config, topology)


@pytest.mark.parametrize("value", [CANARY, "env:X", "file:/x"])
def test_a_secret_of_sparks_does_not_reach_a_command_line(value: str) -> None:
    message = r"^spark\.ssl\.keyPassword would stand on the command line that starts Spark, .*spark-defaults\.conf"
    settings = {"spark.ssl.keyPassword": value}
    for call in (lambda: check_no_secrets(settings), lambda: start_spark("x", "spark://nowhere.invalid:1", settings)):
        with pytest.raises(UnsafeSpark, match=message) as caught:
            call()
        assert CANARY not in str(caught.value)
    for command in (submit_command, compile_command):
        done = CliRunner().invoke(command, [MODULE, "--conf", f"spark.ssl.keyPassword={value}", "-o", "nowhere"])
        assert isinstance(done.exception, UnsafeSpark)
    check_no_secrets({"spark.authenticate.secret.file": "/x", "spark.authenticate": "true"})


@pytest.mark.parametrize("command", [submit_command, compile_command])
def test_a_secret_of_ones_own_does_not_reach_a_command_line(command: Any, tmp_path: Path) -> None:
    options = [MODULE, "-o", str(tmp_path / "out"), *(["--dry-run"] if command is submit_command else [])]
    done = CliRunner().invoke(command, [*options, "--conf", f"my.password={CANARY}"])
    assert isinstance(done.exception, UnsafeConf)
    assert str(done.exception).startswith(
        "--conf my.password=… gives a secret as it is, which every user of the machine"
    )
    assert CANARY not in str(done.exception)
    done = CliRunner().invoke(command, [*options, "--conf", "my.password=env:X", "--conf", f"{SCHEME}=digest"])
    assert done.exit_code == 0, done.output
    assert f"--conf my.password=env:X --conf {SCHEME}=digest" in done.stdout
