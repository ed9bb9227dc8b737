"""`python -m tests.chaos --faults N --seed S`: break a real cluster N times, and check that every tuple counts once."""

from __future__ import annotations

import argparse
import logging
import os
import random
import shutil
import signal
import sys
import tempfile
import traceback
from collections import Counter
from pathlib import Path
from typing import Any

from tests.chaos.report import Report
from tests.chaos.run import Run
from tests.chaos.schedule import KINDS
from tests.fault_matrix.recorded import record


def _kinds(text: str) -> set[str]:
    kinds, known = set(filter(None, text.split(","))), {kind.name for kind in KINDS}
    if not kinds or kinds - known:
        message = f"got {text!r}; kinds of faults, parted by commas, of {', '.join(sorted(known))} were expected"
        raise argparse.ArgumentTypeError(message)
    return kinds


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--faults", type=int, default=40)
    parser.add_argument("--seed", type=int, help="which faults, and when; drawn, and told, where not given")
    parser.add_argument("--tuples", type=int, default=1_000_000, help="of each topology, at least")
    parser.add_argument("--rate", type=int, default=4000, help="tuples a second that the source grows by meanwhile")
    parser.add_argument("--minutes", type=float, default=24 * 60, help="no fault begins later; the check is made then")
    parser.add_argument("--only", type=_kinds, metavar="KIND,…", help=f"of {', '.join(kind.name for kind in KINDS)}")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep logs there; they are kept on a violation too")
    parser.add_argument("--record", type=Path, metavar="FILE", help="put the number of faults by kind into a JSON file")
    return parser.parse_args()


def _interrupt(*_: Any) -> None:
    raise KeyboardInterrupt


def main() -> int:
    """Run; return the exit code."""
    options = _arguments()
    seed = random.SystemRandom().randrange(10**6) if options.seed is None else options.seed
    again = f"python -m tests.chaos --faults {options.faults} --seed {seed}"
    again += f" --tuples {options.tuples} --rate {options.rate}"
    again += f" --only {','.join(sorted(options.only))}" if options.only else ""
    print(f"chaos: {again}", flush=True)
    logging.getLogger("kazoo").setLevel(logging.CRITICAL)
    signal.signal(signal.SIGTERM, _interrupt)
    folder = options.keep or Path(tempfile.mkdtemp(prefix="stormline-chaos-"))
    folder = folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    only = options.only or {kind.name for kind in KINDS}
    report = Report(folder / "faults.jsonl", echo=True)
    good = False
    try:
        good = Run(folder, report, options.tuples, options.rate, options.minutes).go(seed, options.faults, only)
    finally:
        if good and options.keep is None:
            shutil.rmtree(folder, ignore_errors=True)
        elif not good:
            print(f"logs are in {folder}; to repeat: {again}", flush=True)
    print("verdict: " + ("every tuple counts once" if good else f"{len(report.violations)} violations"), flush=True)
    for violation in report.violations:
        print(f"  {violation}")
    if options.record is not None:
        run = {"seed": seed, "tuples": report.tuples, "violations": len(report.violations)}
        record(options.record, "chaos", run, Counter(one.title for one in report.happened if one.done))
    return 0 if good else 1


if __name__ == "__main__":
    code = 1
    try:
        code = main()
    except SystemExit as ended:  # argparse has said it all
        code = int(ended.code or 0)
    except BaseException:  # interrupted, or the harness is broken: all has been stopped
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(code)  # threads of faults that were under way are not waited for; what they start dies with them
