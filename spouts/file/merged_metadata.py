"""What is stored of a batch of rows of files that are read side by side, and of how far each has been read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from stormline.spouts.file.metadata import (
    VERSION,
    FilesRead,
    Piece,
    Position,
    checked,
    is_position,
    problem_of_files,
)
from stormline.spouts.file.order_key import FIRST, Key, is_stored_key, key_of, stored_key
from stormline.spouts.file.stored_checks import is_list, is_piece
from stormline.topology.errors import shown

_ORDINALS_BYTES_MAX = 1 << 12


class OpenFile(NamedTuple):
    """How far a file was read: all rows before `position` were taken, and after it the `ahead`-th, from 0.

    `before` is the time of the last row before that place, `newest` the latest of all that were taken.
    """

    position: Position
    ahead: tuple[int, ...] = ()
    before: Key = FIRST
    newest: Key = FIRST


class MergedPiece(NamedTuple):
    """A batch's rows of one file: those of `piece`, counted from 0, but what came before it and what comes after.

    `before` is the time of the last row before the piece.
    """

    piece: Piece
    taken_before: tuple[int, ...] = ()
    left: tuple[int, ...] = ()
    before: Key = FIRST


@dataclass(slots=True)
class MergedProgress:
    """How far the files have been read: what the next batch begins with."""

    format: str
    order_by: str
    columns_of: str = ""
    columns: list[str] | None = None
    open: list[OpenFile] = field(default_factory=list)
    newest: Key = FIRST
    read: FilesRead = field(default_factory=FilesRead)

    def to_metadata(self, pieces: Sequence[MergedPiece]) -> dict[str, Any]:
        """Return what is stored of the batch that consists of `pieces`; this progress follows it."""
        files: dict[tuple[str, int], int] = {}
        rows = [
            [files.setdefault((p.path, p.size), len(files)), *p[2:], to_bits(skip), to_bits(left), stored_key(before)]
            for p, skip, left, before in pieces
        ]
        begun = [
            [
                files.setdefault((at.path, at.size), len(files)),
                *at[2:],
                to_bits(ahead),
                stored_key(before),
                stored_key(new),
            ]
            for at, ahead, before, new in self.open
        ]
        return {
            "v": VERSION,
            "format": self.format,
            "order_by": self.order_by,
            "columns": None if self.columns is None else [self.columns_of, list(self.columns)],
            "files": [list(file) for file in files],
            "pieces": rows,
            "open": begun,
            "newest": stored_key(self.newest),
            "read": self.read.to_bytes(),
        }

    @classmethod
    def from_metadata(cls, metadata: Any, format: str, order_by: str) -> MergedProgress:
        """Return the progress after the batch that `metadata` was stored for."""
        if metadata is None:
            return cls(format, order_by)
        stored = checked(metadata, format, order_by, _KEYS, _problem)
        columns_of, columns = stored["columns"] or ("", None)
        files = stored["files"]
        return cls(
            format,
            order_by,
            columns_of,
            None if columns is None else list(columns),
            [
                OpenFile(Position(*files[at[0]], *at[1:5]), from_bits(at[5]), key_of(at[6]), key_of(at[7]))
                for at in stored["open"]
            ],
            key_of(stored["newest"]),
            FilesRead(stored["read"]),
        )


def merged_pieces_of(metadata: Any, format: str, order_by: str) -> list[MergedPiece]:
    """Return a batch's rows, file by file, in the order of the files' paths."""
    stored = checked(metadata, format, order_by, _KEYS, _problem)
    files = stored["files"]
    return [
        MergedPiece(Piece(*files[piece[0]], *piece[1:7]), from_bits(piece[7]), from_bits(piece[8]), key_of(piece[9]))
        for piece in stored["pieces"]
    ]


def to_bits(ordinals: Sequence[int]) -> bytes:
    """Return ascending numbers as the first one, eight bytes, and a bit for each number from there on."""
    if not ordinals:
        return b""
    first = ordinals[0]
    bits = sum(1 << (ordinal - first) for ordinal in ordinals)
    return first.to_bytes(8, "big") + bits.to_bytes((bits.bit_length() + 7) // 8, "little")


def from_bits(stored: bytes) -> tuple[int, ...]:
    """Return the numbers again."""
    first, bits = int.from_bytes(stored[:8], "big"), int.from_bytes(stored[8:], "little")
    return tuple(first + bit for bit in range(bits.bit_length()) if bits >> bit & 1)


_KEYS = {"columns", "files", "pieces", "open", "newest", "read"}


def _problem(columns: Any, files: Any, pieces: Any, open: Any, newest: Any, read: Any) -> str | None:
    problem = problem_of_files(columns, files)
    if problem:
        return problem
    if type(pieces) is not list or not all(is_list(piece, 10) and _is_piece(len(files), *piece) for piece in pieces):
        return f"has the pieces {shown(pieces)}"
    if type(open) is not list or not all(is_list(at, 8) and _is_open(files, *at) for at in open):
        return f"ends at {shown(open)}"
    if not is_stored_key(newest):
        return f"has the newest time {shown(newest)}"
    return None if type(read) is bytes else f"has the files read {shown(read)}"


def _is_piece(files: int, *piece: Any) -> bool:
    if not is_piece(files, *piece[:7]) or not is_stored_key(piece[9]):
        return False
    return all(_are_ordinals(stored, piece[4]) for stored in piece[7:9])


def _is_open(files: list[Any], file: Any, *at: Any) -> bool:
    if type(file) is not int or not 0 <= file < len(files) or not is_position([*files[file], *at[:4]]):
        return False
    return _are_ordinals(at[4], 1 << 62) and is_stored_key(at[5]) and is_stored_key(at[6])


def _are_ordinals(stored: Any, stop: int) -> bool:
    if type(stored) is not bytes or not (stored == b"" or 9 <= len(stored) <= 8 + _ORDINALS_BYTES_MAX):
        return False
    return not stored or int.from_bytes(stored[:8], "big") + 8 * len(stored) - 72 < stop
