"""SpoutQuestions: what the runner asks the spout's coordinator, and what becomes of its answers and of its errors."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

from stormline.runtime.errors import StateTooLarge
from stormline.runtime.failures import fatal_error
from stormline.runtime.guard import failure_of
from stormline.runtime.spout_driver import SpoutDriver
from stormline.runtime.task_environment import TaskEnvironment
from stormline.topology.errors import FailedException, SerializationError, StormlineError

log = logging.getLogger("stormline")

_NOT_NOW = object()


class SpoutQuestions:
    """Asks the coordinator of any kind of spout, in the thread of the topology's loop.

    After a `FailedException` it is asked again later; any other error of it ends the topology, with its traceback.
    """

    def __init__(self, env: TaskEnvironment) -> None:
        self._env = env
        self._spout = SpoutDriver(env)

    def resume(self, newest: Any) -> None:
        """Tell the coordinator the newest stored metadata, None where there is none."""
        try:
            self._spout.resume(self._env.copied(newest))
        except BaseException as error:
            raise self._fatal(error) from error

    def define(
        self, first: int, room: int, prev: Any, positions: Mapping[int, Any], known: int
    ) -> tuple[dict[int, Any], bool | None]:
        """Return what defines at most `room` new batches, by txid, and whether there may be more now; None: ask later.

        Args:
            first: txid of the first of them.
            prev: metadata of the batch before it.
            positions: metadata of each partition after batch `known`, the newest of which it is known.
        """
        begun: dict[int, Any] = {}
        while len(begun) < room:
            txid = first + len(begun)
            ready = self._ask(self._spout.is_ready, positions, txid - 1 - known)
            if ready is not True:
                return begun, None if ready is _NOT_NOW else False
            metadata = self._ask(self._spout.initialize, txid, self._env.copied(prev))
            if metadata is _NOT_NOW:
                return begun, None
            prev = begun[txid] = self.named(self._env.copied, metadata)
        return begun, True

    def named(self, call: Callable[[Any], Any], metadata: Any) -> Any:
        """Call what packs metadata; an error of what the spout gave names the spout."""
        try:
            return call(metadata)
        except (SerializationError, StateTooLarge) as error:
            raise type(error)(f"metadata that spout {self._env.plan.spout.id!r} gave: {error}") from error

    def close(self) -> None:
        """Close the coordinator."""
        self._spout.close()

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
        return fatal_error(self._env.plan.topology_id, None, failure)
