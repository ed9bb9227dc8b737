"""A real ensemble of ZooKeeper servers, each a process of its own."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import TracebackType

from tests.services.free_port import free_port
from tests.services.zookeeper_server import STARTS_MAX, DidNotStart, ZooKeeperServer


class _Member(ZooKeeperServer):
    MAIN = "org.apache.zookeeper.server.quorum.QuorumPeerMain"


class ZooKeeperEnsemble:
    """Three servers on free ports of 127.0.0.1; two of them serve."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.servers = self._made()

    def _made(self) -> list[_Member]:
        numbers = (1, 2, 3)
        peers = [f"server.{number}=127.0.0.1:{free_port()}:{free_port()}" for number in numbers]
        servers = [_Member(self._folder / str(number), ["initLimit=40", "syncLimit=20", *peers]) for number in numbers]
        for number, server in zip(numbers, servers, strict=True):
            server.data_dir.mkdir(parents=True)
            (server.data_dir / "myid").write_text(f"{number}\n")
        return servers

    def __enter__(self) -> ZooKeeperEnsemble:
        for left in reversed(range(STARTS_MAX)):
            try:
                self.launch(*self.servers)
                break
            except DidNotStart:
                self.__exit__(None, None, None)
                if not left:
                    raise
                shutil.rmtree(self._folder)
                self.servers = self._made()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for server in self.servers:
            server.kill()

    @property
    def hosts(self) -> str:
        """Where clients find the servers."""
        return ",".join(server.hosts for server in self.servers)

    def launch(self, *servers: ZooKeeperServer) -> None:
        """Start servers that do not run, and wait until they serve."""
        for server in servers:
            server.launch()
        for server in servers:
            server.wait_serving()

    def leader(self) -> ZooKeeperServer:
        """Return the server that leads."""
        return next(server for server in self.servers if server.mode() == "leader")

    def followers(self) -> list[ZooKeeperServer]:
        """Return the servers that follow."""
        return [server for server in self.servers if server.mode() == "follower"]
