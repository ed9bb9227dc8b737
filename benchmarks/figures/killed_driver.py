"""S6: from kill -9 of the driver until the next commit is in the database, against Structured Streaming."""

from __future__ import annotations

import sys
from pathlib import Path

from benchmarks.figure import percentile
from benchmarks.measuring.bench import Bench
from benchmarks.measuring.killing import KilledDriver
from benchmarks.measuring.settings import MASTER
from benchmarks.peers import endless_streaming
from benchmarks.topologies import endless

KILLS = 20


def run(bench: Bench) -> None:
    """Measure S6."""
    bench.say("ending Spark")
    bench.lab.close()  # its JVM would take part
    kills = bench.amount(KILLS)
    ours = _killed(bench, "Stormline", kills, _ours(bench.lab.databases.folder))
    theirs = _killed(bench, "Structured Streaming", kills, _theirs(bench.lab.databases.folder))
    bench.lab.databases.remove_files()
    detail = {"kills": kills, "secs": [[round(secs, 2) for secs in each] for each in (ours, theirs)]}
    bench.recorder.pair("S6a", percentile(ours, 50), percentile(theirs, 50), **detail)
    bench.recorder.pair("S6b", max(ours), max(theirs))
    bench.recorder.note(
        "S6a",
        f"{kills} kills of each, each started anew at once; batches of 1,000 tuples counted into SQLite, exactly once "
        "by both; Stormline with its ZooKeeper embedded",
    )


def _killed(bench: Bench, who: str, kills: int, driver: KilledDriver) -> list[float]:
    secs = []
    with driver:
        for number in range(kills):
            bench.say(f"{who}: kill {number + 1} of {kills}")
            secs.append(driver.secs_to_next_commit())
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
