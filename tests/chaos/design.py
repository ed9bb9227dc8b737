"""Design: what one round's topology is like. It travels to drivers and executors as JSON."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

IDEMPOTENT = "idempotent"
OPAQUE = "opaque"
ON_DRIVER = "driver"
ON_EXECUTORS = "executors"

FROM_FILE = "file"
FROM_KAFKA = "kafka"

INTO_TWO_STORES = "two stores"
INTO_POSTGRESQL = "postgresql"
INTO_KAFKA = "kafka"
BY_TWO_PHASES = "postgresql, prepared"

GROUP_MAX = 64


@dataclass(frozen=True, slots=True)
class Design:
    """One topology: its id, its spout, where its committers finish, how wide it is, what it reads and writes.

    Where all effects are in one store, transactions that wait for their commits become durable together: in groups.
    """

    topology: str
    spout: str
    placement: str
    partitions: int = 4
    adders: int = 3
    committers: int = 2
    pending: int = 8
    source: str = FROM_FILE
    sink: str = INTO_TWO_STORES

    @property
    def uses_kafka(self) -> bool:
        """Whether it reads or writes Kafka."""
        return FROM_KAFKA in (self.source, self.sink)

    @property
    def group_max(self) -> int:
        """How many transactions may become durable in one step."""
        return 1 if self.sink in (INTO_TWO_STORES, BY_TWO_PHASES) else GROUP_MAX

    def to_json(self) -> str:
        """Return one line."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, line: str) -> Design:
        """Return the design that `to_json` gave `line` for."""
        return cls(**json.loads(line))
