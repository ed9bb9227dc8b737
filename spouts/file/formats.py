"""Which layout and which rows belong to a format."""

from __future__ import annotations

from collections.abc import Sequence

from stormline.spouts.file.byte_ranges import ByteRanges
from stormline.spouts.file.csv_columns import CsvColumns
from stormline.spouts.file.csv_rows import CsvRows
from stormline.spouts.file.jsonl import JsonRows
from stormline.spouts.file.layout import FileLayout
from stormline.spouts.file.parquet import ParquetRanges
from stormline.spouts.file.rows import RowFormat, TextRows
from stormline.spouts.file.settings import FileSettings


def layout_of(settings: FileSettings) -> FileLayout:
    """Return how files are cut into pieces."""
    return ParquetRanges() if settings.format == "parquet" else ranges_of(settings)


def ranges_of(settings: FileSettings) -> ByteRanges:
    """Return how files of lines are."""
    if settings.format == "csv":
        return ByteRanges(CsvRows(settings.encoding, settings.delimiter, header=settings.header))
    return ByteRanges(rows_of(settings, None))


def rows_of(settings: FileSettings, columns: Sequence[str] | None) -> RowFormat:
    """Return how the bytes of a piece are read; `columns` are those of the header, where there is one."""
    fields = settings.fields
    if settings.format == "csv":
        return CsvRows(
            settings.encoding,
            settings.delimiter,
            header=settings.header,
            columns=columns or fields or (),
            fields=fields,
            types=settings.types,
        )
    if settings.format == "jsonl":
        assert fields is not None
        return JsonRows(settings.encoding, fields, settings.defaults)
    return TextRows(settings.encoding)


def columns_reader(settings: FileSettings, columns: Sequence[str] | None) -> CsvColumns | None:
    """Return how a piece is read as columns; None where only rows can be read."""
    if settings.format != "csv":
        return None
    fields = settings.fields
    return CsvColumns(settings.encoding, settings.delimiter, columns or fields or (), fields, settings.types)
