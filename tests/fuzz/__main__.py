"""`python -m tests.fuzz --inputs N --seed S`: bad bytes give typed errors, and nothing else.

The inputs run in a process of their own, which this one watches: a crash, a hang or too much memory is the failure of
the input at hand, and a new process goes on behind it. Input I of seed S is the same for ever: `--only I` repeats it.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import json
import mmap
import os
import resource
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path
from random import Random

HANG_SECS = 30.0
MEMORY_BYTES_MAX = 8 << 30
"""Of addresses, which Arrow's allocators reserve freely."""
GROWTH_BYTES_MAX = 1 << 30
"""Of what is really used, from the first input to the last: no input may come near it."""
FAILURES_MAX = 10


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("--inputs", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, metavar="I", help="repeat one input, in this process")
    parser.add_argument("--from", dest="start", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--report", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.only is not None:
        return _repeat(options.seed, options.only)
    if options.report is not None:
        return _work(options.seed, options.start, options.inputs, options.report)
    return _supervise(options.seed, options.inputs)


# ------------------------------------------------------------------------------------ the process with the inputs


def _pick(seed: int, index: int) -> Random:
    return Random(seed * 1_000_000_007 + index)


def _work(seed: int, start: int, stop: int, report: Path) -> int:
    from tests.fuzz.expected import EXPECTED
    from tests.fuzz.targets import targets

    root = os.getcwd()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES_MAX, MEMORY_BYTES_MAX))
    counts: collections.Counter[str] = collections.Counter()
    failures = []
    with tempfile.TemporaryDirectory() as directory, (report / "at").open("r+b") as file, _inside(Path(directory)):
        at = mmap.mmap(file.fileno(), 8)
        shares = [target for target in targets(Path(directory)) for _ in range(target.share)]
        used = _used_bytes_max()
        for index in range(start, stop):
            at[:8] = index.to_bytes(8, "little")
            rng = _pick(seed, index)
            target = shares[rng.randrange(len(shares))]
            try:
                target.run(rng)
                ended = "accepted"
            except EXPECTED as error:
                ended = type(error).__name__
            except BaseException as error:
                if isinstance(error, KeyboardInterrupt):
                    raise
                ended = f"!!! {type(error).__name__}"
                failures.append((index, target.name, "".join(traceback.format_exception(error)[-4:])))
            counts[f"{target.name}\t{ended}"] += 1
            grown = _used_bytes_max() - used
            if grown > GROWTH_BYTES_MAX:
                failures.append((index, target.name, f"the memory in use has grown by {grown:,} bytes up to here"))
                used += grown
            if len(failures) >= FAILURES_MAX:
                break
        os.chdir(root)
    (report / "counts").write_text(json.dumps([counts, failures]))
    return 0


def _used_bytes_max() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


@contextlib.contextmanager
def _inside(directory: Path):  # type: ignore[no-untyped-def]
    sys.path.insert(0, os.getcwd())
    os.chdir(directory)
    yield


def _repeat(seed: int, index: int) -> int:
    from tests.fuzz.expected import EXPECTED
    from tests.fuzz.targets import targets

    with tempfile.TemporaryDirectory() as directory, _inside(Path(directory)):
        shares = [target for target in targets(Path(directory)) for _ in range(target.share)]
        rng = _pick(seed, index)
        target = shares[rng.randrange(len(shares))]
        print(f"input {index} of seed {seed}: {target.name}", flush=True)
        try:
            target.run(rng)
            print("accepted")
        except EXPECTED as error:
            print(f"{type(error).__name__}: {error}")
    return 0


# ------------------------------------------------------------------------------------ the process that watches


def _supervise(seed: int, inputs: int) -> int:
    begun = time.monotonic()
    counts: collections.Counter[str] = collections.Counter()
    failures: list[tuple[int, str, str]] = []
    start = 0
    while start < inputs and len(failures) < FAILURES_MAX:
        with tempfile.TemporaryDirectory() as directory:
            report = Path(directory)
            (report / "at").write_bytes(start.to_bytes(8, "little"))
            how = _watch(seed, start, inputs, report)
            at = int.from_bytes((report / "at").read_bytes(), "little")
            if how is None:
                more, failed = json.loads((report / "counts").read_text())
                counts.update(more)
                failures += [tuple(failure) for failure in failed]
                start = at + 1
                continue
            failures.append((at, "a process", how))  # what it counted until then is lost
            start = at + 1
    secs = time.monotonic() - begun
    _print(counts, secs, start)
    for index, target, what in failures:
        print(f"\nFAILED: input {index} ({target}): {what}\n  python -m tests.fuzz --seed {seed} --only {index}")
    print(f"{start - len(failures)} passed, {len(failures)} failed")
    return int(bool(failures))


def _watch(seed: int, start: int, stop: int, report: Path) -> str | None:
    command = [sys.executable, "-X", "faulthandler", "-m", "tests.fuzz", "--seed", str(seed), "--from", str(start)]
    process = subprocess.Popen([*command, "--inputs", str(stop), "--report", str(report)])
    last, since = b"", time.monotonic()
    while (code := process.poll()) is None:
        time.sleep(0.1)
        now = (report / "at").read_bytes()
        if now != last:
            last, since = now, time.monotonic()
        elif time.monotonic() - since > HANG_SECS:
            process.kill()
            process.wait()
            return f"hung for {HANG_SECS:g} s"
    return None if code == 0 else f"the process ended with {code}"


def _print(counts: collections.Counter[str], secs: float, inputs: int) -> None:
    kinds = sorted({key.partition("\t")[0] for key in counts})
    print(f"{inputs} inputs in {secs:.1f} s, {inputs / secs:,.0f} inputs/s")
    for kind in kinds:
        ended = {key.partition("\t")[2]: n for key, n in counts.items() if key.partition("\t")[0] == kind}
        shown = ", ".join(f"{name} {n}" for name, n in sorted(ended.items(), key=lambda item: -item[1]))
        print(f"  {kind}: {sum(ended.values())}: {shown}")


if __name__ == "__main__":
    sys.exit(main())
