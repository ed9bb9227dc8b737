"""The source: a file that says how many rows each partition has, which are gone, and which tuples are bad.

The harness writes it, drivers and executors read it: so a source grows, breaks and heals while topologies run.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Source:
    """What the source is like now.

    Args:
        rows: rows of each partition.
        take: rows that a batch takes of a partition at most.
        gone: partitions that cannot be read.
        poison: numbers that a bolt cannot bear: it raises.
        failing: numbers for which a bolt raises `FailedException`.
    """

    rows: int = 0
    take: int = 250
    gone: Sequence[int] = ()
    poison: Sequence[int] = ()
    failing: Sequence[int] = ()


def read_source(path: str | Path) -> Source:
    """Return the source as it is now."""
    return Source(**json.loads(Path(path).read_text()))


@dataclass
class SourceFile:
    """The harness's side: changes the source, from any thread."""

    path: Path
    source: Source = field(default_factory=Source)
    _lock: Any = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.change(lambda source: {})

    def change(self, changes: Any) -> Source:
        """Replace some of it by what `changes(source)` returns, so that no reader sees half of it."""
        with self._lock:
            found: Mapping[str, Any] = changes(self.source)
            self.source = replace(self.source, **found)
            new = self.path.with_suffix(".new")
            new.write_text(json.dumps(asdict(self.source)))
            os.replace(new, self.path)
            return self.source
