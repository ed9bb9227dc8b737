"""A two-phase sink in the simulated world: its server may refuse, be slow, lose its answer, hear of a `prepare` long
after who sent it has failed, and forget. Its oracle sees each step.

The rules are those of docs/two_phase_commit.md, R1 to R8; law 1 (order).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from stormline.bolts.two_phase_commit import TwoPhaseCommitBolt
from stormline.topology.errors import FailedException
from stormline.topology.transaction_label import TransactionLabel
from stormline.topology.two_phase_commit import CommitOutcome, PreparedTransaction, TwoPhaseCommitSink
from tests.simulation.faults import PREPARE_FAULTS, SINK_FAULTS
from tests.simulation.scheduler import SimEvent
from tests.simulation.world import World, world

COMPONENT = "sink"
LOST = "has lost transaction"
"""What a driver says that halts since the sink has forgotten what was decided."""

Offset = tuple[int, int]


@dataclass
class SinkServer:
    """What is durable of the sink, and what is right of it."""

    world: World
    prepared: dict[str, list[Offset]] = field(default_factory=dict)
    committed: dict[str, list[Offset]] = field(default_factory=dict)
    aborted: set[str] = field(default_factory=set)
    forgotten: set[str] = field(default_factory=set)
    seen: set[str] = field(default_factory=set)
    used: bool = False

    def prepare(self, label: str, rows: list[Offset]) -> None:
        """Keep rows, invisible."""
        self.world.note(f"sink: {label} is prepared")
        if label in self.seen:
            self.world.oracle.broken(f"R1: {label} is prepared twice")
        if not rows:
            self.world.oracle.broken(f"empty: {label} is prepared without a row")
        self.seen.add(label)
        self.prepared[label] = rows
        if self.world.faults.strikes("sink: forgets"):
            self.world.after(self.world.faults.long_secs(), self._forget, label)

    def _forget(self, label: str) -> None:
        if self.prepared.pop(label, None) is not None:
            self.world.note(f"sink: {label} is forgotten")
            self.forgotten.add(label)

    def commit(self, label: str) -> CommitOutcome:
        """Make rows visible."""
        oracle, txid = self.world.oracle, _read(label).txid
        if label in self.committed:
            return CommitOutcome.ALREADY
        batch = oracle.freeze(txid, f"the sink's {label}")
        if batch is None or label not in labels_of(batch):
            oracle.broken(f"R2: {label} is committed, on record is {batch}")
        if txid != oracle.committed + 1:
            oracle.broken(f"law 1: {label} is committed, {oracle.committed} is recorded")
        if label in self.aborted:
            oracle.broken(f"R6: {label} is committed, and was aborted")
        if label in self.forgotten:
            return CommitOutcome.LOST
        if label not in self.prepared:
            oracle.broken(f"R2: {label} is committed, and was never prepared")
            return CommitOutcome.LOST
        self.world.note(f"sink: {label} is committed")
        self.committed[label] = self.prepared.pop(label)
        return CommitOutcome.DONE

    def abort(self, label: str, epoch: int) -> None:
        """Forget rows."""
        oracle = self.world.oracle
        self.world.note(f"sink: {label} is aborted by epoch {epoch}")
        if _read(label).epoch > epoch:
            oracle.broken(f"R8: epoch {epoch} aborts {label}")
        if label in self.committed:
            oracle.broken(f"R8: {label} is aborted, and was committed")
        if any(label in labels_of(batch) for batch in oracle.stored.values()):
            oracle.broken(f"R6: {label} is aborted, and is on record")
        if self.prepared.pop(label, None) is not None:
            self.aborted.add(label)

    def check_stored(self, txid: int, batch: Mapping[str, Any]) -> None:
        """See a batch be stored: what it names can be committed for ever."""
        gone = self.aborted.intersection(labels_of(batch))
        if gone:
            self.world.oracle.broken(f"R6: batch {txid} is stored with {gone}, which were aborted")

    def check_record(self, txid: int, batch: Mapping[str, Any], expected: list[Offset]) -> None:
        """See a transaction be recorded as committed: all of it is visible, and nothing twice."""
        if not self.used:
            return
        missing = [label for label in labels_of(batch) if label not in self.committed]
        if missing:
            self.world.oracle.broken(f"R4: {txid} is recorded, and {missing} are not committed")
        visible = sorted(row for label, rows in self.committed.items() if _read(label).txid == txid for row in rows)
        if visible != sorted(expected):
            self.world.oracle.broken(f"exactly once: of {txid} the sink shows {visible}, expected {sorted(expected)}")

    def check_content(self, expected: list[Offset]) -> None:
        """See that each row is visible once, in the order of transactions, at the end."""
        if not self.used:
            return
        order = [_read(label).txid for label in self.committed]
        if order != sorted(order):
            self.world.oracle.broken(f"law 1: the sink has committed in the order {order}")
        rows = sorted(row for shown in self.committed.values() for row in shown)
        if rows != expected:
            self.world.oracle.broken(f"exactly once: the sink shows {rows}, expected {expected}")

    def undecided(self, epoch: int | None = None) -> set[str]:
        """Return what is prepared, by drivers up to `epoch`, and on no record."""
        decided = {label for batch in self.world.oracle.stored.values() for label in labels_of(batch)}
        return {label for label in self.prepared if epoch is None or _read(label).epoch <= epoch} - decided

    @property
    def settled(self) -> bool:
        """Whether nothing is left behind."""
        return not self.prepared


def _read(text: str) -> TransactionLabel:
    label = TransactionLabel.read(text)
    assert label is not None, text
    return label


def labels_of(batch: Mapping[str, Any]) -> list[str]:
    """Return the labels of the handles that are stored with a batch."""
    return [label for _, label, _ in batch.get("handles", ())]


class SimSink(TwoPhaseCommitSink):
    """The client: what executors send arrives at once or much later, the driver waits for answers."""

    def open(self, conf: Any, context: Any) -> None:
        """Remember whose epoch it is."""
        self.epoch = context.epoch
        world().sinks.used = True

    def begin_transaction(self, label: TransactionLabel) -> Any:
        """Keep the rows here."""
        rows: list[Offset] = []
        return label.text, rows

    def invoke(self, transaction: Any, tup: Any) -> None:
        """Keep a row."""
        transaction[1].append((tup[2], tup[3]))

    def pre_commit(self, transaction: Any) -> Any:
        """Send the rows."""
        here = world()
        fault = here.faults.one_of(PREPARE_FAULTS)
        if fault == "sink: late PREPARE":
            late_secs = here.faults.long_secs()
            here.expect(late_secs)
            here.after(late_secs, here.sinks.prepare, *transaction)
        elif fault != "sink: PREPARE refused":
            here.sinks.prepare(*transaction)
        if fault is not None:
            raise FailedException(f"the sink did not answer: {fault}")
        return transaction[0]

    def commit(self, handle: Any) -> CommitOutcome:
        """Ask the server."""
        outcome = self._ask(lambda: world().sinks.commit(handle))
        assert isinstance(outcome, CommitOutcome)
        return outcome

    def abort(self, handle: Any) -> None:
        """Ask the server."""
        self._ask(lambda: world().sinks.abort(handle, self.epoch))

    def list_prepared(self, prefix: str) -> list[PreparedTransaction]:
        """Ask the server."""
        found = self._ask(lambda: [label for label in world().sinks.prepared if label.startswith(prefix)])
        return [PreparedTransaction(label, label) for label in found]

    @staticmethod
    def _ask(do: Callable[[], Any]) -> Any:
        here, faults = world(), world().faults
        fault = faults.one_of(SINK_FAULTS)
        slow = fault == "sink: slow"
        there_secs = faults.long_secs() if slow else faults.network_secs()
        back_secs = faults.long_secs() if slow else faults.network_secs()
        process, done, answer = here.task.process, SimEvent(here), []

        def arrive() -> None:
            if fault == "sink: refused":
                answer.append(FailedException("the sink is busy"))
            else:
                answer.append(do())
            if fault == "sink: lost reply":
                answer.append(FailedException("the connection broke"))
            here.after(back_secs, process.deliver, done.set)

        here.after(there_secs, arrive)
        here.expect(there_secs)
        done.wait()
        if isinstance(answer[-1], Exception):
            raise answer[-1]
        return answer[-1]


def sink_bolt() -> TwoPhaseCommitBolt:
    """Return the bolt that writes there."""
    return TwoPhaseCommitBolt(SimSink())
