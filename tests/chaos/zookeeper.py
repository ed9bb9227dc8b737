"""The ZooKeeper that is broken: its data on a small disk of its own, where that can be mounted."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.chaos.processes import start
from tests.services.zookeeper_server import ZooKeeperServer

DISK_MB = 512


class ChaosZooKeeper(ZooKeeperServer):
    """A server whose disk can be filled. `cannot_fill` says why not, where it cannot."""

    def __init__(self, folder: Path, log: Path, env: Mapping[str, str]) -> None:
        super().__init__(folder)
        self._log = log
        self._env = env
        folder.mkdir(parents=True)
        command = ["mount", "-t", "tmpfs", "-o", f"size={DISK_MB}m", "stormline-chaos", str(folder)]
        try:
            mounted = subprocess.run(command, capture_output=True, text=True)
            self.cannot_fill = "" if mounted.returncode == 0 else mounted.stderr.strip() or "mount failed"
        except OSError as error:
            self.cannot_fill = str(error)
        self._mounted = not self.cannot_fill

    def _launch(self, command: Sequence[str | Path]) -> subprocess.Popen[bytes]:
        return start(command, self._log, self._env)

    @property
    def process(self) -> subprocess.Popen[bytes]:
        """The server's process."""
        assert self._process is not None
        return self._process

    def fill_disk(self) -> None:
        """Leave not one page of its disk free."""
        with (self.data_dir / "filler").open("wb") as filler:
            free = os.statvfs(self.data_dir)
            with contextlib.suppress(OSError):
                os.posix_fallocate(filler.fileno(), 0, free.f_bavail * free.f_bsize)

    def free_disk(self) -> None:
        """Give the space back."""
        (self.data_dir / "filler").unlink(missing_ok=True)

    def restart(self) -> None:
        """Start the server anew: one whose disk was full may have ended, or still be about to, and serve nobody."""
        self.kill()
        self.start()

    def remove(self) -> None:
        """End the server, and let its disk go."""
        self.kill()
        if self._mounted:
            subprocess.run(["umount", "-l", str(self.data_dir)], check=False)
            self._mounted = False
