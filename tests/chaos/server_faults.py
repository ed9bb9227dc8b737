"""What befalls a database server and the connections to it, whichever it is."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

from tests.chaos.processes import wait_until
from tests.chaos.schedule import Fault
from tests.services.proxy import Proxy

DEATH_SECS = 15.0


class NoVictim(Exception):
    """There was nothing to break."""


class Server(Protocol):
    """What can be killed and started, paused and resumed."""

    def kill(self) -> None: ...

    def start(self) -> None: ...

    def pause(self) -> None: ...

    def resume(self) -> None: ...


def calls_of(name: str, server: Server, proxy: Proxy) -> dict[str, Callable[[Fault], str]]:
    """Return what each kind of fault of a server does."""
    return {
        f"{name}-kill": lambda fault: kill(server, fault),
        f"{name}-pause": lambda fault: pause(server, fault),
        **calls_of_connections(name, proxy),
    }


def calls_of_connections(name: str, proxy: Proxy) -> dict[str, Callable[[Fault], str]]:
    """Return what each kind of fault of the connections to a server does."""
    return {
        f"{name}-lost": lambda fault: lose(proxy, fault),
        f"{name}-delay": lambda fault: delay(proxy, fault),
        f"{name}-half-open": lambda fault: half_open(proxy, fault),
        f"{name}-cut": lambda fault: cut(proxy),
    }


def kill(server: Server, fault: Fault) -> str:
    """Let it be down for a while, as after a crash."""
    server.kill()
    time.sleep(fault.hold_secs)
    server.start()
    return f"down for {fault.hold_secs} s"


def pause(server: Server, fault: Fault) -> str:
    """Let it answer nothing for a while, and connections stay."""
    server.pause()
    try:
        time.sleep(fault.hold_secs)
    finally:
        server.resume()
    return f"for {fault.hold_secs} s"


def lose(proxy: Proxy, fault: Fault, of: bytes = b"") -> str:
    """Lose the next request that changes something, or one with this in it, or the reply to it."""
    lost = proxy.lost
    proxy.lose(fault.variant, of)
    if not wait_until(lambda: proxy.lost > lost, DEATH_SECS):
        proxy.lose("")
        raise NoVictim(f"no {fault.variant} came by")
    return f"a {fault.variant}"


def delay(proxy: Proxy, fault: Fault) -> str:
    """Let all take longer for a while."""
    delay_secs = round(0.02 + 0.5 * fault.pick**2, 3)
    proxy.delay_secs = delay_secs
    time.sleep(fault.hold_secs)
    proxy.delay_secs = 0.0
    return f"{1000 * delay_secs:.0f} ms a piece, for {fault.hold_secs} s"


def half_open(proxy: Proxy, fault: Fault) -> str:
    """Nothing gets through for a while; then it does, late, or the connection is cut."""
    proxy.half_open = True
    time.sleep(fault.hold_secs)
    late = fault.pick < 0.5
    if not late:
        proxy.cut()
    proxy.half_open = False
    return f"for {fault.hold_secs} s, then " + ("delivered late" if late else "cut")


def cut(proxy: Proxy) -> str:
    """Close all connections."""
    proxy.cut()
    return "all connections"
