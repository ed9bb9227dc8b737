"""What a driver finds in ZooKeeper that it did not write, or not so: it halts, and changes nothing."""

from __future__ import annotations

import dataclasses
import os
import pickle
from pathlib import Path
from typing import Any

import pytest
from kazoo.security import make_digest_acl

from stormline.runtime.errors import InvalidPath, NewerState, StateCorrupt, StateTooLarge, ZooKeeperDenied
from stormline.runtime.state.driver_identity import DriverIdentity
from stormline.runtime.state.state_store import Put
from stormline.runtime.state.stored_value import seal
from stormline.runtime.world.world import REAL
from stormline.topology.errors import StormlineError
from stormline.topology.serialization import PLAIN
from tests.services.zookeeper_backend import ZooKeeperBackend


class Malicious:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.path),)


NODES = ["owner", "live", "topology", "state", "state/a", "state/b", "state/b/c"]


class TestForeignData:
    """Whatever is found there: nothing is changed, and the path is named."""

    @pytest.fixture
    def written(self, backend: ZooKeeperBackend) -> ZooKeeperBackend:
        store = backend.open(description={"a": 1})
        store.write([Put("a", 1), Put("b/c", 2)])
        store.close()
        return backend

    def test_a_topology_within_another_or_around_one_is_refused(self, written: ZooKeeperBackend) -> None:
        root, before = written.root, self.snapshot(written)
        written.root = written.node
        with pytest.raises(InvalidPath, match=r"lies within topology 'topo' .*start again beside 'x'; nothing was"):
            written.open("x")
        written.root = f"{root}/orders"
        written.open("x").close()
        assert self.snapshot(written) == before
        written.root = root
        with pytest.raises(InvalidPath, match=r"/orders is the root of topology 'x', so it cannot be the place"):
            written.open("orders")
        assert written.open(description={"a": 1}).epoch == 2

    def put(self, backend: ZooKeeperBackend, name: str, data: bytes, ephemeral: bool = True) -> None:
        path = f"{backend.node}/{name}"
        if name == "live":
            backend.client.create(path, data, ephemeral=ephemeral)
        else:
            backend.client.set(path, data)

    def snapshot(self, backend: ZooKeeperBackend, node: str = "") -> list[Any]:
        path = f"{backend.node}{node}"
        data, stat = backend.client.get(path)
        below = [self.snapshot(backend, f"{node}/{name}") for name in sorted(backend.client.get_children(path))]
        return [path, data, stat.mzxid, below]

    def refused(self, backend: ZooKeeperBackend, kind: type[StormlineError], message: str) -> None:
        before = self.snapshot(backend)
        with pytest.raises(kind, match=message):
            backend.open(description={"a": 1})
        assert self.snapshot(backend) == before

    @pytest.mark.parametrize("name", NODES)
    @pytest.mark.parametrize("data", [b"", b"hello", b"\0" * 100])
    def test_foreign_bytes_halt(self, written: ZooKeeperBackend, name: str, data: bytes) -> None:
        self.put(written, name, data)
        self.refused(written, StateCorrupt, rf"/topo/{name} holds .*Stormline did not write")

    @pytest.mark.parametrize("name", NODES)
    def test_a_pickle_halts_and_is_not_run(self, written: ZooKeeperBackend, name: str, tmp_path: Path) -> None:
        self.put(written, name, pickle.dumps(Malicious(tmp_path / "run")))
        self.refused(written, StateCorrupt, rf"/topo/{name} holds .*Stormline did not write")
        assert not (tmp_path / "run").exists()

    @pytest.mark.parametrize("name", ["owner", "topology", "state/a", "state/b/c"])
    def test_a_flipped_bit_halts(self, written: ZooKeeperBackend, name: str) -> None:
        data = written.client.get(f"{written.node}/{name}")[0]
        self.put(written, name, data[:-1] + bytes([data[-1] ^ 1]))
        self.refused(written, StateCorrupt, rf"/topo/{name} holds \d+ bytes with a wrong checksum")

    @pytest.mark.parametrize("name", ["owner", "live", "topology", "state/a", "state/b/c"])
    def test_a_newer_schema_is_refused(self, written: ZooKeeperBackend, name: str) -> None:
        self.put(written, name, seal(1, PLAIN, version=2))
        self.refused(written, NewerState, rf"/topo/{name} has schema version 2, this Stormline reads up to 1")

    @pytest.mark.parametrize("value", [1, {}, {"epoch": "1", "token": "", "writes": 0}])
    def test_an_owner_that_is_none_halts(self, written: ZooKeeperBackend, value: Any) -> None:
        self.put(written, "owner", seal(value, PLAIN))
        self.refused(written, StateCorrupt, r"/topo/owner holds .*, which is no owner; nothing was changed")

    @pytest.mark.parametrize("value", [1, {"host": "x"}])
    def test_a_claim_that_is_none_halts(self, written: ZooKeeperBackend, value: Any) -> None:
        self.put(written, "live", seal(value, PLAIN))
        self.refused(written, StateCorrupt, r"/topo/live names no driver .*; nothing was changed")

    def test_a_claim_that_would_stay_for_ever_halts(self, written: ZooKeeperBackend) -> None:
        claim = dataclasses.replace(DriverIdentity.this_process(REAL, 1000, "x"), pid=77)
        self.put(written, "live", seal(claim.to_data(), PLAIN), ephemeral=False)
        self.refused(written, StateCorrupt, r"/topo/live would outlive its driver.*Delete it if no .*process 77")

    def test_a_node_of_other_software_halts(self, written: ZooKeeperBackend) -> None:
        written.client.create(f"{written.node}/coordinator")
        self.refused(written, StateCorrupt, r"/topo holds \['coordinator', 'owner', .*another transactional.zookeeper")

    def test_storms_own_state_halts(self, backend: ZooKeeperBackend) -> None:
        backend.client.create(f"{backend.node}/coordinator/currtx", b"\x80\4K\1.", makepath=True)
        backend.client.create(f"{backend.node}/user")
        self.refused(backend, StateCorrupt, r"/topo holds \['coordinator', 'user'\], expected owner and state")

    @pytest.mark.parametrize("name", ["owner", "state"])
    def test_a_missing_node_halts(self, written: ZooKeeperBackend, name: str) -> None:
        written.client.delete(f"{written.node}/{name}", recursive=True)
        self.refused(written, StateCorrupt, r"/topo holds \[.*\], expected owner and state")

    def test_a_value_below_a_value_halts(self, written: ZooKeeperBackend) -> None:
        written.client.create(f"{written.node}/state/a/b", seal(1, PLAIN))
        self.refused(written, StateCorrupt, r"/state/a holds a value, and .*/state/a/b is below it")

    def test_a_value_edited_behind_a_drivers_back_halts(self, written: ZooKeeperBackend) -> None:
        store = written.open(description={"a": 1})
        written.client.set(f"{written.node}/state/a", seal(5, PLAIN))
        with pytest.raises(StateCorrupt, match=r"/state/a was changed by somebody else .*\(BadVersionError\); nothing"):
            store.write([Put("b/c", 3), Put("a", 2)])
        assert store.get("b/c") == 2

    def test_a_large_description_is_not_sent(self, written: ZooKeeperBackend) -> None:
        with pytest.raises(StateTooLarge, match=r"value for .*/topo/topology has 1,000,0"):
            written.open(description="x" * 1_000_000)

    def test_access_that_is_denied_is_reported(self, written: ZooKeeperBackend) -> None:
        store = written.open(description={"a": 1})
        acl = make_digest_acl("somebody", "else", all=True)
        written.client.set_acls(f"{written.node}/state/a", [acl])
        with pytest.raises(ZooKeeperDenied, match=r"denies access to .*/topo: .*or use another transactional.zoo"):
            store.write([Put("a", 2)])
        store.close()
        with pytest.raises(ZooKeeperDenied, match=r"denies access to .*/topo"):
            written.open(description={"a": 1})
        written.client.set_acls(written.node, [acl])
        with pytest.raises(ZooKeeperDenied, match=r"denies access to .*/topo: its access control list does not let"):
            written.open(description={"a": 1})
