"""Whose a table is: one topology's, and one declaration's."""

from __future__ import annotations

from stormline.state.errors import TableMismatch
from stormline.state.table import Table

MAPS = "stormline_maps"
"""Where that is stored."""


def check_claim(store: str, table: Table, topology: str, found_topology: str, declared: str) -> None:
    """Check that a table which is in use is this topology's, and declared as it is.

    Raises:
        TableMismatch: It is another topology's, or another map's.
    """
    if found_topology != topology:
        raise TableMismatch(
            f"table {table.name!r} of {store} belongs to topology {found_topology!r}, and this is {topology!r}: their "
            f"transactions have nothing to do with each other; name another table, or remove its row from {MAPS!r}"
        )
    if declared != table.described():
        raise TableMismatch(
            f"table {table.name!r} of {store} is that of another map: {declared}, and this is {table.described()}; "
            "declare the map as it was, name another table, or change the table yourself and remove its row from "
            f"{MAPS!r}"
        )
