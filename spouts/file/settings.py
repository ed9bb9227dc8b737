"""FileSettings: how a FileTransactionalSpout was declared, checked."""

from __future__ import annotations

import codecs
import importlib.util
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stormline.spouts.file.errors import InvalidFileSpout
from stormline.topology.errors import MissingExtra, UnknownField, did_you_mean
from stormline.topology.fields import Fields

FORMATS = ("csv", "jsonl", "text", "parquet")
ORDER_WINDOW_MAX = 10_000  # a bit of each row of it is stored with every batch
Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]


@dataclass(frozen=True, slots=True)
class FileSettings:
    """The arguments of `FileTransactionalSpout`, checked; travels to the executors."""

    paths: tuple[str, ...]
    format: str
    fields: tuple[str, ...] | None
    rows_per_batch: int
    skip_bad: bool
    encoding: str
    delimiter: str
    header: bool
    types: dict[str, Callable[[str], Any]]
    defaults: dict[str, Any]
    order_by: str | None
    order_window: int
    keep_late: bool

    @classmethod
    def checked(
        cls,
        *,
        paths: Paths,
        format: str,
        fields: Sequence[str] | None,
        rows_per_batch: int,
        on_bad_line: str,
        encoding: str,
        delimiter: str,
        header: bool,
        types: Mapping[str, Callable[[str], Any]] | None,
        defaults: Mapping[str, Any] | None,
        order_by: str | None,
        order_window: int,
        on_late_row: str,
    ) -> FileSettings:
        """Check the arguments against each other.

        Raises:
            InvalidFileSpout: some do not go together, or one is out of range.
            UnknownField: `types`, `defaults` or `order_by` name a field that `fields` does not have.
            MissingExtra: the format needs a package that is not installed.
        """
        if format not in FORMATS:
            raise InvalidFileSpout(
                f"format is {format!r}, expected one of {FORMATS}{did_you_mean(str(format), FORMATS)}"
            )
        if on_bad_line not in ("error", "skip"):
            raise InvalidFileSpout(f"on_bad_line is {on_bad_line!r}, expected 'error' or 'skip'")
        if type(rows_per_batch) is not int or rows_per_batch < 1:
            raise InvalidFileSpout(f"rows_per_batch is {rows_per_batch!r}, expected a whole number of at least 1")
        names = _names(fields, format, header)
        types, defaults = dict(types or {}), dict(defaults or {})
        for argument, given, ours in (
            ("header", header is not True, "csv"),
            ("delimiter", delimiter != ",", "csv"),
            ("types", bool(types), "csv"),
            ("defaults", bool(defaults), "jsonl"),
        ):
            if given and format != ours:
                raise InvalidFileSpout(f"{argument} is for format={ours!r}; leave it out with format={format!r}")
        for argument, mapping in (("types", types), ("defaults", defaults)):
            for name in mapping:
                if names is not None and name not in names:
                    raise UnknownField.among(name, names, f"FileTransactionalSpout, named in {argument}: the spout")
        _check_order(order_by, order_window, on_late_row, format, names)
        for name, convert in types.items():
            if not callable(convert):
                raise InvalidFileSpout(f"types[{name!r}] is {convert!r}, expected a callable that takes text, as float")
        if len(delimiter) != 1 or not delimiter.isascii() or delimiter in '"\r\n\0':
            raise InvalidFileSpout(f"delimiter is {delimiter!r}, expected one ASCII character such as ',' or '\\t'")
        if format == "parquet" and importlib.util.find_spec("pyarrow") is None:
            raise MissingExtra.of("parquet", "format='parquet'")
        codec = _encoding(encoding)
        if format == "csv" and _may_end_a_character(delimiter, codec):
            raise InvalidFileSpout(
                f"delimiter {delimiter!r} is also the second byte of characters in encoding {encoding!r}, so fields "
                "cannot be told apart; convert the files to UTF-8 first"
            )
        return cls(
            paths=_paths(paths),
            format=format,
            fields=names,
            rows_per_batch=rows_per_batch,
            skip_bad=on_bad_line == "skip",
            encoding=codec,
            delimiter=delimiter,
            header=bool(header),
            types=types,
            defaults=defaults,
            order_by=order_by,
            order_window=order_window,
            keep_late=on_late_row == "keep",
        )


def _paths(paths: Paths) -> tuple[str, ...]:
    given: Any = [paths] if isinstance(paths, (str, os.PathLike)) else paths
    if not isinstance(given, Sequence) or not given:
        raise InvalidFileSpout(f"paths is {paths!r}, expected a path or a list with at least one")
    for path in given:
        if not isinstance(path, (str, os.PathLike)) or not os.fspath(path):
            raise InvalidFileSpout(f"paths holds {path!r}, expected non-empty text or a Path")
    return tuple(os.fspath(path) for path in given)


def _names(fields: Sequence[str] | None, format: str, header: bool) -> tuple[str, ...] | None:
    if fields is None:
        if format == "text":
            return ("line",)
        if format == "jsonl":
            raise InvalidFileSpout("format='jsonl' needs fields: name the keys to take from each object")
        if format == "csv" and not header:
            raise InvalidFileSpout("header=False needs fields: name the columns, all of them, in their order")
        return None
    if isinstance(fields, str):
        raise InvalidFileSpout(f"fields is the text {fields!r}, expected a list: [{fields!r}]")
    names = tuple(Fields("attempt", *fields))[1:]  # raises for empty, repeated and reserved names
    if not names:
        raise InvalidFileSpout("fields is empty; name at least one field, or leave it out")
    if format == "text" and len(names) != 1:
        raise InvalidFileSpout(f"format='text' gives one field, the line; fields names {len(names)}: {list(names)}")
    return names


def _check_order(
    order_by: str | None, order_window: int, on_late_row: str, format: str, names: tuple[str, ...] | None
) -> None:
    if order_by is None:
        for argument, given in (("order_window", order_window != 0), ("on_late_row", on_late_row != "error")):
            if given:
                raise InvalidFileSpout(f"{argument} is for files that are read in an order; name its field in order_by")
        return
    if format not in ("csv", "jsonl"):
        raise InvalidFileSpout(f"order_by is for format='csv' or 'jsonl'; leave it out with format={format!r}")
    if names is not None and order_by not in names:
        raise UnknownField.among(order_by, names, "FileTransactionalSpout, named in order_by: the spout")
    if type(order_window) is not int or not 0 <= order_window <= ORDER_WINDOW_MAX:
        raise InvalidFileSpout(f"order_window is {order_window!r}, expected a number of rows, 0 to {ORDER_WINDOW_MAX}")
    if on_late_row not in ("error", "keep"):
        raise InvalidFileSpout(f"on_late_row is {on_late_row!r}, expected 'error' or 'keep'")


def _may_end_a_character(delimiter: str, codec: str) -> bool:
    """Return whether the byte of `delimiter` may be a part of another character, too: fields are split as bytes."""
    for lead in range(0x80, 0x100):
        try:
            if len((bytes([lead]) + delimiter.encode("ascii")).decode(codec)) == 1:
                return True
        except UnicodeError:
            continue
    return False


def _encoding(name: str) -> str:
    """Return the codec's own name; rows are told apart before they are decoded, so ASCII must be itself in it."""
    try:
        found = codecs.lookup(name).name
    except LookupError:
        raise InvalidFileSpout(f"encoding {name!r} is not known to Python; expected one such as 'utf-8'") from None
    if found == "utf-8-sig":
        return "utf-8"  # a byte order mark is taken off in any case
    ascii_bytes = bytes(range(128))
    try:
        same = ascii_bytes.decode(found) == ascii_bytes.decode("ascii")
    except (UnicodeError, LookupError):
        same = False
    if not same or found.startswith(("iso2022", "hz")):
        raise InvalidFileSpout(
            f"encoding {name!r} does not keep ASCII characters as single bytes, so rows cannot be told apart in "
            "it; convert the files to UTF-8 first"
        )
    return found
