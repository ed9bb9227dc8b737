"""What every peer's command takes and prints, the data that all of them count, and the counts that are right.

    python -m benchmarks.peers.PEER [--work global_count,words,small_batches] [--batches N] [--batch-tuples B]
        [--secs-max S] [--form NAME]

One start measures the works one after another and prints one JSON line for each, the last one last. A command that
found a wrong count, or could not measure, ends with a status other than 0. Only the standard library is needed here:
each peer runs in an environment of its own.
"""

from __future__ import annotations

import argparse
import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

GLOBAL_COUNT, WORDS, SMALL_BATCHES = "global_count", "words", "small_batches"
WORKS = (GLOBAL_COUNT, WORDS, SMALL_BATCHES)

DISTINCT = 1000
STRIDE = 7919
WORD_OF = tuple(f"word{i * STRIDE % DISTINCT}" for i in range(DISTINCT))
"""Word i of the data is `WORD_OF[i % DISTINCT]`."""
GLOBAL = "global"


class WrongCount(Exception):
    """The peer's counts are not those of the tuples that it was given."""


@dataclass(frozen=True)
class Measurement:
    """What one peer did in one measured time.

    `secs` runs over `batches` whole batches of `tuples` tuples in all; start-up and warm-up are not in it. `result`
    is what was stored and found right: `total` counts every tuple of the run, also those of the warm-up; `distinct`
    is the number of stored counts.
    """

    peer: str
    version: str
    work: str
    tuples: int
    batches: int
    secs: float
    result: Mapping[str, int]
    notes: str

    @property
    def tuples_per_sec(self) -> float:
        """Return the rate of tuples."""
        return self.tuples / self.secs

    @property
    def batches_per_sec(self) -> float:
        """Return the rate of batches."""
        return self.batches / self.secs

    def as_line(self) -> str:
        """Return the JSON line that a peer's command prints."""
        return json.dumps(asdict(self))

    @classmethod
    def from_line(cls, line: str) -> Measurement:
        """Read a JSON line.

        Raises:
            ValueError: it is no JSON object of exactly the fields above, each of its type, in a time above 0.
        """
        try:
            values = json.loads(line)
        except json.JSONDecodeError as error:
            raise ValueError(f"not JSON: {line!r}") from error
        types: dict[str, type | tuple[type, ...]] = {
            "peer": str,
            "version": str,
            "work": str,
            "tuples": int,
            "batches": int,
            "secs": (int, float),
            "result": dict,
            "notes": str,
        }
        if not isinstance(values, dict) or set(values) != set(types):
            raise ValueError(f"not an object of {', '.join(types)}: {line!r}")
        wrong = [name for name, kind in types.items() if not isinstance(values[name], kind)]
        if wrong:
            raise ValueError(f"wrong type of {', '.join(wrong)}: {line!r}")
        if values["work"] not in WORKS or not 0 < values["secs"] < math.inf:
            raise ValueError(f"no such work, or no time: {line!r}")
        return cls(**values)


@dataclass(frozen=True)
class Job:
    """One work to measure: so many batches of so many tuples, but none begun after `secs_max` seconds."""

    work: str
    batches: int
    batch_tuples: int
    secs_max: float
    form: str
    dsn: str = ""
    servers: str = ""
    topic: str = ""


def jobs(
    description: str | None,
    defaults: Mapping[str, tuple[int, int]],
    *,
    forms: Sequence[str] = ("row",),
    argv: Sequence[str] | None = None,
) -> list[Job]:
    """Read the command line of a peer.

    Args:
        description: shown by `--help`.
        defaults: for each work that the peer knows, the number of batches and the tuples in one.
        forms: the ways in which the peer can do the work; the first is the default.
        argv: the arguments; those of the process if None.
    """
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", default=",".join(defaults), help="comma-separated; default: %(default)s")
    parser.add_argument("--batches", type=positive, help="batches to measure; default: " + choices(defaults, 0))
    parser.add_argument("--batch-tuples", type=positive, help="tuples a batch; default: " + choices(defaults, 1))
    parser.add_argument("--secs-max", type=float, default=8.0, help="end a measurement then; default: %(default)s")
    parser.add_argument("--form", choices=forms, default=forms[0], help="how tuples are worked on")
    parser.add_argument("--dsn", default="", help="where to store, for a peer that can store in PostgreSQL")
    parser.add_argument("--servers", default="", help="Kafka's brokers, for a peer that reads Kafka")
    parser.add_argument("--topic", default="", help="the topic to read")
    args = parser.parse_args(argv)
    works = args.work.split(",")
    for work in works:
        if work not in defaults:
            parser.error(f"this peer does not know the work {work!r}, but {', '.join(defaults)}")
    return [
        Job(
            work,
            args.batches or defaults[work][0],
            args.batch_tuples or defaults[work][1],
            args.secs_max,
            args.form,
            args.dsn,
            args.servers,
            args.topic,
        )
        for work in works
    ]


def positive(text: str) -> int:
    """Read a number above 0."""
    number = int(text)
    if number <= 0:
        raise argparse.ArgumentTypeError(f"{number} is not above 0")
    return number


def choices(defaults: Mapping[str, tuple[int, int]], index: int) -> str:
    """Say a default for each work."""
    return ", ".join(f"{pair[index]:,} {work}" for work, pair in defaults.items())


def word_counts(first: int, tuples: int) -> Counter[str]:
    """Return how often each word is among words `first` to `first + tuples - 1`."""
    rounds, rest = divmod(tuples, DISTINCT)
    counts = Counter(dict.fromkeys(WORD_OF, rounds) if rounds else {})
    counts.update(WORD_OF[i % DISTINCT] for i in range(first, first + rest))
    return counts


def checked(work: str, expected_words: Mapping[str, int], stored: Mapping[str, int]) -> dict[str, int]:
    """Return the checksum of the stored counts: one count a word, or one in all named `GLOBAL`.

    Raises:
        WrongCount: a count is missing, too many or wrong.
    """
    expected = expected_words if work == WORDS else {GLOBAL: sum(expected_words.values())}
    for key in sorted(expected.keys() | stored.keys()):
        if expected.get(key, 0) != stored.get(key, 0):
            raise WrongCount(f"{work}: the count of {key!r} is {stored.get(key, 0):,}, not {expected.get(key, 0):,}")
    return {"total": sum(stored.values()), "distinct": len(stored)}
