"""Which bolt finishes in which phase: A → B and C, B → C, C → D, where B and D are committers.

    spout → A ─→ B (committer) ─→ C ─→ D (committer)
              └───────────────────┘

Every bolt here does the same: it notes in which phase it executed and finished, and hands the notes on. A finishes in
the processing phase. B waits for its turn to commit, C cannot be complete before B is, and D waits for both: so B, C
and D finish in the commit phase, in this order, and only execute what reaches them before.

How a bolt knows the phase here: the commit phase runs in the driver process, and the processing phase in Spark's
Python workers, so the process id shows it. The notes go with the tuples, and each bolt adds itself to those that
reached it: had C finished before B, no note of B would arrive at D, which hears of B through C alone.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from stormline import (
    BaseTransactionalBolt,
    Collector,
    Conf,
    Fields,
    ICommitter,
    MemoryTransactionalSpout,
    OutputFieldsDeclarer,
    Topology,
    TopologyContext,
    TransactionalTopologyBuilder,
    TransactionAttempt,
    Tuple,
    Values,
)

DRIVER_PID = "design_phases.driver_pid"
PROCESSING, COMMIT = "processing", "commit"

Note = tuple[str, list[str], str]  # a bolt, the phases that it executed in, the phase that it finished in
NOTES: dict[int, list[Note]] = {}  # by txid: what D knew when it finished, itself included


class Noting(BaseTransactionalBolt):
    """Notes the phases of its own execute and finish_batch, and emits all notes that it has."""

    gathers = ("executed", "notes")

    def prepare(self, conf: Conf, context: TopologyContext, collector: Collector, batch_id: TransactionAttempt) -> None:
        self.conf = conf
        self.context = context
        self.collector = collector
        self.attempt = batch_id
        self.executed: list[str] = []
        self.notes: list[Note] = []

    def execute(self, tup: Tuple) -> None:
        phase = self.phase()
        if phase not in self.executed:
            self.executed.append(phase)
        if tup.contains("notes"):
            self.notes += [note for note in tup["notes"] if note not in self.notes]

    def finish_batch(self) -> None:
        self.notes.append((self.context.this_component_id, self.executed, self.phase()))
        self.collector.emit(Values(self.attempt, self.notes))

    def phase(self) -> str:
        """Return the phase that runs now."""
        return COMMIT if os.getpid() == self.conf[DRIVER_PID] else PROCESSING

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("attempt", "notes"))


class NotingCommitter(Noting, ICommitter):
    """The same, as a committer. `set_committer_bolt(id, Noting())` would do as well."""


class Last(NotingCommitter):
    """Keeps the notes, in the driver process."""

    def finish_batch(self) -> None:
        super().finish_batch()
        NOTES[self.attempt.transaction_id] = self.notes


def topology() -> Topology:
    """Declare the topology: two batches of two words."""
    spout = MemoryTransactionalSpout({0: ["to", "be", "or", "not"]}, Fields("word"), 2)
    builder = TransactionalTopologyBuilder("design-phases", "spout", spout)
    builder.set_bolt("A", Noting()).shuffle_grouping("spout")
    builder.set_bolt("B", NotingCommitter()).shuffle_grouping("A")
    builder.set_bolt("C", Noting()).shuffle_grouping("A").shuffle_grouping("B")
    builder.set_bolt("D", Last()).global_grouping("C")
    return builder.build_topology()


def config() -> Mapping[str, Any]:
    """Tell the bolts which process is the driver."""
    return {DRIVER_PID: os.getpid()}


def report() -> str:
    """Return who finished in which phase, in the order of finishing."""
    if not NOTES:
        return (
            "This run committed nothing in this process: an earlier one on the same state directory has committed all "
            "there is; or commits were placed on the executors."
        )
    lines: list[str] = []
    for txid, notes in sorted(NOTES.items()):
        lines.append(f"transaction {txid}")
        for phase in (PROCESSING, COMMIT):
            executed = ", ".join(bolt for bolt, executed_in, _ in notes if phase in executed_in)
            finished = ", then ".join(bolt for bolt, _, finished_in in notes if finished_in == phase)
            lines.append(f"  {phase + ' phase:':<17} {finished} finished; {executed} executed")
    return "\n".join(lines)
