"""Counts what holds one tuple on its way from a spout to the end of its commit: python -m benchmarks.tuple_way

One marked tuple goes through a line of a spout, a bolt and a committer, in this process. Counted is each function of
the runtime whose arguments, variables or result show it, as it is or packed, when it returns.
"""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from types import FrameType
from typing import Any

from stormline import (
    BaseTransactionalBolt,
    Conf,
    Fields,
    ICommitter,
    InProcessCluster,
    MemoryTransactionalSpout,
    OutputFieldsDeclarer,
    TopologyContext,
    TransactionalTopologyBuilder,
    TransactionAttempt,
    Tuple,
)

MARK = "marked tuple"
RUNTIME = str(Path(__file__).resolve().parents[1] / "runtime")


class Pass(BaseTransactionalBolt):
    """Passes on what it gets."""

    def prepare(self, conf: Conf, context: TopologyContext, collector: Any, batch_id: TransactionAttempt) -> None:
        self._collector = collector

    def execute(self, tup: Tuple) -> None:
        self._collector.emit([*tup.values])

    def finish_batch(self) -> None:
        pass

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("attempt", "value"))


class Commit(Pass, ICommitter):
    """Takes what it gets, in the commit phase."""

    def execute(self, tup: Tuple) -> None:
        pass


def holders() -> list[tuple[str, str]]:
    """Return (file, function) of all that hold the tuple, in the order in which they first give it on."""
    found: dict[tuple[str, str], None] = {}

    def look(frame: FrameType, event: str, result: Any) -> None:
        file = str(Path(frame.f_code.co_filename).resolve())
        place = (file.removeprefix(RUNTIME), getattr(frame.f_code, "co_qualname", frame.f_code.co_name))
        if event == "return" and file.startswith(RUNTIME) and place not in found:
            sys.setprofile(None)
            if any(MARK in repr(value) for value in [*frame.f_locals.values(), result]):
                found[place] = None
            sys.setprofile(look)

    builder = TransactionalTopologyBuilder("way", "spout", MemoryTransactionalSpout({0: [[MARK]]}, ["value"], 1))
    builder.set_bolt("pass", Pass(), 2).fields_grouping("spout", ["value"])
    builder.set_bolt("commit", Commit(), 2).fields_grouping("pass", ["value"])
    threading.setprofile(look)
    try:
        with InProcessCluster() as cluster:
            cluster.submit_topology("way", {}, builder.build_topology()).await_committed(1)
    finally:
        threading.setprofile(None)
    return list(found)


if __name__ == "__main__":
    places = holders()
    for place in places:
        print(*place)
    print(f"{len(places)} functions in {len({file for file, _ in places})} files hold the tuple")
