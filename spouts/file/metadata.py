"""What is stored of a batch of file rows: its pieces, and the place in the files where the next batch begins."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from stormline.spouts.file.errors import FileChanged, TooManyFiles
from stormline.topology.errors import CorruptData, shown

VERSION = 1
FILES_READ_MAX = 40_000  # 14 bytes each: 560,000 of the 1,048,576 that ZooKeeper takes
PATHS_BYTES_MAX = 256 * 1024  # of the pieces of one batch
PIECE_BYTES = 48  # what one piece takes at most beside its path


class Position(NamedTuple):
    """A place in a file that is being read.

    `offset` counts bytes (Parquet: rows), `line` is the number of the next line from 1 (Parquet: row), `crc` is
    the CRC-32 of all bytes before `offset` (Parquet: of the footer).
    """

    path: str
    size: int
    mtime_ns: int
    offset: int
    line: int
    crc: int


class Piece(NamedTuple):
    """A range of rows of one file, read by one task.

    `start` and `end` count bytes (Parquet: rows) from 0, `line` is the number of its first line, from 1. The
    CRC-32 of all the file's bytes before it is `crc_before`, with its own bytes `crc_after` (Parquet: the footer's).
    """

    path: str
    size: int
    start: int
    end: int
    line: int
    rows: int
    crc_before: int
    crc_after: int


class FilesRead:
    """Remembers, in 14 bytes each, the files that were read to their end: a hash of the path, and the size."""

    def __init__(self, blob: bytes = b"") -> None:
        if len(blob) % 14:
            raise CorruptData(f"the stored list of files read has {len(blob)} bytes, expected a multiple of 14")
        self._blob = bytearray(blob)
        self._sizes = {blob[i : i + 8]: blob[i + 8 : i + 14] for i in range(0, len(blob), 14)}

    @staticmethod
    def _key(path: str) -> bytes:
        return hashlib.blake2b(path.encode(), digest_size=8).digest()

    def __contains__(self, path: str) -> bool:
        return self._key(path) in self._sizes

    def add(self, files: Iterable[tuple[str, int]]) -> None:
        """Remember each (path, size).

        Raises:
            TooManyFiles: the list would outgrow what a znode holds.
        """
        entries = [(self._key(path), size.to_bytes(6, "big")) for path, size in files]
        self._sizes.update(entries)
        if len(self._sizes) > FILES_READ_MAX:
            raise TooManyFiles(
                f"more than {FILES_READ_MAX} files were read under this topology id; every transaction stores which, "
                "and ZooKeeper takes 1 MB at most: join small files into fewer, or go on with new paths under another "
                "topology id"
            )
        self._blob += b"".join(key + size for key, size in entries)

    def to_bytes(self) -> bytes:
        """Return what the constructor takes."""
        return bytes(self._blob)

    def check(self, path: str, size: int) -> bool:
        """Tell whether the file was read; raise `FileChanged` if it has another size now."""
        stored = self._sizes.get(self._key(path))
        if stored is None:
            return False
        if int.from_bytes(stored, "big") != size:
            raise FileChanged.size(path, int.from_bytes(stored, "big"), size)
        return True


@dataclass(slots=True)
class Progress:
    """How far the files have been read: what the next batch begins with."""

    format: str
    columns_of: str = ""
    columns: list[str] | None = None
    at: Position | None = None
    read: FilesRead = field(default_factory=FilesRead)

    def to_metadata(self, pieces: list[Piece]) -> dict[str, Any]:
        """Return what is stored of the batch that consists of `pieces`; this progress follows it."""
        files: dict[tuple[str, int], int] = {}
        rows = [[files.setdefault((p.path, p.size), len(files)), *p[2:]] for p in pieces]
        return {
            "v": VERSION,
            "format": self.format,
            "columns": None if self.columns is None else [self.columns_of, list(self.columns)],
            "files": [list(file) for file in files],
            "pieces": rows,
            "at": None if self.at is None else list(self.at),
            "read": self.read.to_bytes(),
        }

    @classmethod
    def from_metadata(cls, metadata: Any, format: str) -> Progress:
        """Return the progress after the batch that `metadata` was stored for."""
        if metadata is None:
            return cls(format)
        stored = _checked(metadata, format)
        columns_of, columns = stored["columns"] or ("", None)
        at = stored["at"]
        return cls(
            format,
            columns_of,
            None if columns is None else list(columns),
            None if at is None else Position(*at),
            FilesRead(stored["read"]),
        )


def pieces_of(metadata: Any, format: str, task: int, tasks: int) -> list[Piece]:
    """Return the pieces that task `task` of `tasks` reads: each one is read by one task."""
    stored = _checked(metadata, format)
    files = stored["files"]
    return [Piece(*files[piece[0]], *piece[1:]) for piece in stored["pieces"][task::tasks]]


def columns_of(metadata: Any) -> list[str] | None:
    """Return the names of all columns of the batch's files, where they name them."""
    columns = metadata["columns"]
    return None if columns is None else list(columns[1])


def _checked(metadata: Any, format: str) -> dict[str, Any]:
    if not isinstance(metadata, dict) or metadata.get("v") != VERSION or not metadata.keys() >= _KEYS:
        raise CorruptData(
            f"the stored batch is not one of FileTransactionalSpout, version {VERSION}: {shown(metadata, 200)}"
        )
    if metadata.get("format") != format:
        raise CorruptData(
            f"the stored batches were read with format={shown(metadata.get('format'))}, the spout now has "
            f"format={format!r}; go on with the former, or begin anew under another topology id"
        )
    problem = _problem(**{key: metadata[key] for key in _KEYS})
    if problem:
        raise CorruptData(
            f"the stored batch of a FileTransactionalSpout {problem}, which no FileTransactionalSpout stores; restore "
            "the state from a backup, or begin anew under another topology id"
        )
    return metadata


_KEYS = {"columns", "files", "pieces", "at", "read"}


def _problem(columns: Any, files: Any, pieces: Any, at: Any, read: Any) -> str | None:
    """Say what is wrong with stored metadata: it tells the spout which files to open, and how much of them to read."""
    if columns is not None and not (_is_list(columns, 2) and _are(str, columns[:1]) and _are_texts(columns[1])):
        return f"has the columns {shown(columns)}"
    if type(files) is not list or not all(_is_list(file, 2) and _is_file(*file) for file in files):
        return f"has the files {shown(files)}"
    if type(pieces) is not list or not all(_is_list(piece, 7) and _is_piece(len(files), *piece) for piece in pieces):
        return f"has the pieces {shown(pieces)}"
    if at is not None and not (
        _is_list(at, 6) and _is_file(*at[:2]) and _are(int, at[2:]) and _in_range(at[3:]) and abs(at[2]) < 1 << 63
    ):
        return f"ends at {shown(at)}"
    return None if type(read) is bytes else f"has the files read {shown(read)}"


def _is_list(value: Any, length: int) -> bool:
    return type(value) is list and len(value) == length


def _are(kind: type, values: list[Any]) -> bool:
    return all(type(value) is kind for value in values)


def _in_range(numbers: list[int]) -> bool:
    return min(numbers) >= 0 and max(numbers) < 1 << 63


def _are_texts(values: Any) -> bool:
    return type(values) is list and _are(str, values) and all(map(_is_utf8, values))


def _is_utf8(text: str) -> bool:
    try:
        return bool(text.encode()) or not text
    except UnicodeEncodeError:
        return False


def _is_file(path: Any, size: Any) -> bool:
    if type(path) is not str or path[:1] != "/" or "\0" in path or not _is_utf8(path):
        return False
    return type(size) is int and 0 <= size < 1 << 48


def _is_piece(files: int, file: Any, start: Any, end: Any, line: Any, rows: Any, before: Any, after: Any) -> bool:
    numbers = [file, start, end, line, rows, before, after]
    return _are(int, numbers) and _in_range(numbers) and file < files and start <= end and end - start < 1 << 48
