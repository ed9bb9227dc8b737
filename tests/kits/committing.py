"""A committer on a store and commit phases that wait, fail and hang on order."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from stormline.runtime.coordination.commit_queue import CommitQueue
from stormline.runtime.coordination.committer import CommitEnded, Committer
from stormline.runtime.messages.wave import AttemptResult, Failure
from stormline.runtime.state.state_store import Op, Put
from stormline.runtime.world.running_calls import CallReport, Calls
from stormline.runtime.world.world import REAL
from stormline.topology.attempt import TransactionAttempt
from stormline.topology.commit_groups import CommitGroups
from stormline.topology.readings import Readings
from tests.kits.components import eventually

PATIENCE_SECS = 10.0


class Run:
    """A commit phase; `script` says by txid what it does."""

    def __init__(self, env: Any, result: AttemptResult, engine: Any) -> None:
        self.attempt = result.attempt
        self.abandoned = False
        self.only_sinks_left = False
        self.script: Callable[[Run], Failure | None] = engine.get(result.attempt.transaction_id, lambda run: None)
        self.trail: list[Any] = env.trail

    def run(self) -> Failure | None:
        self.trail.append(("phase", str(self.attempt)))
        return self.script(self)

    def abandon(self) -> None:
        self.abandoned = True

    def end_soon(self) -> None:
        self.trail.append(("soon", str(self.attempt)))

    def where(self) -> str:
        return "the call that this run is in"

    def executing_secs(self) -> dict[str, float]:
        return {}

    def metrics(self) -> Readings:
        return {}


class Plan:
    topology_id = "t"


class Env:
    plan = Plan()
    groups = CommitGroups(None, 1, "")

    def __init__(self) -> None:
        self.trail: list[Any] = []
        self.calls = Calls(REAL)
        self.passed_secs = REAL.passed_secs
        self.world = replace(REAL, passed_secs=lambda: self.passed_secs())


class Scripts(dict[int, Callable[["Run"], "Failure | None"]]):
    """What commits do, by txid, in the place of an engine; none of it is on an executor."""

    def calls(self, attempts: Any) -> list[CallReport]:
        return []


class Store:
    """Notes what is written; fails, or is suspended, on order."""

    epoch = 1

    def __init__(self, trail: list[Any]) -> None:
        self.trail = trail
        self.up = True
        self.error: BaseException | None = None
        self.gate = threading.Event()
        self.gate.set()

    def connected(self) -> bool:
        return self.up

    def write(self, ops: list[Op]) -> None:
        self.gate.wait(PATIENCE_SECS)
        if self.error is not None:
            raise self.error
        for op in ops:
            assert isinstance(op, Put)
            self.trail.append(("record", f"{op.value['txid']}:{op.value['attempt']}"))


class Rig:
    def __init__(self, timeout_secs: float | None = None, committed: int = 0) -> None:
        self.env = Env()
        self.store = Store(self.env.trail)
        self.scripts = Scripts()
        self.ended: list[CommitEnded] = []
        self.signals = 0
        env: Any = self.env
        engine: Any = self.scripts
        store: Any = self.store
        self.committer = Committer(env, engine, store, CommitQueue(committed, committed), self._signal, timeout_secs)

    def _signal(self) -> None:
        self.signals += 1

    def add(self, *txids: int, attempt: int = 1) -> None:
        for txid in txids:
            self.committer.add(AttemptResult(TransactionAttempt(txid, attempt)))

    def await_ended(self, number: int) -> list[CommitEnded]:
        def enough() -> bool:
            self.ended += self.committer.take_ended()
            return len(self.ended) >= number

        eventually(enough)
        return self.ended
