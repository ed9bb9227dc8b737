"""python -m tests.mutants.hunt: run seeds one after another until a law is broken; print what came of it as JSON.

It runs in a copy of the code, from its root.
"""

from __future__ import annotations

import argparse
import dataclasses
import gc
import json
import sys
import time
import traceback
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import stormline
from tests.mutants.found import Found
from tests.mutants.mutant import Killer

TRACE_CHARS_MAX = 20_000

BROKEN_MAX = 10
"""In so many histories a fault may make broken code before the hunt is given up: in others it may break a law."""


def hunt_by_simulation(seeds: Iterable[int]) -> Found:
    """Simulate seeds until one shows a fault of the protocol, or some show broken code."""
    from tests.mutants.witness import Witness
    from tests.simulation.campaign import CHUNK, prepare_process
    from tests.simulation.simulator import simulate

    prepare_process()
    witness = Witness()
    witness.attach()
    begun = time.monotonic()
    tries = 0
    broken: list[Found] = []
    for tries, seed in enumerate(seeds, start=1):
        witness.forget()
        if tries % CHUNK == 0:
            gc.collect()
        try:
            violation = simulate(seed).violation
        except Exception as error:  # out of the simulated world, from a thread that nobody watches
            witness.raised(error)
            violation = f"a thread died of {type(error).__name__}: {error}"
        if violation is not None:
            secs, logged = time.monotonic() - begun, tuple(witness.logged)
            found = Found(tries, secs, violation, witness.trace[-TRACE_CHARS_MAX:], logged)
            if found.killed_by is not None:
                return found
            broken.append(found)
            if len(broken) == BROKEN_MAX:
                break
    return broken[0] if broken else Found(tries, time.monotonic() - begun, None)


def hunt_by_model(count: int) -> Found:
    """Let Hypothesis think out at most `count` histories, and as many with groups."""
    from hypothesis import Phase, settings
    from hypothesis.stateful import run_state_machine_as_test

    from tests.model.test_coordinator_model import SETTINGS, Histories
    from tests.model.test_group_model import GroupHistories

    tries = 0
    begun = time.monotonic()
    limits = settings(SETTINGS, max_examples=count, phases=[Phase.generate], report_multiple_bugs=False)
    for machine in (Histories, GroupHistories):

        def counted(machine: type[Histories] = machine) -> Histories:
            nonlocal tries
            tries += 1
            return machine()

        made: Any = counted  # it asks for a class, and makes an object of it

        try:
            run_state_machine_as_test(made, settings=limits)
        except Exception as error:
            violation, trace = _violation_of_model(error), "".join(traceback.format_exception(error))
            return Found(tries, time.monotonic() - begun, violation, trace[-TRACE_CHARS_MAX:])
    return Found(tries, time.monotonic() - begun, None)


def _violation_of_model(error: Exception) -> str:
    """Return what an error out of the model says: the laws are the assertions of its test modules, and only those."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    file = Path(last.filename)
    if type(error) is AssertionError and file.parent.name == "model" and file.name.startswith("test_"):
        return f"model: {error}" if str(error) else f"model: {last.line}"
    return f"a history died of {type(error).__name__}: {error}"


def main() -> int:
    """Hunt as the command line says."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants.hunt", description=__doc__)
    parser.add_argument("--by", choices=[killer.value for killer in Killer], default=Killer.SIMULATION.value)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seeds-max", type=int, default=1000)
    parser.add_argument("--try-first", type=int, nargs="*", default=[], metavar="SEED")
    options = parser.parse_args()
    here = Path.cwd().resolve()
    assert here in Path(stormline.__file__).resolve().parents, f"{stormline.__file__} is not the copy in {here}"
    if options.by == Killer.MODEL.value:
        found = hunt_by_model(options.seeds_max)
    else:
        found = hunt_by_simulation([*options.try_first, *range(options.first, options.first + options.seeds_max)])
    print(json.dumps(dataclasses.asdict(found)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
