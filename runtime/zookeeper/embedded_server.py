"""EmbeddedServer: what a ZooKeeper in this driver's own JVM does for the stores of its topologies, beside serving."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from stormline.runtime.errors import StateDirGone


class EmbeddedServer(Protocol):
    """A server that knows its own files, and that nobody else can come to while it lives."""

    def keep_alive(self, session_id: int, timeout_ms: int) -> Callable[[], None]:
        """Let a session live as long as the server does, until what this returns is called."""

    def files_gone(self) -> StateDirGone | None:
        """Return the error for files that were taken from it: what it acknowledged last may be on no disk."""

    def when_files_gone(self, listener: Callable[[StateDirGone], object]) -> None:
        """Call `listener`, from any thread, within seconds after its files were taken from it."""
