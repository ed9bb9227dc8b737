"""A driver by hand with a two-phase sink: the real batches, definitions and sweeps; and the sink, which sees each step.

Rules by number, as docs/two_phase_commit.md has them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from stormline.runtime.coordination import coordinator
from stormline.runtime.coordination.sink_sweep import Kept, SinkKnowledge
from stormline.runtime.messages.sink_handle import SinkHandle
from stormline.runtime.messages.wave import AttemptResult, WaveAttempt
from stormline.runtime.state.memory_store import MemoryStateServer
from stormline.topology.attempt import TransactionAttempt
from stormline.topology.topology import ComponentKind
from stormline.topology.transaction_label import TransactionLabel, label_scope
from tests.model.driver_model import TOPOLOGY, ModelDriver

SCOPE = label_scope(TOPOLOGY, "sink")


@dataclass
class ModelSink:
    """What is prepared, committed and aborted; `executions` counts those of tasks."""

    prepared: dict[str, TransactionLabel] = field(default_factory=dict)
    committed: list[str] = field(default_factory=list)
    aborted: set[str] = field(default_factory=set)
    executions: int = 0

    def prepare(self, attempt: TransactionAttempt, epoch: int) -> SinkHandle:
        """Let a task of an attempt prepare, in an execution of its own."""
        self.executions += 1
        label = TransactionLabel(SCOPE, attempt.transaction_id, epoch, attempt.attempt_id, 1, self.executions)
        self.prepared[label.text] = label
        return SinkHandle("sink", label.text, 0)


class SinkModelDriver(ModelDriver):
    """A driver whose attempts prepare; `left` is what it has withdrawn, to be aborted."""

    def __init__(
        self, sink: ModelSink, server: MemoryStateServer, source: list[int], kind: ComponentKind, pending_max: int
    ) -> None:
        self.sink = sink
        self.left: list[str] = []
        self.newest: dict[int, int] = {}
        self.kept: dict[int, Kept] = {}
        super().__init__(server, source, kind, pending_max)
        for txid, batch in self.batches.known.items():
            if batch.fixed and self.commits.committed < txid <= self.commits.begun:
                self.kept[txid] = Kept(0, frozenset(handle.label for handle in batch.handles))
        self.withdraw(self.commits.begun + 1)

    def withdraw(self, txid: int) -> None:
        """Withdraw from the record what is not decided, from `txid` on; it may be aborted then."""
        begun, known = self.commits.begun, self.batches.known
        undecided = self.definitions.undecided(txid, begun)
        labels = [handle.label for later in undecided for handle in known[later].handles]
        if undecided:
            self.batches.fix(undecided)
        for later in [later for later in self.kept if later >= txid and later > begun]:
            del self.kept[later]
        self.left += labels

    def read(self, told: WaveAttempt, first: int, take: int) -> AttemptResult:
        """Read a batch, and prepare its rows, unless they were decided."""
        result = super().read(told, first, take)
        attempt = told.attempt
        self.newest[attempt.transaction_id] = attempt.attempt_id
        if not told.frozen and result.rows:
            result.handles = (self.sink.prepare(attempt, self.store.epoch),)
        handles = self.batches.known[attempt.transaction_id].handles if told.frozen else result.handles
        self.reads[attempt] = self.reads[attempt]._replace(handles=handles)
        return result

    def processed(self, attempts: Sequence[TransactionAttempt], take: int) -> list[AttemptResult]:
        """Process a wave; its handles are durable when this returns."""
        results = super().processed(attempts, take)
        for result in results:
            labels = frozenset(handle.label for handle in result.handles)
            self.kept[result.attempt.transaction_id] = Kept(result.attempt.attempt_id, labels)
        return results

    def failed(self, attempt: TransactionAttempt, timed_out: bool) -> None:
        """Report a failure, and withdraw what is not decided."""
        counts = coordinator.is_current(self.state, attempt)
        super().failed(attempt, timed_out)
        if counts:
            self.withdraw(attempt.transaction_id)

    def knowledge(self) -> SinkKnowledge:
        """Return what a sweep goes by that begins now."""
        return SinkKnowledge(self.store.epoch, self.commits.committed, dict(self.newest), dict(self.kept))
