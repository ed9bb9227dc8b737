"""Mutant: one fault as data, and the copy of the code that has it."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

COPIED = (
    "stormline",
    "topology",
    "bolts",
    "spouts",
    "state",
    "runtime",
    "tests/simulation",
    "tests/model",
    "tests/mutants",
)
"""All that a hunt imports of this project."""


class Killer(Enum):
    """What must kill a mutant."""

    SIMULATION = "simulation"
    MODEL = "model"


@dataclass(frozen=True, slots=True)
class Mutant:
    """A fault: in `file`, the text `old`, which is there once, becomes `new`.

    Args:
        law: what it breaks: a law of docs/laws.md, by number and name, or one of the other promises there.
        what: the fault in one sentence.
        seeds_max: so many seeds of the simulation, or examples of the model, must be enough.
        seed: one that has killed it, far behind the first: it is tried before them, since that saves minutes. Where the
            code has changed so much that it does not kill it any more, all are tried.
    """

    name: str
    law: str
    what: str
    file: str
    old: str
    new: str
    seeds_max: int = 1000
    killer: Killer = Killer.SIMULATION
    seed: int | None = None

    def patched(self, code: str) -> str:
        """Return `code` with the fault; it must be another text, and Python."""
        found = code.count(self.old)
        assert found == 1, f"mutant {self.name}: its old text is {found} times in {self.file}, expected once"
        patched = code.replace(self.old, self.new)
        assert patched != code, f"mutant {self.name} changes nothing"
        compile(patched, self.file, "exec")
        return patched


def copy_tree(to: Path, mutant: Mutant | None) -> None:
    """Copy what a hunt needs, with the fault of `mutant`; None: as it is."""
    for name in COPIED:
        shutil.copytree(ROOT / name, to / name, symlinks=True)
    shutil.copy2(ROOT / "tests" / "__init__.py", to / "tests" / "__init__.py")
    if mutant is not None:
        file = to / mutant.file
        file.write_text(mutant.patched(file.read_text()))
