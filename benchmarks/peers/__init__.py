"""The other engines: each is made ready in an environment of its own, and measured by a command of its own.

Only the standard library is imported here: each peer's command imports this package in the peer's environment.
"""

from __future__ import annotations

from benchmarks.peers.environments import PEERS, prepare
from benchmarks.peers.protocol import Measurement
from benchmarks.peers.running import PeerFailed, measure, measure_all

__all__ = ["PEERS", "Measurement", "PeerFailed", "measure", "measure_all", "prepare"]
