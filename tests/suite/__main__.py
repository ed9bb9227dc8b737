"""`python -m tests.suite test`, or `proof`: run the suite in parts, side by side, and tell where the time went."""

from __future__ import annotations

import argparse
import math
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from types import FrameType

from tests.suite.lanes import Ended, Job, Lanes
from tests.suite.parts import PROOF, TEST, Part, files
from tests.suite.report import Case, cases_of, summary, where_time_went

LANES_MAX = 4
"""More would want more memory than machines have: each may hold a Spark. Two more than there are cores: much is waiting
for a JVM to start, or for a time to pass."""

UNSTABLE_MAX = 3
"""How many tests that failed are run once more: where more do, it is not by chance."""

TESTS_FAILED = 1
"""The exit code of pytest where it ran to its end."""

HANGS_SECS = 400
"""A test that takes longer shows where all its threads are, in the log of its part."""

SUITES = {"test": (TEST, "not proof"), "proof": (PROOF, "proof")}


def _jobs(parts: Sequence[Part], marked: str, folder: Path) -> list[Job]:
    return [
        Job(part, _command(part, paths, marked, folder), _log(part, folder)) for part, paths in files(parts).items()
    ]


def _command(part: Part, paths: Sequence[str], marked: str, folder: Path) -> tuple[str, ...]:
    if part.command:
        return part.command
    here = _place(part, folder)
    own = ("--basetemp", str(here / "tmp"), "-o", f"cache_dir={here / 'cache'}", "--junitxml", str(here / "junit.xml"))
    hangs = ("-o", f"faulthandler_timeout={HANGS_SECS}")
    return (sys.executable, "-m", "pytest", "-m", marked, *hangs, *own, *paths)


def _once_more(ended: Sequence[Ended], failures: Mapping[Part, Sequence[Case]]) -> list[Job]:
    """Return what runs the tests of a part once more that have failed, where they are few and in real time.

    A test that passes then is no good test, or has found something that comes seldom: it is told of. But one of some
    thousand must not keep the others' result back.
    """
    few = sum(map(len, failures.values())) <= UNSTABLE_MAX
    return [
        Job(one.job.part, (*one.job.command, "--last-failed"), one.job.log.with_name("log-once-more"))
        for one in ended
        if few and one.code == TESTS_FAILED and one.job.part.in_real_time and failures[one.job.part]
    ]


def _place(part: Part, folder: Path) -> Path:
    return folder / part.name.replace(" ", "-")


def _log(part: Part, folder: Path) -> Path:
    place = _place(part, folder)
    place.mkdir()
    return place / "log"


def _say(text: str) -> None:
    print(text, flush=True)


def _stop(number: int, frame: FrameType | None) -> None:
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, signal.SIG_IGN)  # all is ended now; that takes a while, and must not be broken off
    raise KeyboardInterrupt


def main() -> int:
    """Run; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.suite", description=__doc__)
    parser.add_argument("suite", choices=sorted(SUITES))
    parser.add_argument("--lanes", type=int, default=min((os.cpu_count() or 1) + 2, LANES_MAX), metavar="N")
    parser.add_argument(
        "--within", type=float, default=math.inf, metavar="SECS", help="end what runs by then, and say what it was"
    )
    options = parser.parse_args()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _stop)
    parts, marked = SUITES[options.suite]
    begun = time.monotonic()
    folder = Path(tempfile.mkdtemp(prefix="suite-"))
    _say(f"{options.suite}: {len(parts)} parts, {options.lanes} at once; logs are in {folder}")
    ended: list[Ended] = []
    cases: list[Case] = []
    failures: dict[Part, list[Case]] = {}
    unstable: list[Case] = []
    try:
        with closing(Lanes(options.lanes, _say, options.within).run(_jobs(parts, marked, folder))) as running:
            for one in running:
                ended.append(one)
                ran = cases_of(_place(one.job.part, folder) / "junit.xml")
                cases += ran
                failures[one.job.part] = [case for case in ran if case.outcome in ("failure", "error")]
                if one.failed and one.job.log.exists():
                    _say(one.job.log.read_text(errors="replace"))
                _say(summary(one, ran))
        left = options.within - (time.monotonic() - begun)
        with closing(Lanes(1, _say, left).run(_once_more(ended, failures))) as running:
            for again in running:
                if again.job.log.exists():
                    _say(again.job.log.read_text(errors="replace"))
                if not again.failed:
                    unstable += failures.pop(again.job.part)
    except KeyboardInterrupt:
        _say(f"stopped; logs are in {folder}")
        return 130
    _say(where_time_went(ended, cases, time.monotonic() - begun))
    for case in unstable:
        _say(f"UNSTABLE: {case.name} failed, and passed when it was run once more: {case.why.partition(chr(10))[0]}")
    failed = [one.job.part.name for one in ended if one.failed and one.job.part in failures]
    if failed:
        _say(f"FAILED: {', '.join(failed)}; logs are in {folder}")
        return 1
    shutil.rmtree(folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
