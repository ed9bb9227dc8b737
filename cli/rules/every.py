"""check_plan: applies every rule to every part of a topology."""

from __future__ import annotations

import linecache
import os
from collections.abc import Iterator
from dataclasses import dataclass

from stormline.cli.reading.code import source_missing
from stormline.cli.reading.parts import Part, parts_of, untold
from stormline.cli.reading.source import forget
from stormline.cli.rules import (
    copied_object,
    emitter_state,
    gathers,
    held_resource,
    replayed_effect,
    sleeping,
    static_state,
    unchecked_txid,
    unrepeatable,
)
from stormline.cli.rules.finding import Finding
from stormline.topology.plan import Plan

RULES = (
    static_state,
    replayed_effect,
    unchecked_txid,
    copied_object,
    sleeping,
    unrepeatable,
    held_resource,
    gathers,
    emitter_state,
)


@dataclass(frozen=True, slots=True)
class Report:
    """What was found, in the order of files and lines, and a sentence for each class that could not be read."""

    findings: tuple[Finding, ...]
    unread: tuple[str, ...]


def check_plan(plan: Plan, module: str) -> Report:
    """Read the user's classes of a topology that `module` declares. Nothing of theirs is called."""
    packages = frozenset({module.partition(".")[0]}) - {"stormline", "__main__"}
    parts = list(parts_of(plan, packages))
    found = {finding: None for part in parts for rule in RULES for finding in rule.find(part)}
    unread = dict.fromkeys(sentence for part in parts for sentence in _unread(part, packages))
    forget()
    findings = sorted(
        (finding for finding in found if not _is_allowed(finding)),
        key=lambda finding: (finding.path, finding.line, finding.rule),
    )
    return Report(tuple(findings), tuple(unread))


def _is_allowed(finding: Finding) -> bool:
    """Return whether the line says that it is meant: `# stormline: allow RULE`."""
    allowed = linecache.getline(os.path.abspath(finding.path), finding.line).partition("# stormline: allow ")[2]
    return finding.rule in allowed.replace(",", " ").split()


def _unread(part: Part, packages: frozenset[str]) -> Iterator[str]:
    for layer in part.view.layers:
        if isinstance(layer.identity, type) and source_missing(layer.identity, packages):
            yield f"{part.who}: the source of {layer.name} cannot be read, so it was not checked"
    for method in untold(part):
        yield f"{part.who}: what {method} returns cannot be told by reading, so it was not checked"
