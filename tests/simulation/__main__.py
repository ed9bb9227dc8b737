"""python -m tests.simulation: many seeds, or one."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tests.fault_matrix.recorded import record
from tests.simulation.campaign import Summary, failure_text, prepare_process, run_campaign
from tests.simulation.simulator import simulate


def _progress(summary: Summary, count: int) -> None:
    if not sys.stderr.isatty():
        if summary.seeds % 1000 == 0:
            print(
                f"{summary.seeds:,} of {count:,} seeds, {len(summary.failed)} violations", file=sys.stderr, flush=True
            )
        return
    rate = summary.seeds / max(summary.elapsed_secs, 1e-9)
    left_secs = (count - summary.seeds) / max(rate, 1e-9)
    print(
        f"\r{summary.seeds:,} of {count:,} seeds, {rate:.0f} seeds/s, {summary.faults.total():,} faults, "
        f"{len(summary.failed)} violations, {left_secs:.0f} s left ",
        end="",
        file=sys.stderr,
        flush=True,
    )


def main() -> int:
    """Run what the command line says; 1: a law was broken."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seeds", type=int, default=1000, help="how many seeds (1000)")
    parser.add_argument("--first", type=int, default=0, help="the first seed (0)")
    parser.add_argument("--seed", type=int, help="one seed, with the end of its history")
    parser.add_argument("--events", type=int, default=40, help="how much of a history to show (40)")
    parser.add_argument("--processes", type=int, default=2, help="processes side by side (2)")
    parser.add_argument("--faults-off", action="store_true", help="let nothing go wrong")
    parser.add_argument("--record", type=Path, metavar="FILE", help="put the number of faults by kind into a JSON file")
    options = parser.parse_args()
    if options.seed is not None:
        prepare_process()
        outcome = simulate(options.seed, not options.faults_off)
        if outcome.violation is not None:
            print(failure_text(outcome, options.events))
            return 1
        print("\n".join(outcome.history[-options.events :]))
        print(f"\nseed {outcome.seed}: {outcome.txids} transactions, {outcome.faults.total()} faults, no violation")
        return 0
    summary = run_campaign(
        options.first,
        options.seeds,
        options.processes,
        not options.faults_off,
        lambda so_far: _progress(so_far, options.seeds),
    )
    print(file=sys.stderr)
    for outcome in summary.failed[:3]:
        print(failure_text(outcome, options.events), end="\n\n")
    print(summary.text())
    if options.record is not None:
        run = {
            "first seed": options.first,
            "seeds": summary.seeds,
            "secs": round(summary.elapsed_secs),
            "violations": len(summary.failed),
        }
        record(options.record, "simulation", run, summary.faults)
    return 1 if summary.failed else 0


if __name__ == "__main__":
    sys.exit(main())
