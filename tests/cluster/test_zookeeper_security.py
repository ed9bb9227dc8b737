"""Digest, SASL and TLS with a real ZooKeeper: who may open, who may not, and what is refused at the start."""

from __future__ import annotations

import contextlib
import logging
import pickle
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import NoAuthError
from kazoo.security import ACL, OPEN_ACL_UNSAFE, Id, Permissions, make_acl, make_digest_acl

from stormline import resolve_secret
from stormline.runtime.coordination.batch_store import Batches
from stormline.runtime.errors import InsecureState, StateCorrupt, ZooKeeperDenied, ZooKeeperUnreachable
from stormline.runtime.state.state_store import Put
from stormline.runtime.state.stored_value import seal
from stormline.runtime.zookeeper.security import ZooKeeperSecurity
from stormline.runtime.zookeeper.store import ZooKeeperStateStore
from stormline.topology.errors import StormlineError
from stormline.topology.serialization import PLAIN
from tests.services.secure_zookeeper import USERS, SecureZooKeeper
from tests.services.zookeeper_server import ZooKeeperServer

CANARY = "canary-9c41e7"
OURS = make_digest_acl("storm", CANARY, all=True)
NODES = ["", "/owner", "/live", "/topology", "/state", "/state/a", "/state/b", "/state/b/c"]


@pytest.fixture(scope="session")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureZooKeeper]:
    with SecureZooKeeper(tmp_path_factory.mktemp("secure-zookeeper"), client_auth="none") as server:
        yield server


@pytest.fixture(scope="session")
def mutual(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureZooKeeper]:
    with SecureZooKeeper(tmp_path_factory.mktemp("mutual-zookeeper"), client_auth="need") as server:
        yield server


class Opener:
    """Opens stores with a configuration, and closes them all."""

    def __init__(self) -> None:
        self.root = f"/secure-{uuid.uuid4().hex}/transactional"
        self.node = f"{self.root}/topo"
        self._stores: list[ZooKeeperStateStore] = []

    def __call__(self, hosts: str, config: dict[str, Any] | None = None, **options: Any) -> ZooKeeperStateStore:
        store = ZooKeeperStateStore.open(
            hosts,
            self.root,
            "topo",
            description={"a": 1},
            session_timeout_ms=5000,
            connection_timeout_ms=3000,
            security=ZooKeeperSecurity.of(config or {}),
            **options,
        )
        self._stores.append(store)
        return store

    def close(self) -> None:
        for store in self._stores:
            store.close()


@pytest.fixture
def opening() -> Iterator[Opener]:
    opener = Opener()
    yield opener
    opener.close()


@contextlib.contextmanager
def client(hosts: str, **options: Any) -> Iterator[KazooClient]:
    made = KazooClient(hosts, **options)
    made.start()
    yield made
    made.stop()
    made.close()


def authenticated(tmp_path: Path, scheme: str = "digest", payload: str = f"storm:{CANARY}") -> dict[str, Any]:
    file = tmp_path / f"payload-{uuid.uuid4().hex}"
    file.write_text(f"{payload}\n")
    return {"storm.zookeeper.auth.scheme": scheme, "storm.zookeeper.auth.payload": f"file:{file}"}


def refused(kind: type[StormlineError], message: str, opening: Opener, *args: Any) -> None:
    with pytest.raises(kind, match=message) as caught:
        opening(*args)
    assert CANARY not in str(caught.value)


class TestDigest:
    def test_every_znode_is_the_creators_alone(
        self, zookeeper: ZooKeeperServer, opening: Opener, tmp_path: Path
    ) -> None:
        store = opening(zookeeper.hosts, authenticated(tmp_path))
        store.write([Put("a", 1), Put("b/c", 2)])
        with client(zookeeper.hosts, auth_data=[("digest", f"storm:{CANARY}")]) as ours:
            above = [opening.root, opening.root.rpartition("/")[0]]
            for path in [*above, *(f"{opening.node}{name}" for name in NODES)]:
                assert ours.get_acls(path)[0] == [OURS], path
        with client(zookeeper.hosts) as anybody:
            for call in (anybody.get, anybody.get_children, anybody.delete):
                with pytest.raises(NoAuthError):
                    call(f"{opening.node}/state/a")

    def test_thousands_of_small_values_whose_owner_is_named_with_each_fit_one_request_or_are_split(
        self, zookeeper: ZooKeeperServer, opening: Opener, tmp_path: Path
    ) -> None:
        store = opening(zookeeper.hosts, authenticated(tmp_path, payload=f"{'s' * 60}:{CANARY}"))
        Batches(store).begin(dict.fromkeys(range(1, 6001)), 0)
        assert len(store.children("batches")) == 6000

    def test_the_same_identity_goes_on_and_another_cannot(
        self, zookeeper: ZooKeeperServer, opening: Opener, tmp_path: Path
    ) -> None:
        store = opening(zookeeper.hosts, authenticated(tmp_path))
        store.write([Put("a", 1)])
        denied = rf"denies access to {opening.root}.*: its access control list does not let this driver \({{}}\) read"
        others = authenticated(tmp_path, payload=f"storm:not-{CANARY}")
        by_digest = denied.format("authenticated by digest") + ".*correct user and password in file:/"
        nobody = (
            denied.format("which has not said who it is") + r".*say who it is by storm\.zookeeper\.auth\.scheme and"
        )
        refused(ZooKeeperDenied, by_digest, opening, zookeeper.hosts, others)
        refused(ZooKeeperDenied, nobody, opening, zookeeper.hosts)
        store.write([Put("a", 2)])
        store.close()
        refused(ZooKeeperDenied, by_digest, opening, zookeeper.hosts, others)
        refused(ZooKeeperDenied, nobody, opening, zookeeper.hosts)
        again = opening(zookeeper.hosts, authenticated(tmp_path))
        assert (again.epoch, again.get("a")) == (2, 2)

    @pytest.mark.parametrize("name", NODES)
    @pytest.mark.parametrize(
        ("acl", "shown"),
        [
            (OPEN_ACL_UNSAFE, "world:anyone:cdrwa"),
            ([OURS, make_acl("world", "anyone", write=True)], "digest:storm:cdrwa, world:anyone:w"),
            ([OURS, make_digest_acl("storm", "another", admin=True)], "digest:storm:cdrwa, digest:storm:a"),
            ([OURS, make_acl("ip", "127.0.0.1", delete=True)], "digest:storm:cdrwa, ip:127.0.0.1:d"),
        ],
    )
    def test_a_znode_that_others_can_change_is_refused_at_the_start(
        self, zookeeper: ZooKeeperServer, opening: Opener, tmp_path: Path, name: str, acl: list[ACL], shown: str
    ) -> None:
        store = opening(zookeeper.hosts, authenticated(tmp_path))
        store.write([Put("a", 1), Put("b/c", 2)])
        path = f"{opening.node}{name}"
        with client(zookeeper.hosts, auth_data=[("digest", f"storm:{CANARY}")]) as ours:
            if name == "/live":
                ours.set_acls(path, acl)
                refused(
                    InsecureState, "/live can be changed by others", opening, zookeeper.hosts, authenticated(tmp_path)
                )
                return
            store.close()
            ours.set_acls(path, acl)
            owner = ours.get(f"{opening.node}/owner")[1].version
            refused(
                InsecureState,
                rf"^znode {path} can be changed by others: its access control list is {shown}, expected "
                r"digest:storm:cdrwa alone\. Find out who .* \(setAcl -R\), or delete them, or take another",
                opening,
                zookeeper.hosts,
                authenticated(tmp_path),
            )
            assert ours.get(f"{opening.node}/owner")[1].version == owner
            ours.set_acls(path, [OURS])
        assert opening(zookeeper.hosts, authenticated(tmp_path)).epoch == 2

    def test_an_operator_may_let_others_read(self, zookeeper: ZooKeeperServer, opening: Opener, tmp_path: Path) -> None:
        opening(zookeeper.hosts, authenticated(tmp_path)).close()
        with client(zookeeper.hosts, auth_data=[("digest", f"storm:{CANARY}")]) as ours:
            ours.set_acls(f"{opening.node}/state", [OURS, ACL(Permissions.READ, Id("world", "anyone"))])
        assert opening(zookeeper.hosts, authenticated(tmp_path)).epoch == 2

    def test_a_topology_that_began_open_to_all_is_refused(
        self, zookeeper: ZooKeeperServer, opening: Opener, tmp_path: Path
    ) -> None:
        opening(zookeeper.hosts).close()
        refused(InsecureState, rf"znode {opening.node} can be ch", opening, zookeeper.hosts, authenticated(tmp_path))

    def test_a_node_that_somebody_made_first_is_refused(
        self, zookeeper: ZooKeeperServer, opening: Opener, tmp_path: Path
    ) -> None:
        with client(zookeeper.hosts) as squatter:
            squatter.create(opening.node, b"", makepath=True)
        refused(InsecureState, "world:anyone:cdrwa, expected", opening, zookeeper.hosts, authenticated(tmp_path))

    def test_a_driver_that_lost_its_rights_writes_nothing(
        self, zookeeper: ZooKeeperServer, opening: Opener, tmp_path: Path
    ) -> None:
        store = opening(zookeeper.hosts, authenticated(tmp_path))
        with client(zookeeper.hosts, auth_data=[("digest", f"storm:{CANARY}")]) as ours:
            ours.set_acls(f"{opening.node}/owner", [make_digest_acl("thief", "x", all=True)])
        with pytest.raises(ZooKeeperDenied, match=r"does not let this driver \(authenticated by digest\)"):
            store.write([Put("a", 1)])

    def test_nothing_that_is_logged_shows_the_secret(
        self, zookeeper: ZooKeeperServer, opening: Opener, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.DEBUG)
        for name in ("kazoo", "kazoo.client", "stormline", "stormline.kazoo"):
            caplog.set_level(logging.DEBUG, name)
        config = authenticated(tmp_path)
        store = opening(zookeeper.hosts, config, debug=True)
        store.write([Put("a", 1)])
        assert "Auth(auth_type=0, scheme='digest', auth='*****')" in caplog.text
        assert CANARY not in caplog.text
        assert CANARY in resolve_secret(config["storm.zookeeper.auth.payload"])


class TestSasl:
    def config(self, tmp_path: Path, user: str = "storm", password: str = "") -> dict[str, Any]:
        return authenticated(tmp_path, "sasl", f"{user}:{password or USERS[user]}")

    def test_znodes_are_the_users_alone(self, secure: SecureZooKeeper, opening: Opener, tmp_path: Path) -> None:
        store = opening(secure.server.hosts, self.config(tmp_path))
        store.write([Put("a", 1), Put("b/c", 2)])
        options = {"mechanism": "DIGEST-MD5", "username": "storm", "password": USERS["storm"]}
        with client(secure.server.hosts, sasl_options=options) as ours:
            for name in NODES:
                assert ours.get_acls(f"{opening.node}{name}")[0] == [make_acl("sasl", "storm", all=True)], name
        store.close()
        assert opening(secure.server.hosts, self.config(tmp_path)).get("b/c") == 2
        refused(
            ZooKeeperDenied,
            rf"denies access to {opening.root}.*authenticated by sasl",
            opening,
            secure.server.hosts,
            self.config(tmp_path, "other"),
        )

    @pytest.mark.parametrize("user", ["storm", "nobody"])
    def test_a_wrong_password_or_user_is_refused(
        self, secure: SecureZooKeeper, opening: Opener, tmp_path: Path, user: str
    ) -> None:
        refused(
            ZooKeeperDenied,
            r"does not accept storm\.zookeeper\.auth\.scheme=sasl for /secure-.*AUTH_FAILED.*correct user and "
            "password in file:/.*, and check that the server has this scheme switched on",
            opening,
            secure.server.hosts,
            self.config(tmp_path, user, CANARY),
        )

    def test_a_server_without_sasl_is_refused(
        self, zookeeper: ZooKeeperServer, opening: Opener, tmp_path: Path
    ) -> None:
        refused(
            ZooKeeperUnreachable,
            r"\(and SASL: a server without it does not answer\) runs",
            opening,
            zookeeper.hosts,
            self.config(tmp_path),
        )
        with client(zookeeper.hosts) as anybody:
            assert anybody.exists(f"{opening.node}/owner") is None


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # kazoo leaves it to the collector
class TestTls:
    def config(self, secure: SecureZooKeeper, **more: Any) -> dict[str, Any]:
        keys = {"storm.zookeeper.ssl.enable": True, "transactional.zookeeper.ssl.ca": str(secure.ca)}
        return {**keys, **{key.replace("__", "."): value for key, value in more.items()}}

    def test_a_topology_runs_over_tls(self, secure: SecureZooKeeper, opening: Opener, tmp_path: Path) -> None:
        config = {**self.config(secure), **authenticated(tmp_path)}
        store = opening(secure.tls_hosts, config)
        store.write([Put("a", 1)])
        store.close()
        assert opening(secure.tls_hosts, config).get("a") == 1

    def test_sasl_over_tls(self, secure: SecureZooKeeper, opening: Opener, tmp_path: Path) -> None:
        payload = authenticated(tmp_path, "sasl", f"storm:{USERS['storm']}")
        assert opening(secure.tls_hosts, {**self.config(secure), **payload}).epoch == 1

    def test_a_server_that_nobody_vouches_for_is_not_believed(self, secure: SecureZooKeeper, opening: Opener) -> None:
        verified = (
            r"3000 ms \(the last problem, speaking TLS: .*CERTIFICATE_VERIFY_FAILED.*storm\.zookeeper\.ssl\.enable"
        )
        foreign = {"transactional.zookeeper.ssl.ca": str(secure.foreign_ca)}
        refused(ZooKeeperUnreachable, verified, opening, secure.tls_hosts, {**self.config(secure), **foreign})
        only_on = {"storm.zookeeper.ssl.enable": True}
        refused(ZooKeeperUnreachable, verified, opening, secure.tls_hosts, only_on)

    def test_a_server_with_another_name_is_not_believed(self, secure: SecureZooKeeper, opening: Opener) -> None:
        hosts = secure.tls_hosts.replace("127.0.0.1", "localhost")
        refused(ZooKeeperUnreachable, "Hostname mismatch", opening, hosts, self.config(secure))
        config = {**self.config(secure), "storm.zookeeper.ssl.hostnameVerification": False}
        assert opening(hosts, config).epoch == 1

    def test_plain_and_tls_do_not_meet(self, secure: SecureZooKeeper, opening: Opener) -> None:
        refused(ZooKeeperUnreachable, r"does not answer within 3000 ms", opening, secure.tls_hosts)
        refused(ZooKeeperUnreachable, "speaking TLS: ", opening, secure.server.hosts, self.config(secure))

    def test_a_server_that_asks_for_a_certificate_gets_one(
        self, mutual: SecureZooKeeper, opening: Opener, tmp_path: Path
    ) -> None:
        config = {**self.config(mutual), **authenticated(tmp_path)}
        refused(ZooKeeperUnreachable, "speaking TLS: ", opening, mutual.tls_hosts, config)
        own = {
            "transactional.zookeeper.ssl.certificate": str(mutual.certificate),
            "transactional.zookeeper.ssl.key": str(mutual.key),
        }
        store = opening(mutual.tls_hosts, {**config, **own})
        store.write([Put("a", 1)])
        store.close()
        assert opening(mutual.tls_hosts, {**config, **own}).get("a") == 1  # digest alone owns what was created


class Malicious:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return Path.touch, (self.path,)


@pytest.mark.parametrize("name", [name for name in NODES if name])
def test_a_pickle_in_a_sound_envelope_is_not_run(
    zookeeper: ZooKeeperServer, opening: Opener, tmp_path: Path, name: str
) -> None:
    opening(zookeeper.hosts).close()
    attack = pickle.dumps(Malicious(tmp_path / "run"))
    with client(zookeeper.hosts) as attacker:
        for data in (attack, seal(attack, PLAIN), seal({"epoch": attack, "token": attack}, PLAIN)):
            path = f"{opening.node}{name}"
            attacker.ensure_path(path)
            attacker.set(path, data)
            if name.startswith("/state/") or (name == "/topology" and data != attack):
                with contextlib.suppress(StateCorrupt, StormlineError):
                    opening(zookeeper.hosts).close()
            else:
                refused(StateCorrupt, rf"{opening.node}{name} ", opening, zookeeper.hosts)
    assert not (tmp_path / "run").exists()
    pickle.loads(attack)
    assert (tmp_path / "run").exists()  # the attack was real
