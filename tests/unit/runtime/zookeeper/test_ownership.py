"""Ownership: what is known of it after interruptions, whatever order the answers come in."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from kazoo.protocol.states import KazooState

from stormline.runtime.world.world import REAL
from stormline.runtime.zookeeper.claim import Owner
from stormline.runtime.zookeeper.ownership import Ownership
from tests.kits.components import eventually

OWNER = Owner(1, "token", 0)


class Session:
    """Answers at once, but for the threads that are told to wait."""

    def __init__(self) -> None:
        self.listener: Any = None
        self.gates: list[threading.Event] = []
        self.waiting = 0
        self.answered = 0

    def listen(self, listener: Any) -> None:
        self.listener = listener

    def get_now(self, path: str, deadline: float, watch: Any = None) -> tuple[bytes, None]:
        if path.endswith("live"):
            if self.gates:
                gate = self.gates.pop(0)
                self.waiting += 1
                assert gate.wait(10)
            return b"token", None
        self.answered += 1
        return OWNER.seal(), None


def test_a_check_of_an_earlier_connection_that_ends_late_does_not_make_the_ownership_uncertain() -> None:
    session = Session()
    untyped: Any = session
    ownership = Ownership(REAL, untyped, "/storm/t", OWNER, None)
    assert ownership.certain()
    late = threading.Event()
    session.gates.append(late)
    session.listener(KazooState.SUSPENDED)
    assert not ownership.certain()
    session.listener(KazooState.CONNECTED)
    eventually(lambda: session.waiting == 1)
    session.listener(KazooState.SUSPENDED)
    session.listener(KazooState.CONNECTED)
    eventually(ownership.certain)
    answered = session.answered
    late.set()
    eventually(lambda: session.answered > answered and threading.active_count() >= 1)
    for thread in threading.enumerate():
        if thread.name == "stormline-zookeeper-check":
            thread.join(10)
    assert ownership.certain()


def test_a_connection_that_is_lost_and_comes_back_is_told(caplog: pytest.LogCaptureFixture) -> None:
    session = Session()
    untyped: Any = session
    ownership = Ownership(REAL, untyped, "/storm/t", OWNER, None)
    with caplog.at_level("INFO", "stormline"):
        session.listener(KazooState.SUSPENDED)
        assert caplog.messages == [
            "/storm/t: no connection to ZooKeeper; nothing is committed until there is one again"
        ]
        session.listener(KazooState.CONNECTED)
    assert caplog.messages[1:] == ["/storm/t: connected to ZooKeeper again"]
    eventually(ownership.certain)
