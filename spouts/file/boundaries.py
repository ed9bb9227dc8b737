"""Where rows end in a stretch of bytes, without parsing them."""

from __future__ import annotations

import re

QUOTED_FIELD_BYTES_MAX = 1 << 20
_BLOCK = 1 << 13
_NEWLINE = ord("\n")
_BLANKS = re.compile(rb"(?:\r*\n)+")
_RETURNS = re.compile(rb"\r*")
_LINE = re.compile(rb"(?:\r*\n)*(?!\r*\n)[^\n]*\n")


class RowBoundaries:
    """Finds the ends of rows; agrees with Python's csv module on every row which that module can read.

    A row ends at a line feed. Where `delimiter` is given (CSV), not inside quotes, and a quote opens only at the
    beginning of a field. A quote that does not close within 1 MiB, which is more than that module reads, or by the
    end of the file, does not hold the rows after it: then the row is its first line, and a bad one. Where
    `skip_blank`, blank lines are no rows.

    In all calls `final` says that the file ends with `data`. An offset that is passed in is at the start of a
    row, or of a blank line.
    """

    def __init__(self, *, delimiter: str | None = None, skip_blank: bool = True) -> None:
        self._skip_blank = skip_blank
        self._row: re.Pattern[bytes] | None = None
        if delimiter is not None:
            d = re.escape(delimiter.encode("ascii"))
            field = rb'(?:"[^"]*(?:""[^"]*)*"(?!")[^%b\n]*|[^"%b\n][^%b\n]*|)' % (d, d, d)
            self._row = re.compile(rb"%b(?:%b%b)*(?:\n|\Z)" % (field, d, field))
            self._whole_fields = re.compile(rb"(?:%b%b)*" % (field, d))

    def after_blanks(self, data: bytes, offset: int, final: bool) -> tuple[int, bool]:
        """Return the offset after blank lines, and whether more bytes are needed to tell."""
        if not self._skip_blank:
            return offset, offset == len(data) and not final
        blanks = _BLANKS.match(data, offset)
        if blanks:
            offset = blanks.end()
        returns = _RETURNS.match(data, offset)
        assert returns is not None
        if returns.end() < len(data):
            return offset, False
        return (len(data), False) if final else (offset, True)

    def after_rows(self, data: bytes, offset: int, rows: int, final: bool) -> tuple[int, int]:
        """Return the offset after at most `rows` rows from `offset` on, and how many there were.

        There are fewer where the data ends. Blank lines before a row belong to it.
        """
        found = 0
        while found < rows and offset < len(data):
            quote = data.find(b'"', offset) if self._row else -1
            plain_end = len(data) if quote < 0 else data.rfind(b"\n", offset, quote) + 1
            if plain_end > offset:
                offset, got = self._after_plain(data, offset, plain_end, rows - found, final and quote < 0)
                found += got
                if quote < 0:
                    break
                continue
            end = self._after_quoted(data, offset, final)
            if end is None:
                break
            offset = end
            found += 1
        return offset, found

    def _after_plain(self, data: bytes, start: int, stop: int, rows: int, final: bool) -> tuple[int, int]:
        """Do the same for bytes without quotes, the fast way: rows are lines. What is left over is no whole row."""
        offset, found = _after_lines(data, start, stop, rows)
        if self._skip_blank and (
            data[start] in b"\r\n" or data.find(b"\n\n", start, offset) >= 0 or data.find(b"\n\r", start, offset) >= 0
        ):
            offset, found = start, 0
            for line in _LINE.finditer(data, start, stop):
                offset, found = line.end(), found + 1
                if found == rows:
                    return offset, found
        if found < rows:
            if self._skip_blank:
                blanks = _BLANKS.match(data, offset, stop)
                offset = blanks.end() if blanks else offset
            if final and offset < stop and not (self._skip_blank and not data[offset:stop].strip(b"\r")):
                offset, found = stop, found + 1
        return offset, found

    def _after_quoted(self, data: bytes, start: int, final: bool) -> int | None:
        assert self._row is not None
        field = start
        while True:
            stop = min(len(data), field + QUOTED_FIELD_BYTES_MAX)
            row = self._row.match(data, field, stop)
            if row and data[row.end() - 1] == _NEWLINE:
                return row.end()
            if stop == len(data):
                if not final and stop - field < QUOTED_FIELD_BYTES_MAX:
                    return None
                if final and row:
                    return stop
            whole = self._whole_fields.match(data, field, stop)
            assert whole is not None
            if whole.end() == field:
                break
            field = whole.end()
        line_end = data.find(b"\n", start) + 1
        return line_end or (len(data) if final else None)


def _after_lines(data: bytes, start: int, stop: int, lines: int) -> tuple[int, int]:
    """Return the offset after at most `lines` line feeds from `start` on, and how many there were."""
    found = 0
    offset = start
    end = start
    while offset < stop:
        block_end = min(offset + _BLOCK, stop)
        count = data.count(b"\n", offset, block_end)
        if found + count >= lines:
            end = offset
            for _ in range(lines - found):
                end = data.find(b"\n", end) + 1
            return end, lines
        found += count
        if count:
            end = data.rfind(b"\n", offset, block_end) + 1
        offset = block_end
    return end, found
