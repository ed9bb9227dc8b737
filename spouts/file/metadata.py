"""What is stored of a batch of file rows: its pieces, and the place in the files where the next batch begins."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from stormline.spouts.file.errors import FileChanged, TooManyFiles
from stormline.spouts.file.stored_checks import are, are_texts, in_range, is_file, is_list, is_piece
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
        """Return whether the file was read; raise `FileChanged` if it has another size now."""
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


def checked(
    metadata: Any, format: str, order_by: str | None, keys: Collection[str], problem: Callable[..., str | None]
) -> dict[str, Any]:
    """Return stored metadata, if it is that of a spout of this format and order; `problem` looks at the `keys`.

    Raises:
        CorruptData: it is not.
    """
    ours = isinstance(metadata, dict) and metadata.get("v") == VERSION
    if ours and metadata.get("order_by") != order_by:
        raise CorruptData(
            f"the stored batches were read with order_by={shown(metadata.get('order_by'))}, the spout now has "
            f"order_by={order_by!r}; go on with the former, or begin anew under another topology id"
        )
    if not ours or not metadata.keys() >= set(keys):
        raise CorruptData(
            f"the stored batch is not one of FileTransactionalSpout, version {VERSION}: {shown(metadata, 200)}"
        )
    if metadata.get("format") != format:
        raise CorruptData(
            f"the stored batches were read with format={shown(metadata.get('format'))}, the spout now has "
            f"format={format!r}; go on with the former, or begin anew under another topology id"
        )
    found = problem(**{key: metadata[key] for key in keys})
    if found:
        raise CorruptData(
            f"the stored batch of a FileTransactionalSpout {found}, which no FileTransactionalSpout stores; restore "
            "the state from a backup, or begin anew under another topology id"
        )
    return dict(metadata)


def _checked(metadata: Any, format: str) -> dict[str, Any]:
    return checked(metadata, format, None, _KEYS, _problem)


_KEYS = {"columns", "files", "pieces", "at", "read"}


def problem_of_files(columns: Any, files: Any) -> str | None:
    """Say what is wrong with the columns, or the files, of a stored batch."""
    if columns is not None and not (is_list(columns, 2) and are(str, columns[:1]) and are_texts(columns[1])):
        return f"has the columns {shown(columns)}"
    if type(files) is not list or not all(is_list(file, 2) and is_file(*file) for file in files):
        return f"has the files {shown(files)}"
    return None


def is_position(at: list[Any]) -> bool:
    """Return whether the six values can be a `Position`."""
    return is_file(*at[:2]) and are(int, at[2:]) and in_range(at[3:]) and abs(at[2]) < 1 << 63


def _problem(columns: Any, files: Any, pieces: Any, at: Any, read: Any) -> str | None:
    problem = problem_of_files(columns, files)
    if problem:
        return problem
    if type(pieces) is not list or not all(is_list(piece, 7) and is_piece(len(files), *piece) for piece in pieces):
        return f"has the pieces {shown(pieces)}"
    if at is not None and not (is_list(at, 6) and is_position(at)):
        return f"ends at {shown(at)}"
    return None if type(read) is bytes else f"has the files read {shown(read)}"
