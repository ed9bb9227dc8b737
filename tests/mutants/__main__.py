"""python -m tests.mutants: hunt the mutants; 1: one survives, or the code without a fault does not."""

from __future__ import annotations

import argparse
import os
import sys

from tests.mutants.catalogue import MUTANTS
from tests.mutants.hunters import control, hunt_all
from tests.mutants.mutant import Killer
from tests.mutants.report import HEADER, line, summary


def main() -> int:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--only", metavar="NAME", action="append", help="this mutant, and others named so")
    parser.add_argument("--seeds-max", type=int, help="how many seeds for each (what the catalogue says)")
    parser.add_argument("--processes", type=int, default=max(2, os.cpu_count() or 2), help="hunts side by side")
    parser.add_argument("--list", action="store_true", help="say what each mutant is")
    options = parser.parse_args()
    names = {mutant.name for mutant in MUTANTS}
    unknown = set(options.only or ()) - names
    if unknown:
        parser.error(f"no mutant {sorted(unknown)}; there are {sorted(names)}")
    mutants = [mutant for mutant in MUTANTS if not options.only or mutant.name in options.only]
    if options.list:
        print("\n".join(f"{m.name} ({m.law}): {m.what} [{m.file}]" for m in mutants))
        return 0
    print(HEADER, flush=True)
    fates = []
    for fate in hunt_all(mutants, options.seeds_max, options.processes):
        fates.append(fate)
        print(line(fate), flush=True)
    needed = dict.fromkeys(Killer, 1)
    for fate in fates:
        if fate.killed_by:
            needed[fate.mutant.killer] = max(needed[fate.mutant.killer], fate.found.tries)
    controls = control(needed[Killer.SIMULATION], needed[Killer.MODEL], options.processes)
    print(summary(fates, controls))
    survived = any(fate.killed_by is None for fate in fates)
    return int(survived or any(found.violation is not None for found in controls))


if __name__ == "__main__":
    sys.exit(main())
