"""FileLayout: how the coordinator walks through the files of a format."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from stormline.spouts.file.metadata import Piece, Position


class Columns(NamedTuple):
    """The names of the columns of a file."""

    path: str
    columns: list[str]


class Opened(NamedTuple):
    """A file about to be read: where its first row begins, and the names of its columns if it has any."""

    at: Position
    columns: list[str] | None


class FileLayout(Protocol):
    """Cuts files into pieces; keeps nothing between calls, so a `Position` says it all."""

    def begin(self, path: str) -> Opened:
        """Look at a file for the first time; `FileNotFoundError` where it is gone, `UnusableFile`, `BadHeader`."""

    def check(self, at: Position, *, resuming: bool) -> Position:
        """Return `at` if the file is still the same as far as it was read; raise `FileVanished`, `FileChanged`.

        A file whose size and time of change are the same is taken to be the same, except when `resuming`.
        """

    def take(self, at: Position, rows: int, rows_per_piece: int) -> tuple[Position, list[Piece]]:
        """Cut pieces of at most `rows` rows in all from `at` on; return them and the position after them.

        The file is at its end where the position's offset is its end; then no row is left.
        """

    def is_at_end(self, at: Position) -> bool:
        """Return whether no row is left."""
