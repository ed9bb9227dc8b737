"""A process that commits into Kafka, and kills itself at a named point of a commit.

Arguments: the brokers, the topic (and topology), a file that says which transaction is recorded, the epoch, the last
transaction, and `point:txid`.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

from stormline.state.kafka import KafkaSink
from tests.kits.stores import Process

POINTS = ("begun", "sent", "prepared", "committed", "recorded")
RECORDS = 20


def values_of(txid: int) -> list[bytes]:
    """Return what a transaction writes."""
    return [b"%d-%d" % (txid, i) for i in range(RECORDS)]


def main(servers: str, topic: str, recorded: Path, epoch: int, last: int, kill: str) -> None:
    """Commit what is not recorded."""

    def die_at(point: str) -> None:
        if kill == f"{point}:{txid}":
            os.kill(os.getpid(), signal.SIGKILL)

    sink = KafkaSink(servers, timeout_secs=60, client={"linger.ms": 0})
    process = Process(epoch, topic)

    def writes(context: Any, attempt: Any) -> None:
        transaction = sink.in_commit(context, attempt)
        prepare, commit = transaction.prepare, transaction.commit
        die_at("begun")
        for value in values_of(txid):
            transaction.send(topic, value)
        die_at("sent")

        def prepare_and_die() -> None:
            prepare()
            die_at("prepared")

        def commit_and_die() -> None:
            commit()
            die_at("committed")

        transaction.prepare, transaction.commit = prepare_and_die, commit_and_die  # type: ignore[method-assign]

    for txid in range(int(recorded.read_text()) + 1, last + 1):
        process.commit(txid, writes)
        recorded.write_text(str(txid))
        die_at("recorded")
    process.end()


if __name__ == "__main__":
    _, servers, topic, recorded, epoch, last, kill = sys.argv
    main(servers, topic, Path(recorded), int(epoch), int(last), kill)
