"""Ports for servers that are told theirs before they start, and may have to take the same one again."""

from __future__ import annotations

import random
import socket
from pathlib import Path

LOWEST = 15_000
TRIES = 1000
RANGE_OF_CONNECTIONS = Path("/proc/sys/net/ipv4/ip_local_port_range")


def free_port() -> int:
    """Return a port of 127.0.0.1 on which nothing listens now.

    It is below those that the kernel gives to connections, of which a test run makes thousands: one of them would take
    the port between now and the server's start, or while the server is down.
    """
    highest = _first_of_connections() - 1
    for _ in range(TRIES):
        port = random.SystemRandom().randint(LOWEST, highest)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise RuntimeError(f"of {TRIES} ports from {LOWEST} to {highest} none was free; end what listens there")


def _first_of_connections() -> int:
    """Return the first port that the kernel gives to connections; Linux's own default where it does not tell."""
    try:
        first = int(RANGE_OF_CONNECTIONS.read_text().split()[0])
    except OSError:
        return 32_768
    return first if first > LOWEST + TRIES else 65_536
