"""static-state: a bolt that runs in Spark's Python workers writes what a module or a class holds."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from stormline.cli.reading.attempts import mentions_attempt
from stormline.cli.reading.guards import fills_in
from stormline.cli.reading.parts import Part
from stormline.cli.reading.values import Known
from stormline.cli.reading.writes import Kind, Write, writes_at
from stormline.cli.rules.finding import Finding, found_at

_METHODS = ("prepare", "execute", "execute_batch", "finish_batch", "cleanup")
RULE = "static-state"
REMEDY = (
    "each of Spark's Python workers has its own (Storm split it by worker, too): keep what belongs to a batch in self, "
    "set in prepare, and emit it in finish_batch; keep what lasts in a committer"
)


def find(part: Part) -> Iterator[Finding]:
    """Yield each write of a bolt that is not deferred; of one that commits on the executors, those of finish_batch.

    A value that is only filled in where there is none (a connection a process, a cache) is none, nor is what prepare
    sets once, nor what is kept by attempt, which has one process.
    """
    if part.kind != "bolt" or not part.in_workers:
        return
    methods = ("finish_batch",) if part.component.deferred else _METHODS
    for method in methods:
        for place in part.reached(method):
            for write in writes_at(place):
                if write.shared and not _is_meant(write, method):
                    yield found_at(RULE, part, place, told(write), REMEDY)


def _is_meant(write: Write, method: str) -> bool:
    sets_up = method == "prepare" and (write.kind is Kind.SET or (write.call and ".update(" in write.text))
    return sets_up or fills_in(write) or _is_by_attempt(write) or _is_of_process(write)


def _is_by_attempt(write: Write) -> bool:
    """Return whether the attempt is the key, as in `KEPT[attempt] = x` and `KEPT[attempt].append(x)`."""
    keys = [node.slice for node in ast.walk(write.target) if isinstance(node, ast.Subscript)]
    return any(mentions_attempt(key, write.place.scope, surely=True) for key in keys)


def _is_of_process(write: Write) -> bool:
    """Return whether it draws a number that tells objects of this process apart, and is not emitted."""
    if not isinstance(write.root, Known) or type(write.root.value).__module__ != "itertools":
        return False
    calls = [node for node in write.place.above() if isinstance(node, ast.Call)]
    return not any(ast.unparse(call.func).rpartition(".")[2].startswith("emit") for call in calls)


def told(write: Write) -> str:
    """Say what a write does."""
    home = getattr(write.root, "home", "")
    return f"changes {write.text if len(write.text) <= 60 else write.text[:59] + '…'}, which {home} holds"
