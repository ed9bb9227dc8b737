"""The table of what became of the mutants."""

from __future__ import annotations

from collections.abc import Sequence

from tests.mutants.found import Found
from tests.mutants.hunters import Fate

VIOLATION_CHARS = 110


def line(fate: Fate) -> str:
    """Return one line of the table."""
    found = fate.found
    killed_by = fate.killed_by or ("SURVIVED" if found.violation is None else "BROKEN, NOT KILLED")
    tries = f"{found.tries:,}" if fate.killed_by else f"> {found.tries:,}"
    violation = (found.violation or "").partition("\n")[0][:VIOLATION_CHARS]
    return f"{fate.mutant.name:38} {fate.mutant.law:17} {killed_by:26} {tries:>7} {found.secs:6.1f}  {violation}"


HEADER = f"{'mutant':38} {'law':17} {'killed by':26} {'seeds':>7} {'secs':>6}  violation"


def summary(fates: Sequence[Fate], controls: Sequence[Found]) -> str:
    """Return what all came to."""
    killed = [fate for fate in fates if fate.killed_by]
    tries = sum(found.tries for found in controls)
    broken = next((found.violation for found in controls if found.violation is not None), None)
    control = f"broke a law: {broken}" if broken else f"survived {tries:,} seeds and examples"
    return f"{len(killed)} of {len(fates)} mutants killed; the unchanged code {control}"
