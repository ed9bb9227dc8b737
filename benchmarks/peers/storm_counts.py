"""Apache Storm 1.2.4: storm-starter's TransactionalGlobalCount and TransactionalWords, written anew in Java.

    python -m benchmarks.peers.storm_counts [--work global_count,words,small_batches]

The topologies are in `storm/`; they run in Storm's LocalCluster, one process, with its ZooKeeper on disk, acking on
(one acker, as by default) and Storm's default configuration but for the two settings below. Each transaction is
committed and recorded in ZooKeeper as Storm does it.

Time runs from one commit to another, with more batches under way at both, after a warm-up of some seconds, because
the JVM compiles the hot code only then.

Settings, each the best of those tried here:

- batches of 100,000: 2 partitions, one emitting task each, 2 counting tasks, `topology.max.spout.pending` 1. With 2, 3
  or 5 pending it is slower: the batches only queue for the same 2 cores. Parallel collection of garbage, larger
  buffers and larger disruptor batches change nothing that can be told from noise.
- 9 tuples a batch: 3 partitions of 3 tuples, pending 256, and `topology.disruptor.batch.size` 1, so that no tuple waits
  for company. Storm's coordinator, one thread, writes to ZooKeeper several times a transaction and bounds the rate;
  pending 16 or 64 give the same.

Storm 1.2.4 was made for Java 8. It runs on Java 17 but for one thing: the ZooKeeper client inside takes the name of a
server from text that Java 14 changed, and then looks for a host named `localhost/<unresolved>`. So the JVM is
given a hosts file in which that name is this machine.
"""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.peers.protocol import GLOBAL_COUNT, SMALL_BATCHES, WORDS, Job, jobs

HOME = Path(__file__).resolve().parents[2] / ".venv-bench-peers" / "storm"
WARM_UP_SECS = 3.0
DEFAULTS = {GLOBAL_COUNT: (24, 100_000), WORDS: (24, 100_000), SMALL_BATCHES: (400, 9)}


def spec(job: Job) -> str:
    """Return what `StormPeer` wants to know of a job."""
    partitions, pending, disruptor_batch = (3, 256, 1) if job.work == SMALL_BATCHES else (2, 1, 100)
    return f"{job.work},{job.batches},{job.batch_tuples},{partitions},{pending},{disruptor_batch}"


def java(directory: Path, measured: list[Job]) -> list[str]:
    """Return the command of the JVM, all of whose files are in `directory`."""
    hosts = directory / "hosts"
    hosts.write_text(f"127.0.0.1 localhost localhost/<unresolved> {socket.gethostname()}\n")
    return [
        shutil.which("java") or "java",
        "-Xmx4g",
        f"-Djdk.net.hosts.file={hosts}",
        f"-Djava.io.tmpdir={directory}",
        "-cp",
        f"{HOME / 'classes'}:{HOME / 'lib'}/*",
        "stormline.benchmarks.StormPeer",
        str(WARM_UP_SECS),
        str(measured[0].secs_max),
        *map(spec, measured),
    ]


def stop(signal_number: int, frame: object) -> None:
    """End as at Ctrl-C, which ends the JVM too."""
    raise KeyboardInterrupt


def main() -> int:
    """Measure; the JVM prints the lines."""
    measured = jobs(__doc__, DEFAULTS)
    signal.signal(signal.SIGTERM, stop)
    with tempfile.TemporaryDirectory(prefix="storm-peer-") as name:
        process = subprocess.Popen(java(Path(name), measured), cwd=name)
        try:
            return process.wait()
        except KeyboardInterrupt:
            return 130
        finally:
            process.kill()
            process.wait()


if __name__ == "__main__":
    sys.exit(main())
