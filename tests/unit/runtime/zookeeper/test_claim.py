"""A claim, while another driver claims: the topology is taken from nobody who lives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from stormline.runtime.errors import AlreadyRunning, StateTooLarge
from stormline.runtime.state.driver_identity import DriverIdentity
from stormline.runtime.state.state_store import any_state
from stormline.runtime.state.state_tree import FOLDER
from stormline.runtime.state.stored_value import seal
from stormline.runtime.world.machine import Machine
from stormline.runtime.world.world import REAL
from stormline.runtime.zookeeper.claim import Owner, claim
from stormline.topology.serialization import PLAIN
from tests.simulation.scheduler import Scheduler
from tests.simulation.zookeeper import Op, ZooKeeper

NODE = "/storm"
WAIT_MS = 1000


class Session:
    """A session that another driver comes between: after the first node of several has been read."""

    acl_bytes = 0

    def __init__(self, server: ZooKeeper, number: int, between: Callable[[], None]) -> None:
        self._server = server
        self._number = number
        self._between: Callable[[], None] | None = between

    def ensure(self, path: str) -> None: ...

    def sync(self, path: str) -> None: ...

    def check_acls(self, paths: Sequence[str]) -> None: ...

    def children(self, path: str) -> list[str]:
        return self._server.children(self._number, path)

    def get_all(self, paths: Sequence[str]) -> list[tuple[bytes, Any]]:
        got = []
        for path in paths:
            got.append(self._server.get(self._number, path, watch=False))
            between, self._between = self._between, None
            if between is not None:
                between()
        return got

    def multi(self, fill: Callable[[Any], None], deadline: float) -> list[Any]:
        transaction = Transaction()
        fill(transaction)
        return self._server.multi(self._number, transaction.ops)


class Transaction:
    """As kazoo's."""

    def __init__(self) -> None:
        self.ops: list[Op] = []

    def create(self, path: str, value: bytes, ephemeral: bool = False) -> None:
        self.ops.append(Op("create", path, value, ephemeral=ephemeral))

    def set_data(self, path: str, value: bytes, version: int) -> None:
        self.ops.append(Op("set", path, value, version))

    def delete(self, path: str, version: int) -> None:
        self.ops.append(Op("delete", path, version=version))


class LaggingSession(Session):
    """Its first look says that the node is there: it was removed, but this server has not heard of it."""

    looks = 0

    def ensure(self, path: str) -> None:
        self.looks += 1
        if self.looks == 2:
            self._server.multi(self._number, [Op("create", path)])


def test_a_node_that_a_lagging_server_still_holds_is_made_anew() -> None:
    server = ZooKeeper(Scheduler(0), lambda session, changes: None)
    number = server.connect(None, 1.0, None)
    assert number is not None
    session: Any = LaggingSession(server, number, lambda: None)
    assert claim(REAL, session, NODE, PLAIN, None, False, any_state, WAIT_MS, WAIT_MS).owner.epoch == 1
    assert session.looks == 3


def test_a_description_that_leaves_no_room_for_whose_the_znodes_are_is_not_sent() -> None:
    server = ZooKeeper(Scheduler(0), lambda session, changes: None)
    number = server.connect(None, 1.0, None)
    assert number is not None
    server.multi(number, [Op("create", NODE)])
    session: Any = Session(server, number, lambda: None)
    session.acl_bytes = 25_000
    with pytest.raises(StateTooLarge, match=r"^one write of 1 values has 1,0\d\d,\d\d\d bytes"):
        claim(REAL, session, NODE, PLAIN, "x" * 900_500, False, any_state, WAIT_MS, WAIT_MS)
    assert server.children(number, NODE) == []
    assert claim(REAL, session, NODE, PLAIN, "x" * 899_500, False, any_state, WAIT_MS, WAIT_MS).owner.epoch == 1


class OneMachine(Machine):
    """Where all drivers run: what is known of each is known."""

    def boot(self) -> str:
        return "machine"

    def started(self, pid: int) -> str:
        return "alive"

    def marked(self, token: str) -> bool:
        return True


def test_who_reads_while_another_driver_claims_does_not_take_the_topology_from_it() -> None:
    world = replace(REAL, machine=OneMachine())
    living = DriverIdentity.this_process(world, WAIT_MS, "second")
    dead = replace(living, token="first", process="dead")
    server = ZooKeeper(Scheduler(0), lambda session, changes: None)
    first, second, third = (server.connect(None, 1.0, None) for _ in range(3))
    assert first is not None
    assert second is not None
    assert third is not None

    def live(whose: DriverIdentity) -> Op:
        return Op("create", f"{NODE}/live", seal(whose.to_data(), PLAIN), ephemeral=True)

    def another_claims() -> None:
        owner = Op("set", f"{NODE}/owner", Owner(2, "second", 0).seal())
        server.multi(second, [owner, Op("delete", f"{NODE}/live"), live(living)])

    server.multi(first, [Op("create", NODE), Op("create", f"{NODE}/owner", Owner(1, "first", 0).seal())])
    server.multi(first, [Op("create", f"{NODE}/state", FOLDER), live(dead)])

    session: Any = Session(server, third, another_claims)
    with pytest.raises(AlreadyRunning):
        claim(world, session, NODE, PLAIN, None, False, any_state, WAIT_MS, WAIT_MS)
    assert Owner.unseal(server.nodes[f"{NODE}/owner"].data, "owner").epoch == 2
