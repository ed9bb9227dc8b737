"""What can be wrong with the files of a `FileTransactionalSpout`."""

from __future__ import annotations

import socket

from stormline.topology.errors import DeclarationError, StormlineError


class InvalidFileSpout(DeclarationError):
    """A `FileTransactionalSpout` was declared with arguments that do not go together."""


class FileMissing(StormlineError, FileNotFoundError):
    """A file that the spout was told to read is not there at the start."""

    @classmethod
    def at(cls, path: str) -> FileMissing:
        """Return the error for a path without wildcards that leads nowhere.

        Args:
            path (str): the path.
        """
        return cls(
            f"file {path!r} does not exist on {socket.gethostname()}; the driver and every executor read the files, "
            "so put it under this path on all of them, or correct the paths given to FileTransactionalSpout"
        )


class FileVanished(StormlineError, FileNotFoundError):
    """A file is gone although batches that are stored were, or will be, read from it."""

    @classmethod
    def at(cls, path: str, size: int) -> FileVanished:
        """Return the error for a file that is gone.

        Args:
            path (str): its path.
            size (int): bytes that it had.
        """
        return cls(
            f"file {path!r} does not exist on {socket.gethostname()}; the stored state has it with {size} bytes and "
            "needs it to give the same batches again; put the same file back (under this path on the driver and "
            "every executor), or begin anew under another topology id"
        )


class FileChanged(StormlineError, ValueError):
    """A file is no longer the one that the stored batches were read from."""

    REMEDY = (
        "a file must not change once reading has begun: put the file back as it was, add new rows as new files "
        "(written under another name and renamed when complete), or begin anew under another topology id"
    )

    @classmethod
    def size(cls, path: str, stored: int, found: int) -> FileChanged:
        """Return the error for a file that grew or shrank.

        Args:
            path (str): its path.
            stored (int): bytes that it had.
            found (int): bytes that it has now.
        """
        verb = "grew" if found > stored else "shrank"
        return cls(f"file {path!r} {verb}: the stored state has it with {stored} bytes, found {found}; {cls.REMEDY}")

    @classmethod
    def content(cls, path: str, what: str, stored: int, found: int) -> FileChanged:
        """Return the error for bytes that are not what they were.

        Args:
            path (str): path of the file.
            what (str): which part of it.
            stored (int): the checksum that the part had.
            found (int): the checksum that it has now.
        """
        return cls(
            f"file {path!r} has other content than when it was first read: {what} had the checksum {stored:08x}, "
            f"found {found:08x}; {cls.REMEDY}"
        )


class UnusableFile(StormlineError, ValueError):
    """A path that is no file of rows: a directory, a compressed file, a broken one."""


class TooManyFiles(StormlineError):
    """More files were read to their end, or are being read side by side, than the state can remember."""


class BadHeader(StormlineError, ValueError):
    """The first row of a CSV file does not give the field names needed."""


class BadLine(StormlineError, ValueError):
    """A row that cannot be read; the message names file and line."""

    @classmethod
    def at(cls, path: str, line: int, problem: str) -> BadLine:
        """Return the error for a row.

        Args:
            path (str): path of the file.
            line (int): number of the line in which the row begins, from 1.
            problem (str): what is wrong with it.
        """
        return cls(
            f"{path}:{line}: {problem}; pass on_bad_line='skip' to FileTransactionalSpout to count, log and leave out "
            "such rows, or correct the file before the first run"
        )


class LateRow(StormlineError, ValueError):
    """A row stands too far behind the one that it should come before."""

    @classmethod
    def at(cls, path: str, line: int, order_by: str, order_window: int) -> LateRow:
        """Return the error for a row.

        Args:
            path (str): path of the file.
            line (int): number of the line in which the row begins, from 1.
            order_by (str): name of the field that rows are ordered by.
            order_window (int): rows that a row may stand behind its place.
        """
        return cls(
            f"{path}:{line}: the row's {order_by!r} is earlier than that of a row which stands more than "
            f"order_window={order_window} rows before it and was taken already; pass a larger order_window to "
            "FileTransactionalSpout, or on_late_row='keep' to emit such rows late, counted and logged"
        )


class MixedOrder(StormlineError, TypeError):
    """The values of the field to order by cannot be compared with each other."""

    @classmethod
    def of(cls, order_by: str, kind: str, first: str, got: str, at: str) -> MixedOrder:
        """Return the error for a row of another kind than the first one.

        Args:
            order_by (str): name of the field that rows are ordered by.
            kind (str): type of its value in the first row.
            first (str): where the first row is.
            got (str): type of its value in this row.
            at (str): where this row is.
        """
        return cls(
            f"{at}: {order_by!r} is a {got}, but a {kind} at {first}: rows cannot be ordered by both; convert the "
            "files, or pass types={…} to FileTransactionalSpout that makes one kind of both"
        )
