"""TwoPhaseCommitter: what makes a BatchBolt one that writes into a two-phase commit sink; its turn in one attempt."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from stormline.topology.errors import InvalidComponent
from stormline.topology.topology import Component
from stormline.topology.tuples import Tuple, TupleSource
from stormline.topology.two_phase_commit import Semantic, TwoPhaseCommitSink

if TYPE_CHECKING:
    import pyarrow

TWO_PHASES = "two phases"
"""What durable state says of such a bolt, beside what it says of any."""


class SinkTurn(Protocol):
    """One task's transaction in one attempt, with the sink that was opened for the task."""

    @abstractmethod
    def invoke(self, tup: Tuple) -> None:
        """Write one tuple; the first begins the transaction."""

    @abstractmethod
    def invoke_rows(self, rows: Sequence[list[Any]], source: TupleSource) -> None:
        """Write many tuples of one stream; the first begins the transaction."""

    @abstractmethod
    def invoke_batch(self, batch: pyarrow.RecordBatch) -> None:
        """Write a record batch; the first begins the transaction."""

    @abstractmethod
    def finish(self) -> None:
        """Pre-commit the transaction, if there is one."""


class TwoPhaseCommitter:
    """Marks a BatchBolt that writes into a two-phase commit sink. The engine gives it its `turn` before `prepare`.

    Args:
        sink (TwoPhaseCommitSink): where to write; nothing of it is opened here.
        semantic (Semantic): what is promised.

    Raises:
        InvalidComponent: they are something else.
    """

    turn: SinkTurn

    def __init__(self, sink: TwoPhaseCommitSink, semantic: Semantic = Semantic.EXACTLY_ONCE) -> None:
        if not isinstance(sink, TwoPhaseCommitSink):
            refusal = getattr(sink, "no_two_phase_sink", None)
            if isinstance(refusal, str):
                raise InvalidComponent(refusal)
            got = f"the class {sink.__name__}" if isinstance(sink, type) else f"a {type(sink).__name__}"
            raise InvalidComponent(
                f"{type(self).__name__} got {got} as its sink, expected an object of a kind of TwoPhaseCommitSink"
            )
        try:
            self.semantic = Semantic(semantic)
        except ValueError:
            raise InvalidComponent(
                f"{type(self).__name__} got semantic = {semantic!r}, expected one of "
                f"{', '.join(f'Semantic.{known.name}' for known in Semantic)}"
            ) from None
        self.sink = sink


def sink_of(component: Component) -> TwoPhaseCommitter | None:
    """Return the bolt of a component that writes into a two-phase sink; None: it is another one."""
    return component.obj if isinstance(component.obj, TwoPhaseCommitter) else None


def decides(component: Component) -> bool:
    """Return whether a component pre-commits what is committed in its turn."""
    bolt = sink_of(component)
    return bolt is not None and bolt.semantic is Semantic.EXACTLY_ONCE
