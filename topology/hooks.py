"""Task hooks, by Storm's names: code that hears of what a task does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stormline.topology.storm_names import StormInterface
from stormline.topology.tuples import Tuple

if TYPE_CHECKING:
    from stormline.topology.context import TopologyContext
    from stormline.topology.contracts import Conf


@dataclass(frozen=True, slots=True)
class EmitInfo:
    """A tuple that a task has emitted. Storm 1.2.4: EmitInfo.

    Attributes:
        values (Sequence[Any]): its values, the attempt first.
        stream (str): id of the stream.
        task_id (int): number of the task that emitted it.
        direct_task (int | None): number of the one task that it was emitted to by `emit_direct`; else None.
    """

    values: Sequence[Any]
    stream: str
    task_id: int
    direct_task: int | None


@dataclass(frozen=True, slots=True)
class BoltExecuteInfo:
    """A tuple that a bolt has executed, and how long that took. Storm 1.2.4: BoltExecuteInfo.

    Attributes:
        tuple (Tuple): the tuple.
        executing_task_id (int): number of the bolt's task.
        execute_latency_ms (float): milliseconds that `execute` took.
    """

    tuple: Tuple
    executing_task_id: int
    execute_latency_ms: float


class ITaskHook(StormInterface):
    """Hears of what one task does. What a hook raises is an error of the task's component.

    Storm's `spout_ack`, `spout_fail`, `bolt_ack` and `bolt_fail` may be there and are never called: tuples are counted
    here, not acked, and what fails is an attempt.
    """

    def prepare(self, conf: Conf, context: TopologyContext) -> None:
        """Called once, before anything else.

        Args:
            conf (Conf): the configuration as the task's component has it.
            context (TopologyContext): what the task may know about itself and the topology.
        """

    def emit(self, info: EmitInfo) -> None:
        """Called for each tuple that the task has emitted, when it is routed; not for those of record batches.

        Args:
            info (EmitInfo): the tuple, its stream and its task.
        """

    def bolt_execute(self, info: BoltExecuteInfo) -> None:
        """Called for each tuple after the bolt has executed it; not where it takes record batches.

        Args:
            info (BoltExecuteInfo): the tuple, the task, and how long it took.
        """

    def cleanup(self) -> None:
        """Called when what the hook was added in comes to its end; not where its process is killed."""


class BaseTaskHook(ITaskHook):
    """Does nothing: override what you want to hear of."""
