"""Results: one run of the benchmarks as it is kept, in JSON."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.figure import Figure

FORMAT = 1
LATEST = "latest.json"


def to_json(data: Any) -> str:
    """Write JSON to be read and compared by people: indented, but a list of numbers on one line."""
    text = json.dumps(data, indent=1, ensure_ascii=False)
    return re.sub(r"\[\s+([-+\d.eE,\s]+?)\s+\]", lambda found: f"[{' '.join(found[1].split())}]", text) + "\n"


@dataclass(slots=True)
class Results:
    """All of one run. `load`: the machine's load averages (1, 5, 15 minutes) before and after. `row_secs`: how long
    the rows took, by their names.
    """

    date: str
    machine: Mapping[str, Any]
    versions: dict[str, str]
    figures: Sequence[Figure]
    repeats: int
    quick: bool = False
    secs: float = 0.0
    load: dict[str, Sequence[float]] = field(default_factory=dict)
    caveats: Sequence[str] = ()
    peers: list[Mapping[str, Any]] = field(default_factory=list)
    row_secs: dict[str, float] = field(default_factory=dict)

    def to_data(self) -> dict[str, Any]:
        """Return this as plain values."""
        return {
            "format": FORMAT,
            "date": self.date,
            "secs": round(self.secs, 1),
            "row_secs": dict(self.row_secs),
            "repeats": self.repeats,
            "quick": self.quick,
            "machine": dict(self.machine),
            "versions": dict(self.versions),
            "load": {when: list(averages) for when, averages in self.load.items()},
            "caveats": list(self.caveats),
            "figures": [figure.to_data() for figure in self.figures],
            "peers": [dict(measurement) for measurement in self.peers],
        }

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Results:
        """Return the results that `to_data` gave `data` for.

        Raises:
            ValueError: another format.
        """
        if data.get("format") != FORMAT:
            raise ValueError(f"results of format {data.get('format')!r}, expected {FORMAT}: run the benchmarks again")
        return cls(
            date=data["date"],
            machine=data["machine"],
            versions=dict(data["versions"]),
            figures=[Figure.from_data(each) for each in data["figures"]],
            repeats=data["repeats"],
            quick=data["quick"],
            secs=data["secs"],
            load=dict(data["load"]),
            caveats=data["caveats"],
            peers=list(data["peers"]),
            row_secs=dict(data["row_secs"]),
        )

    def write(self, directory: Path) -> Path:
        """Write the JSON, all or nothing; return its path."""
        directory.mkdir(parents=True, exist_ok=True)
        path, beside = directory / LATEST, directory / f".{LATEST}.{os.getpid()}"
        beside.write_text(to_json(self.to_data()), encoding="utf-8")
        beside.replace(path)
        return path

    @classmethod
    def read(cls, directory: Path) -> Results:
        """Read what `write` wrote."""
        return cls.from_data(json.loads((directory / LATEST).read_text(encoding="utf-8")))
