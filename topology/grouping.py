"""A grouping is a value: it says how a stream's tuples are spread over the tasks of one bolt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from stormline.topology.storm_names import storm_names

if TYPE_CHECKING:
    from stormline.topology.context import TopologyContext

DEFAULT_STREAM = "default"


class GroupingKind(StrEnum):
    """The kinds of grouping, by Storm's names; `BoltDeclarer` has a method for each, which says what it does."""

    SHUFFLE = "shuffle"
    FIELDS = "fields"
    GLOBAL = "global"
    NONE = "none"
    ALL = "all"
    DIRECT = "direct"
    LOCAL_OR_SHUFFLE = "local or shuffle"
    PARTIAL_KEY = "partial key"
    CUSTOM = "custom"


LOCAL_SHUFFLES = (GroupingKind.LOCAL_OR_SHUFFLE, GroupingKind.NONE)
"""Groupings that keep a tuple in its Spark task where the plan lets them."""


@storm_names(get_componentId="component", get_streamId="stream", componentId="component", streamId="stream")
@dataclass(frozen=True, slots=True)
class GlobalStreamId:
    """One stream of one component. Storm 1.2.4: GlobalStreamId.

    Attributes:
        component (str): id of the component.
        stream (str): id of the stream.
    """

    component: str
    stream: str = DEFAULT_STREAM

    def get_component_id(self) -> str:
        """Return the id of the component."""
        return self.component

    def get_stream_id(self) -> str:
        """Return the id of the stream."""
        return self.stream

    def __str__(self) -> str:
        return self.component if self.stream == DEFAULT_STREAM else f"{self.component}.{self.stream}"


@runtime_checkable
class CustomStreamGrouping(Protocol):
    """What `custom_grouping` takes: an object of any class with these two methods.

    Storm 1.2.4: CustomStreamGrouping.
    """

    def prepare(self, context: TopologyContext, stream: GlobalStreamId, target_tasks: Sequence[int]) -> None:
        """Called once a sending task, before the first choice.

        Args:
            context (TopologyContext): what the sending task may know about itself and the topology.
            stream (GlobalStreamId): the stream whose tuples are to be sent.
            target_tasks (Sequence[int]): numbers of the receiving bolt's tasks, ascending.
        """

    def choose_tasks(self, task_id: int, values: Sequence[Any]) -> Sequence[int]:
        """Return the tasks that get a tuple: any number of the target tasks.

        Args:
            task_id (int): number of the task that emitted it.
            values (Sequence[Any]): the tuple's values, the attempt first.
        """


@dataclass(frozen=True, slots=True)
class Grouping:
    """How the tuples of a stream choose tasks of a bolt: a value, which `BoltDeclarer.grouping` takes.

    Attributes:
        kind (GroupingKind): which grouping it is.
        fields (tuple[str, ...]): names of the fields, for `FIELDS` and `PARTIAL_KEY`.
        custom (CustomStreamGrouping | None): the object that chooses, for `CUSTOM`.
    """

    kind: GroupingKind
    fields: tuple[str, ...] = ()
    custom: CustomStreamGrouping | None = None

    def __str__(self) -> str:
        return f"{self.kind.value}({', '.join(self.fields)})" if self.fields else self.kind.value
