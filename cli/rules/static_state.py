"""static-state: a bolt that runs in Spark's Python workers writes what a module or a class holds."""

from __future__ import annotations

from collections.abc import Iterator

from stormline.cli.reading.guards import fills_in
from stormline.cli.reading.parts import Part
from stormline.cli.reading.writes import Kind, Write, writes_at
from stormline.cli.rules.finding import Finding, found_at

RULE = "static-state"
REMEDY = (
    "each of Spark's Python workers has its own (Storm split it by worker, too): keep what belongs to a batch in self, "
    "set in prepare, and emit it in finish_batch; keep what lasts in a committer"
)


def find(part: Part) -> Iterator[Finding]:
    """Yield each write of a bolt that is not deferred, or commits on the executors.

    A value that is only filled in where there is none (a connection a process, a cache) is none, nor is what prepare
    sets once.
    """
    if part.kind != "bolt" or not part.in_workers:
        return
    for method in ("prepare", "execute", "execute_batch", "finish_batch", "cleanup"):
        for place in part.reached(method):
            for write in writes_at(place):
                if write.shared and not fills_in(write) and not (method == "prepare" and _sets_up(write)):
                    yield found_at(RULE, part, place, told(write), REMEDY)


def told(write: Write) -> str:
    """Say what a write does."""
    home = getattr(write.root, "home", "")
    return f"changes {write.text if len(write.text) <= 60 else write.text[:59] + '…'}, which {home} holds"


def _sets_up(write: Write) -> bool:
    return write.kind is Kind.SET or (write.call and ".update(" in write.text)
