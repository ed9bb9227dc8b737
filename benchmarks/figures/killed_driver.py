"""S6: from kill -9 of the driver until the next commit is in the database, against Structured Streaming."""

from __future__ import annotations

import sys
from pathlib import Path

from benchmarks.figure import plain
from benchmarks.measuring.bench import Bench
from benchmarks.measuring.killing import KilledDriver
from benchmarks.measuring.settings import MASTER
from benchmarks.peers import endless_streaming
from benchmarks.topologies import endless

TURN = 5
"""Kills of one before it is the other's turn: each turn begins with a start that is not measured."""


def turns(kills: int) -> list[int]:
    """Return how many kills each turn has: as many turns as needed, the last one perhaps shorter."""
    return [min(TURN, kills - done) for done in range(0, kills, TURN)]


def run(bench: Bench) -> None:
    """Measure S6."""
    bench.say("ending Spark")
    bench.lab.close()  # its JVM would take part
    kills = bench.amount(bench.kills)
    bench.recorder.note(
        "S6a",
        f"{kills} kills of each, {TURN} in turn, each started anew at once; batches of 1,000 tuples counted into "
        "SQLite, exactly once by both; Stormline with its ZooKeeper embedded",
    )
    ours, theirs = _ours(bench.lab.databases.folder), _theirs(bench.lab.databases.folder)
    all_ours: list[float] = []
    all_theirs: list[float] = []
    for number in turns(kills):
        all_ours += _killed(bench, "Stormline", number, ours)
        all_theirs += _killed(bench, "Structured Streaming", number, theirs)
        for our_secs, their_secs in zip(all_ours[-number:], all_theirs[-number:], strict=True):
            bench.recorder.pair("S6a", our_secs, their_secs)
        bench.recorder.in_place("S6b", max(all_ours), max(all_theirs), kills=len(all_ours))
    bench.lab.databases.remove_files()


def _killed(bench: Bench, who: str, kills: int, driver: KilledDriver) -> list[float]:
    secs = []
    bench.say(f"{who}: starting")
    with driver:
        for number in range(kills):
            secs.append(driver.secs_to_next_commit())
            bench.say(f"{who}: kill {number + 1} of {kills}: {plain(secs[-1])} s")
    return secs


def _ours(folder: Path) -> KilledDriver:
    database = folder / "endless.sqlite"
    command = [
        *(sys.executable, "-m", "stormline.cli.main", "run", "benchmarks.topologies.endless"),
        *("--state-dir", str(folder / "state"), "--master", MASTER, "--progress", "none"),
    ]
    env = {endless.DATABASE: str(database)}
    return KilledDriver(command, env, database, endless.LAST_TXID, folder / "ours.txt")


def _theirs(folder: Path) -> KilledDriver:
    command = [sys.executable, "-m", "benchmarks.peers.endless_streaming", str(folder)]
    database = folder / endless_streaming.DATABASE
    return KilledDriver(command, {}, database, endless_streaming.LAST_TXID, folder / "theirs.txt")
