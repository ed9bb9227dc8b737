"""The report: one line of JSON a fault, and a table at the end."""

from __future__ import annotations

import json
import statistics
import time
from collections import Counter, defaultdict
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tests.chaos.schedule import Fault


@dataclass(frozen=True)
class Happened:
    """What came of one fault. `recovered_secs`: from its end to the next commit; None: not within the patience."""

    fault: Fault
    at_secs: float
    txid: int
    took_secs: float
    recovered_secs: float | None
    what: str

    @property
    def done(self) -> bool:
        """Whether there was anything to break."""
        return not self.what.startswith("nothing done")

    @property
    def title(self) -> str:
        """Kind and variant."""
        return f"{self.fault.kind}: {self.fault.variant}" if self.fault.variant else self.fault.kind


class Report:
    """Writes while the run goes on."""

    def __init__(self, path: Path, echo: bool) -> None:
        self._path = path
        self._echo = echo
        self._begun = time.monotonic()
        self.happened: list[Happened] = []
        self.transactions = 0
        self.tuples = 0
        self.violations: list[str] = []

    def secs(self) -> float:
        """Return the time since the run began."""
        return round(time.monotonic() - self._begun, 1)

    def fault(self, happened: Happened) -> None:
        """Take down one fault."""
        self.happened.append(happened)
        line = asdict(happened)
        self.line(**line.pop("fault"), **line)

    def line(self, **values: Any) -> None:
        """Write one line of JSON."""
        line = json.dumps({"secs": self.secs(), **values}, ensure_ascii=False)
        with self._path.open("a") as log:
            log.write(f"{line}\n")
        if self._echo:
            print(line, flush=True)

    def violation(self, *violations: str) -> None:
        """Take down violations."""
        for text in violations:
            self.violations.append(text)
            self.line(violation=text)

    def table(self, drivers: Counter[str], takeovers: int, replays: int, details: dict[str, int]) -> str:
        """Return the table."""
        by_kind: defaultdict[str, list[Happened]] = defaultdict(list)
        for happened in self.happened:
            by_kind[happened.fault.kind].append(happened)
        lines = [f"{'fault':<24}{'done':>6}{'no victim':>11}{'recovery, s: median':>21}{'longest':>9}"]
        for kind in sorted(by_kind):
            done = [one for one in by_kind[kind] if one.done]
            recovered = [one.recovered_secs for one in done if one.recovered_secs is not None]
            median = f"{statistics.median(recovered):.1f}" if recovered else "–"
            longest = f"{max(recovered):.1f}" if recovered else "–"
            lines.append(f"{kind:<24}{len(done):>6}{len(by_kind[kind]) - len(done):>11}{median:>21}{longest:>9}")
        done_all = sum(one.done for one in self.happened)
        secs = self.secs()
        lines += [
            "",
            f"{done_all} faults in {secs:.0f} s, one each {secs / max(done_all, 1):.1f} s; {self.tuples:,} tuples in "
            f"{self.transactions:,} transactions; {takeovers} drivers, {replays} replays told of, "
            + ", ".join(f"{count} {what}" for what, count in details.items()),
            "drivers ended: " + ", ".join(f"{count} × {how}" for how, count in drivers.most_common()),
        ]
        return "\n".join(lines)
