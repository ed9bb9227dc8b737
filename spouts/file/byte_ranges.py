"""ByteRanges: cuts files of lines (CSV, JSON Lines, text) into ranges of bytes."""

from __future__ import annotations

import codecs
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

from stormline.spouts.file.boundaries import RowBoundaries
from stormline.spouts.file.errors import FileChanged, UnusableFile
from stormline.spouts.file.layout import Opened
from stormline.spouts.file.metadata import Piece, Position
from stormline.spouts.file.opening import open_rows
from stormline.spouts.file.rows import RowFormat

READ_BYTES_MAX = 16 << 20
LINE_BYTES_MAX = 64 << 20
VERIFY_ALWAYS_BYTES = 1 << 30
_ROW_BYTES_GUESS = 256

_FOREIGN = {
    b"\x1f\x8b": "compressed with gzip; unpack it first (gunzip)",
    b"PK\x03\x04": "a zip archive; unpack it first (unzip)",
    b"\x28\xb5\x2f\xfd": "compressed with zstd; unpack it first (unzstd)",
    b"\xfd7zXZ\x00": "compressed with xz; unpack it first (unxz)",
    b"PAR1": "a Parquet file; pass format='parquet'",
    codecs.BOM_UTF16_LE: "UTF-16; convert it to UTF-8 first",
    codecs.BOM_UTF16_BE: "UTF-16; convert it to UTF-8 first",
}
# "BZh9" alone might begin a text; what follows it in a bzip2 file does not.
_BZIP2 = b"1AY&SY"


class ByteRanges:
    """Cuts at the ends of rows, reading only what the batch needs.

    The CRC-32 runs on over the whole file from its first byte, so one pass gives both: a piece's checksum (from
    the value before it to the value after it) and proof, on a restart, that all the bytes that stored batches came
    from are still what they were. That costs one reading of the prefix, at about a gigabyte a second; above 1 GiB it
    is left out where the time of change is the same too. Digests of a file's head and tail would cost less and
    prove less: a change in rows that are still to be read harms no batch, one in rows that were read does.
    """

    def __init__(self, rows: RowFormat) -> None:
        self._rows = rows

    def begin(self, path: str) -> Opened:
        with open_rows(path) as file:
            found = os.fstat(file.fileno())
            head = file.read(16)
            for magic, what in _FOREIGN.items():
                if head.startswith(magic):
                    raise UnusableFile(f"file {path!r} is {what}: a batch is a range of a file's own bytes")
            if head.startswith(b"BZh") and head[4:10] == _BZIP2:
                raise UnusableFile(f"file {path!r} is compressed with bzip2; unpack it first (bunzip2)")
            scan = _Scan(file, Position(path, found.st_size, found.st_mtime_ns, 0, 1, 0), self._rows.boundaries, 1)
            if self._rows.encoding == "utf-8" and head.startswith(codecs.BOM_UTF8):
                scan.skip(len(codecs.BOM_UTF8))
            columns = None
            if self._rows.has_header:
                scan.skip_blanks()
                columns = self._rows.header(scan.read_row(), path, scan.line_before)
            scan.skip_blanks()
            return Opened(scan.position, columns)

    def check(self, at: Position, *, resuming: bool) -> Position:
        with _same_file(at, resuming) as (_, now):
            return now

    def take(self, at: Position, rows: int, rows_per_piece: int) -> tuple[Position, list[Piece]]:
        pieces: list[Piece] = []
        with _same_file(at, False) as (file, now):
            scan = _Scan(file, now, self._rows.boundaries, rows)
            while rows and not self.is_at_end(scan.position):
                piece = scan.cut(min(rows, rows_per_piece))
                pieces.append(piece)
                rows -= piece.rows
            return scan.position, pieces

    def read(self, at: Position, rows: int) -> tuple[Position, bytes]:
        """Return the position after at most `rows` rows from `at` on, and their bytes; none are left at the end."""
        with _same_file(at, False) as (file, now):
            scan = _Scan(file, now, self._rows.boundaries, rows)
            scan.cut(rows)
            file.seek(now.offset)
            return scan.position, file.read(scan.position.offset - now.offset)

    def is_at_end(self, at: Position) -> bool:
        return at.offset >= at.size


@contextmanager
def _same_file(at: Position, resuming: bool) -> Iterator[tuple[BinaryIO, Position]]:
    """Open the file that is being read, having checked that it is the same as far as it was read."""
    with open_rows(at.path, at.size) as file:
        found = os.fstat(file.fileno())
        if found.st_size != at.size:
            raise FileChanged.size(at.path, at.size, found.st_size)
        if found.st_mtime_ns != at.mtime_ns or (resuming and at.offset <= VERIFY_ALWAYS_BYTES):
            crc = _crc_of_prefix(file, at.offset)
            if crc != at.crc:
                raise FileChanged.content(at.path, f"the first {at.offset} bytes", at.crc, crc)
        yield file, at._replace(mtime_ns=found.st_mtime_ns)


def _crc_of_prefix(file: BinaryIO, length: int) -> int:
    crc = 0
    file.seek(0)
    while length:
        data = file.read(min(length, 1 << 20))
        if not data:
            return crc
        crc = zlib.crc32(data, crc)
        length -= len(data)
    return crc


class _Scan:
    """One pass from a position on: reads ahead, and counts lines and checksum of what was passed."""

    def __init__(self, file: BinaryIO, at: Position, boundaries: RowBoundaries, rows: int) -> None:
        self.position = at
        self.line_before = at.line
        self._file = file
        self._boundaries = boundaries
        self._data = b""
        self._offset = 0  # of the position in _data
        self._read = at.offset  # where in the file _data ends
        row_bytes = at.offset / at.line if at.line > 100 else _ROW_BYTES_GUESS
        self._read_next = min(int(rows * row_bytes * 1.05) + (1 << 14), READ_BYTES_MAX)
        file.seek(at.offset)

    @property
    def _final(self) -> bool:
        return self._read >= self.position.size

    def _read_more(self) -> None:
        """Read on.

        Raises:
            UnusableFile: there is a line that is longer than 64 MiB.
            FileChanged: the file ends before its size.
        """
        at = self.position
        if len(self._data) - self._offset > LINE_BYTES_MAX:
            raise UnusableFile(
                f"{at.path}:{at.line}: the line is longer than {LINE_BYTES_MAX} bytes; is this a file of lines?"
            )
        more = self._file.read(min(self._read_next, at.size - self._read))
        if not more:
            raise FileChanged.size(at.path, at.size, self._read)
        self._data = self._data[self._offset :] + more
        self._offset = 0
        self._read += len(more)
        self._read_next = min(max(self._read_next, len(self._data)), READ_BYTES_MAX)

    def skip(self, length: int) -> None:
        """Pass the next `length` bytes, which are no row."""
        while len(self._data) - self._offset < length:
            self._read_more()
        self._pass(self._offset + length)

    def _pass(self, end: int) -> None:
        at = self.position
        data, start = self._data, self._offset
        if start == end:
            return
        self.position = at._replace(
            offset=at.offset + end - start,
            line=at.line + data.count(b"\n", start, end),
            crc=zlib.crc32(memoryview(data)[start:end], at.crc),
        )
        self._offset = end

    def skip_blanks(self) -> None:
        """Pass blank lines, where they are no rows."""
        while True:
            end, more = self._boundaries.after_blanks(self._data, self._offset, self._final)
            self._pass(end)
            if not more:
                return
            self._read_more()

    def _pass_rows(self, rows: int) -> int:
        found = 0
        while found < rows:
            end, got = self._boundaries.after_rows(self._data, self._offset, rows - found, self._final)
            self._pass(end)
            found += got
            if found == rows or self._final:
                break
            self._read_more()
        return found

    def read_row(self) -> bytes:
        """Pass one row and return its bytes; b"" where there is none."""
        while True:
            end, got = self._boundaries.after_rows(self._data, self._offset, 1, self._final)
            if got or self._final:
                row = self._data[self._offset : end]
                self.line_before = self.position.line
                self._pass(end)
                return row
            self._read_more()

    def cut(self, rows: int) -> Piece:
        """Pass at most `rows` rows, and the blank lines after them; return them as a piece."""
        before = self.position
        found = self._pass_rows(rows)
        self.skip_blanks()
        after = self.position
        assert found or after.offset == after.size, f"no row found at {before} and yet it is not the end"
        return Piece(
            path=after.path,
            size=after.size,
            start=before.offset,
            end=after.offset,
            line=before.line,
            rows=found,
            crc_before=before.crc,
            crc_after=after.crc,
        )
