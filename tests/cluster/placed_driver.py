"""A driver of its own process whose committer finishes on the executors.

`python -m tests.cluster.placed_driver MASTER DIRECTORY BOLT`.
It runs until all is committed, and prints how often transactions were replayed. Its log goes to stderr.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from stormline import Config, LocalCluster
from stormline.runtime.spark import context
from stormline.topology.topology import Topology
from tests.kits.components import Batch, Fault, line, numbers
from tests.kits.placement import FencedStore, Keep

ROOT = Path(__file__).resolve().parents[2]
ROWS = 40
TRANSACTIONS = 4
TXID_OF_TROUBLE = 2
RUN_SECS = 150.0


class Exits(Keep):
    """Ends its process in the first attempt of one transaction, as the kernel ends one that takes too much memory."""

    def finish_batch(self) -> None:
        if (self.attempt.transaction_id, self.attempt.attempt_id) == (TXID_OF_TROUBLE, 1):
            FencedStore(self.path).note_begin(self.context, self.attempt)
            os._exit(137)
        super().finish_batch()


class Waits(Keep):
    """Waits in the first attempt of one transaction, with one of its tasks, until it is killed."""

    def finish_batch(self) -> None:
        here = (self.attempt.transaction_id, self.attempt.attempt_id, self.context.this_task_index)
        if here == (TXID_OF_TROUBLE, 1, 0):
            FencedStore(self.path).note_begin(self.context, self.attempt)
            time.sleep(RUN_SECS)
        super().finish_batch()


class Survives(Keep):
    """Outlives its executor in the first attempt of one transaction, and comes to the store after the next attempt."""

    def finish_batch(self) -> None:
        if (self.attempt.transaction_id, self.attempt.attempt_id) == (TXID_OF_TROUBLE, 1):
            os.setsid()  # PySpark's daemon ends the processes of its own session
            store = FencedStore(self.path)
            store.note_begin(self.context, self.attempt)
            while not store.rows("SELECT 1 FROM stored WHERE txid = ?", TXID_OF_TROUBLE):
                time.sleep(0.05)
            try:
                store.add(self.context, self.attempt, ["late"])
            except RuntimeError as error:
                store.note(TXID_OF_TROUBLE, "zombie", str(error))
            os._exit(0)
        super().finish_batch()


BOLTS = {"exits": Exits, "waits": Waits, "survives": Survives, "keeps": Keep}


def topology(path: Path, bolt: str) -> Topology:
    """Declare two bolts; the committer has one task where its process is to live on, else two."""
    made = BOLTS[bolt](path, Fault("nowhere"))
    return line(
        "placed",
        numbers(ROWS),
        ROWS // TRANSACTIONS // 2,
        lambda b: b.set_bolt("x", Batch(), 2).shuffle_grouping("spout"),
        lambda b: b.set_bolt("store", made, 1 if bolt == "survives" else 2).fields_grouping("x", ["value"]),
        parallelism=2,
    )


def main(master: str, directory: str, bolt: str) -> None:
    """Run the topology to its end, also on a master that is refused: `local[N,F]` has Spark run tasks again."""
    if "," in master:
        vars(context)["check_safe"] = lambda master, settings: None  # the first defence; the test is about the second
    logging.basicConfig(level=logging.INFO, format="%(name)s: %(message)s")
    logging.getLogger("kazoo").setLevel(logging.WARNING)
    logging.getLogger("py4j").setLevel(logging.WARNING)
    conf: dict[str, Any] = {
        "spark.executorEnv.PYTHONPATH": os.environ["PYTHONPATH"],
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
    }
    config = {Config.TOPOLOGY_COMMIT_PLACEMENT: "executors", Config.TOPOLOGY_MESSAGE_TIMEOUT_SECS: 120}
    with LocalCluster(Path(directory) / "state", master, conf) as cluster:
        handle = cluster.submit_topology("placed", config, topology(Path(directory) / "store.sqlite", bolt))
        handle.await_committed(TRANSACTIONS, RUN_SECS)
        print(handle.snapshot().replays)


@contextmanager
def started(master: str, directory: Path, bolt: str) -> Iterator[subprocess.Popen[str]]:
    """Start this driver in a process of its own, its log in `directory`; what is left of it ends with the block."""
    path = os.pathsep.join(path or os.getcwd() for path in [str(ROOT), *sys.path])
    with (directory / "log").open("w") as log:
        driver = subprocess.Popen(
            [sys.executable, "-m", "tests.cluster.placed_driver", master, str(directory), bolt],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": path},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
    with driver:
        try:
            yield driver
        finally:
            if driver.poll() is None:
                driver.kill()


if __name__ == "__main__":
    main(*sys.argv[1:])
