"""python -m tests.mutants.hunt: run seeds one after another until a law is broken; print what came of it as JSON.

It runs in a copy of the code, from its root.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

import stormline
from tests.mutants.mutant import Killer

Seek = Callable[[int], str | None]
"""Tries one seed; returns the violation, if there is one."""


@dataclasses.dataclass(frozen=True, slots=True)
class Found:
    """What a hunt found: a violation after `tries` seeds or examples, or none in all of them."""

    tries: int
    secs: float
    violation: str | None


def hunt_by_simulation(first: int, count: int) -> Found:
    """Simulate seeds from `first` on until the first violation."""
    from tests.simulation.campaign import prepare_process
    from tests.simulation.simulator import simulate

    prepare_process()
    begun = time.monotonic()
    for seed in range(first, first + count):
        try:
            violation = simulate(seed).violation
        except Exception as error:  # out of the simulated world, from a thread that nobody watches
            violation = f"a thread died of {type(error).__name__}: {error}"
        if violation is not None:
            return Found(seed - first + 1, time.monotonic() - begun, violation)
    return Found(count, time.monotonic() - begun, None)


def hunt_by_model(count: int) -> Found:
    """Let Hypothesis think out at most `count` histories."""
    from hypothesis import Phase, settings
    from hypothesis.stateful import run_state_machine_as_test

    from tests.model.test_coordinator_model import SETTINGS, Histories

    tries = 0

    class Counted(Histories):
        def __init__(self) -> None:
            nonlocal tries
            tries += 1
            super().__init__()

    begun = time.monotonic()
    limits = settings(SETTINGS, max_examples=count, phases=[Phase.generate], report_multiple_bugs=False)
    try:
        run_state_machine_as_test(Counted, settings=limits)
    except Exception as error:
        kind = "" if isinstance(error, AssertionError) else f"a thread died of {type(error).__name__}: "
        return Found(tries, time.monotonic() - begun, f"{kind}{error or 'an assertion'}")
    return Found(tries, time.monotonic() - begun, None)


def main() -> int:
    """Hunt as the command line says."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants.hunt", description=__doc__)
    parser.add_argument("--by", choices=[killer.value for killer in Killer], default=Killer.SIMULATION.value)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seeds-max", type=int, default=1000)
    options = parser.parse_args()
    here = Path.cwd().resolve()
    assert here in Path(stormline.__file__).resolve().parents, f"{stormline.__file__} is not the copy in {here}"
    if options.by == Killer.MODEL.value:
        found = hunt_by_model(options.seeds_max)
    else:
        found = hunt_by_simulation(options.first, options.seeds_max)
    print(json.dumps(dataclasses.asdict(found)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
