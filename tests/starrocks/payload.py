"""What a load carries: CSV or JSON, perhaps compressed, and the rows that a table takes of it."""

from __future__ import annotations

import bz2
import gzip
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.starrocks.refusals import INTERNAL_ERROR, INVALID_ARGUMENT, Refused
from tests.starrocks.tables import Row, Table, Unfit

PARAMETERS = (
    "columns", "column_separator", "row_delimiter", "enclose", "skip_header", "format", "strip_outer_array",
    "jsonpaths", "json_root", "strict_mode", "max_filter_ratio", "compression", "content-encoding", "partial_update",
    "where", "partitions", "timezone", "merge_condition",
)  # fmt: skip
"""Headers that must be equal in all loads of a transaction [txn]."""
NOT_EMULATED = ("jsonpaths", "json_root", "partial_update", "where", "partitions", "merge_condition")
COLUMN_SEPARATOR_BYTES_MAX = 50
NULL = r"\N"


def _lz4_frame(data: bytes) -> bytes:
    import pyarrow

    with pyarrow.input_stream(pyarrow.BufferReader(data), compression="lz4") as stream:
        return bytes(stream.read())


def _zstd(data: bytes) -> bytes:
    import pyarrow

    with pyarrow.input_stream(pyarrow.BufferReader(data), compression="zstd") as stream:
        return bytes(stream.read())


DECOMPRESS: Mapping[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.decompress,
    "bzip2": bz2.decompress,
    "lz4_frame": _lz4_frame,
    "zstd": _zstd,
}


@dataclass(frozen=True)
class Parameters:
    """How the data of all loads of one transaction are to be read."""

    given: Mapping[str, str]

    @classmethod
    def of(cls, headers: Mapping[str, str]) -> Parameters:
        """Return those of a request.

        Raises:
            Refused: one is none, or is one that the emulator does not emulate.
        """
        found = cls({name: headers[name] for name in PARAMETERS if name in headers})
        for name in NOT_EMULATED:
            if name in found.given:
                raise Refused(INVALID_ARGUMENT, f"the emulator does not know the parameter '{name}'")
        if found.format not in ("csv", "json"):
            raise Refused(INTERNAL_ERROR, f"unknown data format, format={found.format}")
        if "compression" in headers and "content-encoding" in headers:
            raise Refused(
                INVALID_ARGUMENT, "Only one of http header content-encoding and compression can be set"
            )  # [be]
        if len(found.separator.encode()) > COLUMN_SEPARATOR_BYTES_MAX:
            raise Refused(INVALID_ARGUMENT, "column separator is longer than 50 bytes")
        return found

    @property
    def format(self) -> str:
        """`csv`, the default, or `json` [load]."""
        return self.given.get("format", "csv").lower()

    @property
    def separator(self) -> str:
        """What is between columns: by default a tab [txn]."""
        return _unescaped(self.given.get("column_separator", "\t"))

    @property
    def delimiter(self) -> str:
        """What is behind each row: by default a line feed [txn]."""
        return _unescaped(self.given.get("row_delimiter", "\n"))

    @property
    def max_filter_ratio(self) -> float:
        """How many of the rows may be left out [load]."""
        return float(self.given.get("max_filter_ratio", "0"))

    def decompressed(self, body: bytes) -> bytes:
        """Return the data of a request."""
        name = self.given.get("compression") or self.given.get("content-encoding") or ""
        if not name:
            return body
        if name.lower() not in DECOMPRESS:
            raise Refused(INVALID_ARGUMENT, f"unsupported compression type {name}")
        try:
            return DECOMPRESS[name.lower()](body)
        except (OSError, EOFError) as error:
            raise Refused(INTERNAL_ERROR, f"fail to decompress: {error}") from None


@dataclass
class Loaded:
    """What became of all loads of one transaction."""

    rows: list[Row] = field(default_factory=list)
    filtered: int = 0
    why: str = ""

    @property
    def total(self) -> int:
        """How many rows were sent."""
        return len(self.rows) + self.filtered


def loaded(parameters: Parameters, parts: list[bytes], table: Table) -> Loaded:
    """Return the rows that a table takes of what was loaded, part by part.

    CSV is one stream: where a part does not end with a row delimiter, its last row goes on in the next one [txn] [be].
    Of JSON each part is complete [be].
    """
    result = Loaded()
    records = _csv(parameters, b"".join(parts), table) if parameters.format == "csv" else _json(parameters, parts)
    for record in records:
        try:
            result.rows.append(_row(record, parameters, table))
        except Unfit as error:
            result.filtered += 1
            result.why = result.why or str(error)
    return result


def _row(record: Mapping[str, Any] | Unfit, parameters: Parameters, table: Table) -> Row:
    if isinstance(record, Unfit):
        raise record
    strict = parameters.given.get("strict_mode", "false").lower() == "true"
    values = []
    for column in table.columns:
        value = record.get(column.name)
        try:
            values.append(column.fit(value))
        except Unfit:
            if strict or not column.nullable:
                raise
            values.append(None)  # [load]: what cannot be converted is NULL, unless strict_mode says otherwise
    return tuple(values)


def _csv(parameters: Parameters, data: bytes, table: Table) -> Iterator[Mapping[str, Any] | Unfit]:
    names = [name.strip() for name in parameters.given["columns"].split(",")] if "columns" in parameters.given else None
    if names and any("=" in name for name in names):
        raise Refused(INVALID_ARGUMENT, "the emulator computes no columns")
    names = names or table.names
    text = data.decode("utf-8", "replace")
    rows = _split(text, parameters)
    skip = int(parameters.given.get("skip_header", "0"))
    for number, row in enumerate(rows):
        if number < skip:
            continue
        if len(row) != len(names):
            yield Unfit(
                f"Value count does not match column count: expected = {len(names)} columns, actual = {len(row)} columns"
            )
        else:
            yield {name: None if value == NULL else value for name, value in zip(names, row, strict=True)}


def _split(text: str, parameters: Parameters) -> Iterator[list[str]]:
    """Cut CSV into rows of columns; what is wrapped in `enclose` may hold both separators, and itself twice [load]."""
    separator, delimiter = parameters.separator, parameters.delimiter
    enclose = parameters.given.get("enclose", "")
    if not enclose:
        for line in text.removesuffix(delimiter).split(delimiter) if text else []:
            yield line.split(separator)
        return
    row: list[str] = []
    at = 0
    while at < len(text):
        if text.startswith(enclose, at):
            value, at = _enclosed(text, at + len(enclose), enclose)
        else:
            ends = [end for end in (text.find(separator, at), text.find(delimiter, at)) if end >= 0]
            end = min(ends, default=len(text))
            value, at = text[at:end], end
        row.append(value)
        if text.startswith(separator, at):
            at += len(separator)
        else:
            yield row
            row, at = [], at + len(delimiter)


def _enclosed(text: str, at: int, enclose: str) -> tuple[str, int]:
    parts: list[str] = []
    while True:
        end = text.find(enclose, at)
        if end < 0:
            return "".join([*parts, text[at:]]), len(text)
        parts.append(text[at:end])
        at = end + len(enclose)
        if not text.startswith(enclose, at):
            return "".join(parts), at
        parts.append(enclose)
        at += len(enclose)


def _json(parameters: Parameters, parts: list[bytes]) -> Iterator[Mapping[str, Any] | Unfit]:
    strip = parameters.given.get("strip_outer_array", "false").lower() == "true"
    decoder = json.JSONDecoder()
    for part in parts:
        text, at = part.decode("utf-8", "replace").strip(), 0
        while at < len(text):
            try:
                document, at = decoder.raw_decode(text, at)
            except ValueError as error:
                raise Refused(INTERNAL_ERROR, f"Failed to parse json: {error}") from None
            while at < len(text) and text[at].isspace():
                at += 1
            for one in document if strip and isinstance(document, list) else [document]:
                yield one if isinstance(one, dict) else Unfit("the value should be object type, but is not")


def _unescaped(text: str) -> str:
    r"""Return a separator: itself, or `\x` and hexadecimal digits for what does not print [load]."""
    if text.startswith(r"\x"):
        return bytes.fromhex(text[2:]).decode()
    return {r"\t": "\t", r"\n": "\n", r"\r\n": "\r\n"}.get(text, text)
