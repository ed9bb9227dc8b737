"""unregistered_field: which field of which tuple holds what cannot be packed; for the error alone, since it is slow."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from stormline.topology.errors import UnregisteredClass


def unregistered_field(
    error: UnregisteredClass,
    rows: Sequence[Sequence[Any]],
    names: Mapping[int, str],
    pack: Callable[[Any], object],
    where: tuple[str, str],
) -> UnregisteredClass:
    """Return `error` with the names of component and stream, which are `where`, and of the field.

    Args:
        names: names of the fields that are looked at, by position.
        pack: what has raised `error` with one of the values.
    """
    component, stream = where
    for i, name in names.items():
        for row in rows:
            try:
                pack(row[i])
            except UnregisteredClass as found:
                return UnregisteredClass(f"{component!r} emitted to stream {stream!r}, field {name!r}: {found}")
    return error
