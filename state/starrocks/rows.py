"""Rows as StarRocks reads them: CSV with separators, or JSON; perhaps compressed."""

from __future__ import annotations

import gzip
import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from math import isfinite
from typing import Any

from stormline.state.starrocks.errors import InvalidStarRocks, RowUnwritable
from stormline.topology.errors import MissingExtra

COMPRESSIONS = ("", "gzip", "lz4_frame")
SEPARATOR_BYTES_MAX = 50
NULL = r"\N"
GZIP_LEVEL = 1
"""It is for the way, not for the shelf."""


class Rows(ABC):
    """A format of rows, as plain data."""

    compression: str
    parameters: Mapping[str, str]

    @abstractmethod
    def encode(self, columns: Sequence[str], row: Sequence[Any]) -> bytes:
        """Return one row, without what is between rows.

        Args:
            columns (Sequence[str]): the names of the table's columns.
            row (Sequence[Any]): a value for each.

        Raises:
            RowUnwritable: a value cannot be written in this format.
        """

    @abstractmethod
    def _joined(self, rows: Sequence[bytes]) -> bytes:
        """Return the rows of one load."""

    def headers(self, columns: Sequence[str]) -> dict[str, str]:
        """Return what a load says of its format.

        Args:
            columns (Sequence[str]): the names of the table's columns.
        """
        more = {"compression": self.compression} if self.compression else {}
        return {**self.parameters, **more}

    def body(self, rows: Sequence[bytes]) -> bytes:
        """Return the body of one load.

        Args:
            rows (Sequence[bytes]): what `encode` returned.
        """
        data = self._joined(rows)
        if self.compression == "gzip":
            return gzip.compress(data, GZIP_LEVEL)
        if self.compression == "lz4_frame":
            return _lz4_frame(data)
        return data

    def _check(self, ours: Sequence[str]) -> None:
        if self.compression not in COMPRESSIONS:
            known = ", ".join(map(repr, COMPRESSIONS))
            raise InvalidStarRocks(f"compression is {self.compression!r}, expected one of {known}")
        for name, value in self.parameters.items():
            if name.lower() in ours or name.lower() in _OF_THE_SINK:
                raise InvalidStarRocks(f"parameters hold {name!r}, which the sink sets itself")
            if not isinstance(value, str):
                raise InvalidStarRocks(f"parameters hold {name!r} = {value!r}, expected text, as of an HTTP header")


_OF_THE_SINK = (
    "label", "db", "table", "format", "compression", "content-encoding", "authorization", "expect", "content-length",
    "timeout", "idle_transaction_timeout", "prepared_timeout", "transaction_type", "channel_id", "channel_num",
)  # fmt: skip


@dataclass(frozen=True)
class CsvRows(Rows):
    r"""Rows as CSV: text in quotation marks, None as `\N`.

    Args:
        column_separator (str): What is between columns, at most 50 bytes.
        row_delimiter (str): What is behind each row.
        compression (str): `gzip` or `lz4_frame` (needs pyarrow), or nothing.
        quoted (bool): False: without quotation marks, as StarRocks before 3.0 needs it; then a text that holds a
            separator is refused.
        parameters (Mapping[str, str]): More of Stream Load's: `max_filter_ratio`, `strict_mode`, `where`, ….

    Raises:
        InvalidStarRocks: A separator is too long, or both are one; or a parameter is the sink's own.
    """

    column_separator: str = "\t"
    row_delimiter: str = "\n"
    compression: str = ""
    quoted: bool = True
    parameters: Mapping[str, str] = ()  # type: ignore[assignment]

    def __post_init__(self) -> None:
        object.__setattr__(self, "parameters", dict(self.parameters))
        self._check(("column_separator", "row_delimiter", "enclose", "escape", "columns", "skip_header"))
        for name in ("column_separator", "row_delimiter"):
            value = getattr(self, name)
            if not isinstance(value, str) or not 1 <= len(value.encode()) <= SEPARATOR_BYTES_MAX or '"' in value:
                raise InvalidStarRocks(f"{name} is {value!r}, expected a text of 1 to 50 bytes without quotation marks")
        if self.column_separator == self.row_delimiter:
            raise InvalidStarRocks(f"column_separator and row_delimiter are both {self.row_delimiter!r}")

    def headers(self, columns: Sequence[str]) -> dict[str, str]:
        """Return what a load says of its format.

        Args:
            columns (Sequence[str]): the names of the table's columns.
        """
        more = {"enclose": '"'} if self.quoted else {}
        return {
            **super().headers(columns),
            **more,
            "format": "csv",
            "columns": ",".join(columns),
            "column_separator": _printed(self.column_separator),
            "row_delimiter": _printed(self.row_delimiter),
        }

    def encode(self, columns: Sequence[str], row: Sequence[Any]) -> bytes:
        """Return one row, without what is between rows.

        Args:
            columns (Sequence[str]): the names of the table's columns.
            row (Sequence[Any]): a value for each.
        """
        text_of = self._text
        texts = [
            str(value) if type(value) is int else text_of(column, value)
            for column, value in zip(columns, row, strict=True)
        ]
        return _utf8(columns, self.column_separator.join(texts))

    def _text(self, column: str, value: Any) -> str:
        if value is None:
            return NULL
        if type(value) is bool:
            return "1" if value else "0"
        text = value if type(value) is str else _plain(column, value)
        if not isinstance(text, str):
            text = str(text) if isinstance(text, int) else _json(column, text)
        if text == NULL:
            raise RowUnwritable(rf"column {column!r} has the text '\N', which in CSV is NULL; use JsonRows()")
        if self.quoted:
            return '"' + text.replace('"', '""') + '"'
        if self.column_separator in text or self.row_delimiter in text:
            raise RowUnwritable(
                f"column {column!r} has {text!r:.80}, which holds a separator; use quoted=True, other separators, or "
                "JsonRows()"
            )
        return text

    def _joined(self, rows: Sequence[bytes]) -> bytes:
        delimiter = self.row_delimiter.encode()
        return delimiter.join(rows) + delimiter


@dataclass(frozen=True)
class JsonRows(Rows):
    """Rows as JSON objects, by the names of their columns; each load is an array of them.

    Args:
        compression (str): `gzip` or `lz4_frame` (needs pyarrow), or nothing; StarRocks 3.2.7 and newer take it.
        parameters (Mapping[str, str]): More of Stream Load's: `max_filter_ratio`, `strict_mode`, `jsonpaths`, ….

    Raises:
        InvalidStarRocks: A parameter is the sink's own, or the compression is unknown.
    """

    compression: str = ""
    parameters: Mapping[str, str] = ()  # type: ignore[assignment]

    def __post_init__(self) -> None:
        object.__setattr__(self, "parameters", dict(self.parameters))
        self._check(("strip_outer_array", "json_root", "envelope"))

    def headers(self, columns: Sequence[str]) -> dict[str, str]:
        """Return what a load says of its format.

        Args:
            columns (Sequence[str]): the names of the table's columns.
        """
        return {**super().headers(columns), "format": "json", "strip_outer_array": "true"}

    def encode(self, columns: Sequence[str], row: Sequence[Any]) -> bytes:
        """Return one row, without what is between rows.

        Args:
            columns (Sequence[str]): the names of the table's columns.
            row (Sequence[Any]): a value for each.
        """
        values = dict(zip(columns, row, strict=True))
        try:
            text = _ENCODED(values)
        except (TypeError, ValueError):
            for column, value in values.items():  # one of them raises, with its name
                _json(column, value)
            raise
        return _utf8(columns, text)

    def _joined(self, rows: Sequence[bytes]) -> bytes:
        return b"[" + b",".join(rows) + b"]"


def _utf8(columns: Sequence[str], text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise RowUnwritable(f"one of the columns {', '.join(columns)} has text that is no Unicode: {error}") from None


_ENCODED = json.JSONEncoder(ensure_ascii=False, allow_nan=False, default=lambda value: _plain("", value)).encode


def _json(column: str, value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, default=lambda inner: _plain(column, inner))
    except (TypeError, ValueError) as error:
        if isinstance(error, RowUnwritable):
            raise
        raise RowUnwritable(f"column {column!r} has what JSON cannot hold: {error}") from None


def _plain(column: str, value: Any) -> Any:
    """Return a value as text, or as a list or dict of plain values."""
    if isinstance(value, (str, int)):
        return value
    if isinstance(value, float):
        if not isfinite(value):
            raise RowUnwritable(f"column {column!r} has {value!r}, expected a finite number, or None")
        return repr(float(value))
    if isinstance(value, datetime):
        if value.tzinfo is not None:
            raise RowUnwritable(
                f"column {column!r} has {value!r}, a time with a time zone, which DATETIME has not; write it as the "
                "time of one zone: value.astimezone(zone).replace(tzinfo=None)"
            )
        return value.isoformat(" ")
    if isinstance(value, (date, Decimal)):
        return str(value)
    if isinstance(value, (list, tuple, dict)):
        return value
    raise RowUnwritable(
        f"column {column!r} has {value!r:.80}, a {type(value).__name__}, expected text, a number, a date, None, or "
        "lists and dicts of them"
    )


def _printed(separator: str) -> str:
    """Return a separator as a header holds it: in hexadecimal digits where it does not print."""
    return (
        separator
        if separator.isprintable() and separator.isascii() and separator.strip() == separator
        else (r"\x" + separator.encode().hex().upper())
    )


def _lz4_frame(data: bytes) -> bytes:
    try:
        import pyarrow
    except ImportError as error:
        raise MissingExtra.of("arrow", "compression='lz4_frame'", "pyarrow") from error
    return bytes(pyarrow.Codec("lz4").compress(data, asbytes=True))
