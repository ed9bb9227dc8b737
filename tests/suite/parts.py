"""Parts of the suite: each is one process, which takes from some seconds to some minutes."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class Part:
    """One process of the suite.

    Args:
        paths: the tests that it runs: files, folders or patterns, from the root. A file that two parts could run
            belongs to the one that names it most closely: what a part says of a folder is what no other part names
            of it.
        command: what it runs in place of tests.
        first: those after it need what it makes: they wait for its end, but for one that yields.
        yields: it does nothing but compute, on all cores: it runs beside the others, on what they leave of the CPU.
        in_real_time: its tests wait for threads, processes and servers, which a busy machine may starve. A few of them
            that fail are run once more, by themselves, and told of as unstable if they pass then.
        secs_max: it hangs if it takes longer, and is ended. One that yields may wait long for the others.
    """

    name: str
    paths: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    first: bool = False
    yields: bool = False
    in_real_time: bool = False
    secs_max: float = 1200.0


LINT = Part("lint", command=("sh", "scripts/lint.sh", str(Path(sys.executable).parent)), yields=True)
CLASSES = Part("class archives", command=(sys.executable, "-m", "tests.services.class_archives"), first=True)

# In an order that lets the last ones end together, and that has parts with JVMs beside such without.
TEST = (
    CLASSES,
    LINT,
    Part("simulation", ("tests/simulation",), yields=True),
    Part("chaos", ("tests/cluster/test_chaos.py",), in_real_time=True),
    Part("kafka", ("tests/kafka",), in_real_time=True),
    Part("unit", ("tests",), in_real_time=True),
    Part("runtime", ("tests/unit/runtime", "tests/unit/simulation", "tests/model"), in_real_time=True),
    Part("servers", ("tests/cluster",), in_real_time=True),
    Part("spark cluster", ("tests/cluster/test_spark_submit.py",), in_real_time=True),
    Part("spark", ("tests/spark",), in_real_time=True),
    Part("spark contract", ("tests/spark/test_running.py",), in_real_time=True),
    Part("spark commands", ("tests/spark/test_cli_*.py", "tests/spark/test_storm_submitter.py"), in_real_time=True),
)
"""What `make test` runs: all tests but the proofs."""

KILLED_DRIVERS = ("kill_minus_nine", "jvm_killed", "flight_delays_killed")

PROOF = (
    CLASSES,
    Part("simulation", ("tests/simulation",), yields=True, secs_max=3600.0),
    Part("mutants", ("tests/mutants",), yields=True, secs_max=3600.0),
    Part("killed copies", ("tests/kafka/test_copy_killed.py", "tests/kafka/test_killed.py"), in_real_time=True),
    Part("killed drivers", tuple(f"tests/cluster/test_{name}.py" for name in KILLED_DRIVERS), in_real_time=True),
    Part("killed stores", ("tests/cluster/test_stores_killed.py",), in_real_time=True),
    Part(
        "killed sources",
        ("tests/cluster/test_sources_killed.py", "tests/cluster/test_stream_sink_killed.py"),
        in_real_time=True,
    ),
    Part("killed three sinks", ("tests/cluster/test_three_sinks_killed.py",), in_real_time=True, secs_max=1800.0),
    Part(
        "killed sinks",
        ("tests/cluster/test_two_phase_killed.py", "tests/cluster/test_transfers_xa.py", "tests/starrocks"),
        in_real_time=True,
    ),
    Part("cluster", ("tests/cluster",), in_real_time=True),
    Part("chaos", ("tests/cluster/test_chaos.py",), in_real_time=True),
    Part("kafka", ("tests/kafka",), in_real_time=True),
    Part("spark", ("tests/spark",), in_real_time=True),
    Part("spark commands", ("tests/spark/test_cli_*.py", "tests/spark/test_storm_submitter.py"), in_real_time=True),
    Part("fuzz and model", ("tests",)),
)
"""What `make proof` runs: the tests that are marked so."""


def files(parts: Sequence[Part], root: Path = ROOT) -> dict[Part, list[str]]:
    """Return the files of tests of each part, from `root`: each file is in one of them."""
    found: dict[Part, list[str]] = {part: [] for part in parts}
    for file in sorted(root.glob("tests/**/test_*.py")):
        path = file.relative_to(root)
        naming = [(_closeness(name, path), part) for part in parts for name in part.paths]
        closest = max(naming, key=lambda named: named[0], default=None)
        if closest is None or not closest[0]:
            raise ValueError(f"no part of the suite names {path}: see tests/suite/parts.py")
        found[closest[1]].append(str(path))
    return found


def _closeness(name: str, path: Path) -> int:
    """Tell how closely a name means a file: by its depth, a file more than its folder; 0: not at all."""
    if path.match(name):
        return 2 * len(path.parts)
    return 2 * len(Path(name).parts) - 1 if path.is_relative_to(name) else 0
