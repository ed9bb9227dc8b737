"""SinkHandle: by which a transaction of a two-phase sink is committed or aborted, and whose it is."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from stormline.topology.transaction_label import TransactionLabel


@dataclass(frozen=True, slots=True)
class SinkHandle:
    """The handle `data` of the transaction `label` of the sink of a component."""

    component: str
    label: str
    data: Any

    def __reduce__(self) -> tuple[type[SinkHandle], tuple[Any, ...]]:
        return SinkHandle, (self.component, self.label, self.data)


Handles = tuple[SinkHandle, ...]


def to_value(handles: Iterable[SinkHandle]) -> list[Any]:
    """Return what is stored of handles: plain values."""
    return [[handle.component, handle.label, handle.data] for handle in handles]


def from_value(value: Any) -> Handles:
    """Return the handles that were stored; raise `ValueError` where they were not stored by `to_value`."""
    if not isinstance(value, list):
        raise ValueError("handles are a list")
    handles = []
    for item in value:
        if not (isinstance(item, list) and len(item) == 3 and isinstance(item[0], str) and isinstance(item[1], str)):
            raise ValueError("a handle is a component, a label and data")
        if TransactionLabel.read(item[1]) is None:
            raise ValueError(f"{item[1]!r} is no label")
        handles.append(SinkHandle(*item))
    if len({handle.label for handle in handles}) != len(handles):
        raise ValueError("a label comes twice")
    return tuple(handles)
