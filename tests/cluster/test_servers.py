"""The real servers that tests start: one whose port was taken meanwhile starts on another."""

from __future__ import annotations

import socket
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.services.zookeeper_server import DidNotStart, ZooKeeperServer


def test_a_server_whose_port_is_taken_serves_on_another(tmp_path: Path) -> None:
    server = ZooKeeperServer(tmp_path)
    with socket.create_server(("127.0.0.1", server.port)) as taken, server:
        assert server.port != taken.getsockname()[1]
        assert server.mode() == "standalone"


def test_a_server_that_cannot_start_is_told_of(tmp_path: Path) -> None:
    with ExitStack() as stack, pytest.raises(DidNotStart, match="the ZooKeeper server did not start"):
        stack.enter_context(ZooKeeperServer(tmp_path, ["tickTime=no number"]))
