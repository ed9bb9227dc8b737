"""DriverSinks: the two-phase sinks of one topology in the driver, where they commit, abort and list."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import TypeVar

from stormline.runtime.errors import SinkMissing
from stormline.runtime.messages.sink_handle import SinkHandle
from stormline.runtime.tasks.sink_answers import checked_listing, checked_outcome
from stormline.runtime.tasks.task_context import TaskContext
from stormline.runtime.world.own_thread import OwnThread
from stormline.runtime.world.running_calls import CallReport
from stormline.runtime.world.thread_stack import place_of
from stormline.runtime.world.world import Thread, World
from stormline.topology.attempt import TransactionAttempt
from stormline.topology.contracts import Conf
from stormline.topology.plan import Plan
from stormline.topology.transaction_label import TransactionLabel, label_scope
from stormline.topology.two_phase_bolt import TwoPhaseCommitter, sink_of
from stormline.topology.two_phase_commit import CommitOutcome, PreparedTransaction, TwoPhaseCommitSink

T = TypeVar("T")


def opened(bolt: TwoPhaseCommitter, conf: Conf, context: TaskContext) -> TwoPhaseCommitSink:
    """Return a process's own copy of the sink that a bolt declares, opened."""
    sink = copy.deepcopy(bolt.sink)
    sink.open(conf, context)
    return sink


def _is_of(scope: str, listed: PreparedTransaction) -> bool:
    label = TransactionLabel.read(listed.label)
    return label is not None and label.scope == scope


class _DriverSink:
    """One sink, opened in its first call, and the thread in which it is called."""

    def __init__(self, world: World, component: str, bolt: TwoPhaseCommitter, conf: Conf, context: TaskContext) -> None:
        self._world = world
        self._component = component
        self._bolt = bolt
        self._conf = conf
        self._context = context
        self._opened: TwoPhaseCommitSink | None = None
        self.thread = OwnThread(world, f"stormline-sink-{component}")

    def call(self, method: Callable[[TwoPhaseCommitSink], T]) -> T:
        """Call the sink in its thread, and wait."""
        return self.thread.call(lambda: method(self._open()))

    def _open(self) -> TwoPhaseCommitSink:
        if self._opened is None:
            self._opened = opened(self._bolt, self._conf, self._context)
        return self._opened

    def report(self, attempt: TransactionAttempt) -> CallReport | None:
        """Return what is told of the call that runs, for which an attempt waits, if one does."""
        begun, thread = self.thread.running_since(), self.thread.thread.ident
        if begun is None or thread is None:
            return None
        secs = self._world.monotonic() - begun
        text = f"a call of the sink of bolt {self._component!r} in the driver, for {secs:.1f} s, at {place_of(thread)}"
        return CallReport(self._component, None, attempt, secs, text)

    def close(self) -> None:
        """Close the sink, if it was opened; its thread ends."""
        try:
            if self._opened is not None:
                self.thread.call(self._opened.close)
        finally:
            self.thread.close()


class DriverSinks:
    """One sink for each bolt that writes into one, for as long as the topology runs; each is called in one thread.

    Args:
        epoch: this driver's; what was begun in others is recovered.
        conf, context: those of a component, and of one of its tasks.
    """

    def __init__(
        self,
        world: World,
        plan: Plan,
        epoch: int,
        conf: Callable[[str], Conf],
        context: Callable[[str, int], TaskContext],
    ) -> None:
        self._world = world
        self._plan = plan
        self._epoch = epoch
        self._conf = conf
        self._context = context
        self.components = tuple(name for name, planned in plan.components.items() if sink_of(planned.component))
        self._sinks: dict[str, _DriverSink] = {}
        self._lock = world.lock()  # nobody's code runs under it: it may hang

    def call(self, component: str, method: Callable[[TwoPhaseCommitSink], T]) -> T:
        """Call the sink of a bolt in its thread, and wait; raise what it raises.

        Raises:
            SinkMissing: the bolt writes into none.
        """
        return self._of(component).call(method)

    def _of(self, component: str) -> _DriverSink:
        planned = self._plan.components.get(component)
        bolt = None if planned is None else sink_of(planned.component)
        if bolt is None or planned is None:
            raise SinkMissing(
                f"a two-phase transaction of bolt {component!r} is stored, and topology {self._plan.topology_id!r} has "
                "no such bolt any more, or not as a TwoPhaseCommitBolt: nobody could commit or abort it. Declare it "
                "as it was until the transaction is committed, and change it then"
            )
        with self._lock:
            if component not in self._sinks:
                context = self._context(component, planned.tasks[0])
                self._sinks[component] = _DriverSink(self._world, component, bolt, self._conf(component), context)
            return self._sinks[component]

    def listed(self, component: str) -> list[PreparedTransaction] | None:
        """Return what the sink of a bolt lists of its transactions, and no others; None: it cannot tell.

        Raises:
            WrongAnswer: it lists something else; else whatever it raises.
        """
        scope = label_scope(self._plan.topology_id, component)

        def ask(sink: TwoPhaseCommitSink) -> list[PreparedTransaction] | None:
            found = sink.list_prepared(f"{scope}-")
            if found is None:
                return None
            return [each for each in found if _is_of(scope, checked_listing(each, component))]

        return self.call(component, ask)

    def commit(self, handle: SinkHandle) -> CommitOutcome:
        """Commit what was decided, by this driver or by one before it.

        Raises:
            WrongAnswer: its sink says something else than how that went; else whatever it raises.
        """
        own, data = self._is_own(handle), handle.data

        def commit(sink: TwoPhaseCommitSink) -> CommitOutcome:
            return sink.commit(data) if own else sink.recover_and_commit(data)

        return checked_outcome(self.call(handle.component, commit), handle.component)

    def abort(self, handle: SinkHandle) -> None:
        """Drop what was pre-committed and never decided, by this driver's attempts or by others'."""
        own, data = self._is_own(handle), handle.data
        self.call(handle.component, lambda sink: sink.abort(data) if own else sink.recover_and_abort(data))

    def _is_own(self, handle: SinkHandle) -> bool:
        label = TransactionLabel.read(handle.label)
        return label is not None and label.epoch == self._epoch

    def threads(self) -> list[Thread]:
        """Return the threads in which sinks are called."""
        with self._lock:
            return [sink.thread.thread for sink in self._sinks.values()]

    def calls(self, attempt: TransactionAttempt) -> list[CallReport]:
        """Return what is told of the calls that run now, for which an attempt waits, the longest first."""
        with self._lock:
            reports = [sink.report(attempt) for sink in self._sinks.values()]
        return sorted((report for report in reports if report is not None), key=lambda report: -report.secs)

    def closes(self) -> list[Callable[[], None]]:
        """Return what closes each sink, and forget them."""
        with self._lock:
            closes: list[Callable[[], None]] = [sink.close for sink in self._sinks.values()]
            self._sinks = {}
            return closes
