"""Design: what one round's topology is like. It travels to drivers and executors as JSON."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

IDEMPOTENT = "idempotent"
OPAQUE = "opaque"
ON_DRIVER = "driver"
ON_EXECUTORS = "executors"


@dataclass(frozen=True, slots=True)
class Design:
    """One topology: its id, its spout, where its committers finish, and how wide it is."""

    topology: str
    spout: str
    placement: str
    partitions: int = 4
    adders: int = 3
    committers: int = 2
    pending: int = 8

    def to_json(self) -> str:
        """Return one line."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, line: str) -> Design:
        """Return the design that `to_json` gave `line` for."""
        return cls(**json.loads(line))
