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
    """The kinds of grouping, by Storm's names."""

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
    """One stream of one component."""

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
    """What `custom_grouping` takes."""

    def prepare(self, context: TopologyContext, stream: GlobalStreamId, target_tasks: Sequence[int]) -> None:
        """Called once a sending task, before the first choice."""

    def choose_tasks(self, task_id: int, values: Sequence[Any]) -> Sequence[int]:
        """Return the target tasks, any number of them, for `values` (attempt first) emitted by `task_id`."""


@dataclass(frozen=True, slots=True)
class Grouping:
    """How tuples of a stream choose tasks; `fields` for FIELDS and PARTIAL_KEY, `custom` for CUSTOM."""

    kind: GroupingKind
    fields: tuple[str, ...] = ()
    custom: CustomStreamGrouping | None = None

    def __str__(self) -> str:
        return f"{self.kind.value}({', '.join(self.fields)})" if self.fields else self.kind.value
