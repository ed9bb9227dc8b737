"""PollingHandler: how kazoo's thread waits for its sockets. kazoo's own way makes an epoll object for each wait."""

from __future__ import annotations

import math
import select
from collections.abc import Sequence
from typing import Any

from kazoo.client import KazooClient
from kazoo.handlers.threading import SequentialThreadingHandler

Ready = tuple[list[Any], list[Any], list[Any]]


class PollingHandler(SequentialThreadingHandler):  # type: ignore[misc]  # kazoo has no types
    """kazoo's handler, which waits by one system call in place of four.

    It waits five times a request, and each of the calls gives the interpreter away to another thread: all that was most
    of what a small commit takes of kazoo's thread.
    """

    def select(self, rlist: Sequence[Any], wlist: Sequence[Any], xlist: Sequence[Any], timeout: Any = None) -> Ready:
        """Return which sockets can be read and which written, as `select.select` does, for file numbers of any size.

        Raises:
            ValueError: a socket is closed.
        """
        if not hasattr(select, "poll") or (rlist and wlist):  # not on Windows; both at once kazoo never asks for
            ready: Ready = super().select(rlist, wlist, xlist, timeout)
            return ready
        waits = select.poll()
        for sockets, event in ((rlist, select.POLLIN), (wlist, select.POLLOUT)):
            for socket in sockets:
                waits.register(socket, event)
        # Also one that was hung up, or failed, is ready: reading or writing says how it is.
        events = dict(waits.poll(None if timeout is None else math.ceil(timeout * 1000)))
        if any(event & select.POLLNVAL for event in events.values()):
            raise ValueError("a socket was closed that is waited for")
        return [s for s in rlist if s.fileno() in events], [s for s in wlist if s.fileno() in events], []


def kazoo_client(hosts: str, **options: Any) -> Any:
    """Return kazoo's client of these hosts."""
    return KazooClient(hosts, handler=PollingHandler(), **options)
