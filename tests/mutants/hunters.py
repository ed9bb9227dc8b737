"""Hunters: many hunts side by side, each in a process and a copy of the code of its own."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

from tests.mutants.found import Found
from tests.mutants.mutant import Killer, Mutant, copy_tree

HUNT_SECS = 1800.0
"""A hunt that takes longer has not killed its mutant: it may hang.

The longest takes 80 s of CPU, and it gets what the parts of `make proof` beside it leave.
"""


@dataclass(frozen=True, slots=True)
class Fate:
    """What became of a mutant."""

    mutant: Mutant
    found: Found

    @property
    def killed_by(self) -> str | None:
        """What kind of check killed it; None: it lives, or it broke something else than the protocol."""
        by = self.found.killed_by
        return f"model, {by}" if by is not None and self.mutant.killer is Killer.MODEL else by


def hunt(mutant: Mutant | None, seeds_max: int, first: int = 0, killer: Killer = Killer.SIMULATION) -> Found:
    """Hunt one mutant, or, as a control, the code as it is."""
    with tempfile.TemporaryDirectory(prefix="mutant-") as folder:
        copy_tree(Path(folder), mutant)
        command = [sys.executable, "-m", "tests.mutants.hunt", "--by", killer.value]
        command += ["--first", str(first), "--seeds-max", str(seeds_max)]
        if mutant is not None and mutant.seed is not None:
            command += ["--try-first", str(mutant.seed)]
        try:
            done = subprocess.run(
                command, cwd=folder, capture_output=True, text=True, timeout=HUNT_SECS, stdin=subprocess.DEVNULL
            )
        except subprocess.TimeoutExpired:
            return Found(0, HUNT_SECS, f"the hunt died of Hang: it was not done after {HUNT_SECS:g} s")
    if done.returncode:
        *_, last = done.stderr.strip().splitlines() or ["it said nothing"]
        return Found(0, 0.0, f"the hunt died of Exit {done.returncode}: {last}", done.stderr)
    told = json.loads(done.stdout.splitlines()[-1])
    return Found(**{**told, "logged": tuple(told["logged"])})


def hunt_all(mutants: Sequence[Mutant], seeds_max: int | None, processes: int) -> Iterator[Fate]:
    """Hunt mutants side by side, the dearest first; give each as its fate is known."""
    with ThreadPoolExecutor(processes) as pool:
        futures = {
            pool.submit(hunt, mutant, seeds_max or mutant.seeds_max, 0, mutant.killer): mutant
            for mutant in sorted(mutants, key=lambda mutant: -mutant.seeds_max)
        }
        for future in as_completed(futures):
            yield Fate(futures[future], future.result())


def control(seeds: int, examples: int, processes: int) -> list[Found]:
    """Run the code as it is through as many seeds and examples as the slowest mutants needed, in processes."""
    share = -(-seeds // processes)
    with ThreadPoolExecutor(processes) as pool:
        parts = [pool.submit(hunt, None, share, number * share) for number in range(processes)]
        parts.append(pool.submit(hunt, None, examples, 0, Killer.MODEL))
        return [part.result() for part in parts]
