"""A connection of psycopg's that does not wait for ever for a server that has fallen silent.

The server ends a statement that takes too long, if it hears of it. Where nothing gets through any more and nobody says
so (a firewall that forgot the connection, a proxy whose server is gone, a server that is frozen) only this side can
tell: nothing has come for longer than the server would have taken.
"""

from __future__ import annotations

import time
from collections.abc import Generator
from typing import Any, TypeVar

import psycopg

Returned = TypeVar("Returned")

GRACE_SECS = 1.0
"""What an answer may take on its way, beside the time that the server may take."""


class ServerSilent(psycopg.OperationalError):
    """Nothing came for too long."""


class BoundedConnection(psycopg.Connection[Any]):
    """A connection whose calls end when nothing has come for `silence_secs`; it is closed then. None: never."""

    silence_secs: float | None = None

    def wait(self, gen: Generator[Any, Any, Returned], *how: Any, **more: Any) -> Returned:
        """Wait for what the connection does; psycopg looks up every tenth of a second."""
        if self.silence_secs is None:
            return super().wait(gen, *how, **more)
        try:
            return super().wait(_bounded(gen, self.silence_secs), *how, **more)
        except ServerSilent:
            self.close()
            raise


def _bounded(gen: Generator[Any, Any, Returned], silence_secs: float) -> Generator[Any, Any, Returned]:
    """Go on as `gen` does, but end where it was sent nothing but 0, not ready, for so long.

    The clock is looked at only while nothing comes: most calls end at once.
    """
    send, silent_since = gen.send, 0.0
    try:
        awaited = next(gen)
        while True:
            if ready := (yield awaited):
                silent_since = 0.0
            elif not silent_since:
                silent_since = time.monotonic()
            elif time.monotonic() - silent_since > silence_secs:
                raise ServerSilent(f"the server has said nothing for {silence_secs:g} s")
            awaited = send(ready)
    except StopIteration as ended:
        returned: Returned = ended.value
        return returned
