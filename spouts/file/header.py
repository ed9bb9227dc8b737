"""The columns that the files name: those of the first, and that all others have the same."""

from __future__ import annotations

from collections.abc import Sequence

from stormline.spouts.file.errors import BadHeader
from stormline.spouts.file.layout import Columns
from stormline.spouts.file.settings import FileSettings
from stormline.topology.errors import UnknownField


def same_columns(known: Columns | None, found: Columns, settings: FileSettings) -> Columns:
    """Return the columns of the first file that was read or declared, having checked that `found` are the same.

    Raises:
        UnknownField: the first file lacks a column that is asked for.
        BadHeader: it has columns that cannot be fields, or a later one has others.
    """
    if known is None:
        check_columns(found.columns, found.path, settings)
        return found
    if found.columns != known.columns:
        raise BadHeader(
            f"file {found.path!r} has the columns {found.columns}, but {known.path!r} has {known.columns}; all files "
            "of one spout must have the same columns in the same order, so correct the one that differs"
        )
    return known


def check_columns(columns: Sequence[str], path: str, settings: FileSettings) -> None:
    """Check that the columns of the first file give the fields asked for.

    Raises:
        UnknownField: a field, a key of `types`, or `order_by` is no column.
        BadHeader: two columns of one name are wanted, or a name that cannot be a field's.
    """
    wanted = columns if settings.fields is None else settings.fields
    ordered = () if settings.order_by is None else (settings.order_by,)
    for name in (*wanted, *settings.types, *ordered):
        if name not in columns:
            raise UnknownField.among(name, columns, f"file {path!r}, read by FileTransactionalSpout,")
    for name in wanted:
        problem = None
        if not name:
            problem = "has a column without a name"
        elif columns.count(name) > 1:
            problem = f"has {columns.count(name)} columns named {name!r}"
        elif name == "attempt":
            problem = "has a column 'attempt', the name of the first field of every tuple"
        if problem:
            raise BadHeader(f"file {path!r} {problem}; name others with fields=[…], or correct the header")
