"""SpoutQuestions: what the runner asks the spout's coordinator, and what becomes of its answers and of its errors."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from stormline.runtime.coordination.stop_reasons import fatal_error
from stormline.runtime.errors import StateTooLarge
from stormline.runtime.tasks.spout_coordinator import SpoutCoordinator
from stormline.runtime.tasks.task_environment import TaskEnvironment
from stormline.runtime.tasks.user_code import failure_of
from stormline.runtime.world.own_thread import OwnThread
from stormline.topology.errors import FailedException, SerializationError, StormlineError
from stormline.topology.readings import Readings

log = logging.getLogger("stormline")

ANSWER_SECS = 0.05
"""After this time what is ready begins: a coordinator whose `is_ready` sleeps is not asked for all that may begin."""

_NOT_NOW = object()


@dataclass(frozen=True, slots=True)
class SpoutAnswer:
    """What defines new batches, by txid, and whether there may be more now; None: ask later.

    `error`: why it must stop; what was begun before is to be stored all the same, since a coordinator is asked for it
    once. `metrics`: what the coordinator has counted. It works for no attempt, so that counts at once.
    """

    begun: Mapping[int, Any] = field(default_factory=dict)
    more: bool | None = None
    error: BaseException | None = None
    metrics: Readings = field(default_factory=dict)


class SpoutQuestions:
    """Asks the coordinator of any kind of spout, in a thread of its own: it may sleep, and never holds up the loop.

    After a `FailedException` it is asked again later; any other error of it ends the topology, with its traceback.
    """

    def __init__(self, env: TaskEnvironment, on_answer: Callable[[SpoutAnswer], None]) -> None:
        self._env = env
        self._on_answer = on_answer
        self._own = OwnThread(env.world, f"stormline-coordinator-{env.plan.topology_id}")
        self.thread = self._own.thread
        self.asked_at: float | None = None  # None: no answer is awaited
        self._committed: Mapping[int, Any] = {}
        self.question = ""
        """The call of the coordinator that runs, or ran last."""
        try:
            self._spout = self._own.call(lambda: SpoutCoordinator(env))
        except BaseException:
            self._own.close()
            raise

    def resume(self, newest: Any) -> None:
        """Tell the coordinator the newest stored metadata, None where there is none."""
        try:
            self._own.call(partial(self._spout.resume, self._env.copied(newest)))
        except BaseException as error:
            raise self._fatal(error) from error

    def ask(
        self,
        first: int,
        room: int,
        prev: Any,
        positions: Mapping[int, Any],
        known: int,
        committed: Mapping[int, Any] | None = None,
    ) -> None:
        """Ask what defines at most `room` new batches; the answer comes by `on_answer`, from the coordinator's thread.

        Args:
            first: txid of the first of them.
            prev: metadata of the batch before it.
            positions: metadata of each partition after batch `known`, the newest of which it is known.
            committed: metadata of each partition after the last committed batch.
        """
        assert self.asked_at is None
        self.asked_at = self._env.world.monotonic()
        self._committed = committed or {}
        self._own.begin(partial(self._answer, first, room, prev, dict(positions), known))

    def answered(self) -> None:
        """Record that the answer has arrived."""
        self.asked_at = None

    def _answer(self, first: int, room: int, prev: Any, positions: Mapping[int, Any], known: int) -> None:
        begun: dict[int, Any] = {}
        try:
            self.question = f"positions_committed of spout {self._env.plan.spout.id!r}"
            self._ask(self._spout.tell_committed, self._committed, self._env.copied)
            more = self._define(begun, first, room, prev, positions, known)
            answer = SpoutAnswer(begun, more, metrics=self._spout.counted())
        except BaseException as error:
            answer = SpoutAnswer(begun, error=error)
        self._on_answer(answer)

    def _define(
        self, begun: dict[int, Any], first: int, room: int, prev: Any, positions: Mapping[int, Any], known: int
    ) -> bool | None:
        until = self._env.world.monotonic() + ANSWER_SECS
        while len(begun) < room and not (begun and self._env.world.monotonic() >= until):
            txid = first + len(begun)
            self.question = f"is_ready of spout {self._env.plan.spout.id!r}, for transaction {txid}"
            ready = self._ask(self._spout.is_ready, positions, txid - 1 - known)
            if ready is not True:
                return None if ready is _NOT_NOW else False
            self.question = f"what defines a batch of spout {self._env.plan.spout.id!r}, for transaction {txid}"
            metadata = self._ask(self._spout.initialize, txid, self._env.copied(prev))
            if metadata is _NOT_NOW:
                return None
            prev = begun[txid] = self.named(self._env.copied, metadata)
        return True

    def named(self, call: Callable[[Any], Any], metadata: Any) -> Any:
        """Call what packs metadata; an error of what the spout gave names the spout."""
        try:
            return call(metadata)
        except (SerializationError, StateTooLarge) as error:
            raise type(error)(f"metadata that spout {self._env.plan.spout.id!r} gave: {error}") from error

    def close(self) -> None:
        """Close the coordinator."""
        call = self._own.begin(self._spout.close)
        self._own.close()
        call.wait()

    def _ask(self, question: Callable[..., object], *args: object) -> object:
        try:
            return question(*args)
        except FailedException as error:
            failure = failure_of(error, self._env.plan.spout.id, None, "the coordinator")
            log.warning("%s; it is asked again later", failure.message)
            return _NOT_NOW
        except BaseException as error:
            raise self._fatal(error) from error

    def _fatal(self, error: BaseException) -> StormlineError:
        failure = failure_of(error, self._env.plan.spout.id, None, "the coordinator")
        return fatal_error(self._env.world, self._env.plan.topology_id, None, failure)
