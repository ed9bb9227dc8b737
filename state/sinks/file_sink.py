"""FileTwoPhaseSink: files that appear when their transaction is committed, by renaming what the executors wrote.

    <directory>/.pending/<label>.open       is being written
    <directory>/.pending/<label>.prepared   is pre-committed: written, closed, and on the disk
    <directory>/<txid>-<task><suffix>       is committed

A file system renames in one atomic step, which is all that the second phase needs.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from stormline.state.errors import InvalidStore, StoreFailed, StoreUnavailable
from stormline.topology.component import Conf
from stormline.topology.context import TopologyContext
from stormline.topology.transaction_label import TransactionLabel
from stormline.topology.tuples import Tuple
from stormline.topology.two_phase_commit import CommitOutcome, PreparedTransaction, TwoPhaseCommitSink

PENDING = ".pending"
OPEN = ".open"
PREPARED = ".prepared"

LineOf = Callable[[Tuple], str]


def json_line(tup: Tuple) -> str:
    """Return the fields of a tuple behind its attempt as one line of JSON."""
    return json.dumps(dict(zip(list(tup.fields)[1:], tup.values[1:], strict=True)), ensure_ascii=False)


@dataclass(slots=True)
class _Writing:
    label: str
    path: Path
    file: IO[str]


class FileTwoPhaseSink(TwoPhaseCommitSink):
    """Writes a file for each transaction and task, which appears at the transaction's commit.

    Readers see whole files only, each once, and in the order of transactions: `000000000017-0004.jsonl` is what task 4
    wrote in transaction 17. The executors write into `.pending` of the directory, and the driver renames: all of them
    must see the same file system. Readers may take files away, but not those of the newest transaction: where neither
    the pending nor the committed file of a decided transaction is there, the topology stops, since its rows are lost.

    Each topology, and each bolt of it, needs a directory of its own, unless their tasks' numbers differ.

    Args:
        directory (str | Path): where the files appear; it is made where there is none.
        suffix (str): the end of their names.
        line_of (LineOf | None): returns the line of a tuple, without the end of line; None: a JSON object of its
            fields, without the attempt.

    Raises:
        InvalidStore: an argument is none of these.
    """

    def __init__(self, directory: str | Path, suffix: str = ".jsonl", line_of: LineOf | None = None) -> None:
        if not isinstance(directory, (str, Path)) or not str(directory):
            raise InvalidStore(f"FileTwoPhaseSink got the directory {directory!r}, expected a path")
        if not isinstance(suffix, str) or "/" in suffix:
            raise InvalidStore(f"FileTwoPhaseSink got the suffix {suffix!r}, expected the end of a file's name")
        self.directory = Path(directory)
        self._suffix = suffix
        self._line_of = line_of or json_line

    def open(self, conf: Conf, context: TopologyContext) -> None:
        """Make the directory.

        Args:
            conf (Conf): not looked at.
            context (TopologyContext): not looked at.
        """
        with _on_disk(self.directory):
            (self.directory / PENDING).mkdir(parents=True, exist_ok=True)

    def begin_transaction(self, label: TransactionLabel) -> Any:
        """Begin a file.

        Args:
            label (TransactionLabel): its name while it is pending.

        Returns:
            the open file.
        """
        path = self._pending(label.text, OPEN)
        with _on_disk(path):
            return _Writing(label.text, path, path.open("x", encoding="utf-8", newline="\n"))

    def invoke(self, transaction: Any, tup: Tuple) -> None:
        """Write a line.

        Args:
            transaction (Any): what `begin_transaction` returned.
            tup (Tuple): what has arrived.
        """
        line = self._line_of(tup)
        with _on_disk(transaction.path):
            transaction.file.write(f"{line}\n")

    def pre_commit(self, transaction: Any) -> Any:
        """Bring the file to the disk.

        Args:
            transaction (Any): what `begin_transaction` returned.

        Returns:
            the label's text, which is the handle.
        """
        with _on_disk(transaction.path):
            transaction.file.flush()
            os.fsync(transaction.file.fileno())
            transaction.file.close()
            transaction.path.rename(self._pending(transaction.label, PREPARED))
            _sync(self.directory / PENDING)
        return transaction.label

    def roll_back(self, transaction: Any) -> None:
        """Remove the file.

        Args:
            transaction (Any): what `begin_transaction` returned.
        """
        with contextlib.suppress(OSError):  # what its buffer still holds may find no room
            transaction.file.close()
        self.abort(transaction.label)

    def commit(self, handle: Any) -> CommitOutcome:
        """Rename the file to what readers look for.

        Args:
            handle (Any): the label's text.

        Returns:
            LOST where neither the pending nor the committed file is there.

        Raises:
            StoreFailed: another file is there already.
        """
        prepared, committed = self._pending(handle, PREPARED), self._committed(handle)
        with _on_disk(prepared):
            known = prepared.exists()
            if not known and not committed.exists():
                return CommitOutcome.LOST
            if known and committed.exists():
                raise StoreFailed(
                    f"{committed} is there already, and was not written by {handle}: another topology, or bolt, writes "
                    "there; give each a directory of its own"
                )
            if known:
                prepared.rename(committed)
            _sync(self.directory)  # also where somebody has renamed it, and died before this
            _sync(self.directory / PENDING)
        return CommitOutcome.DONE if known else CommitOutcome.ALREADY

    def abort(self, handle: Any) -> None:
        """Remove the file.

        Args:
            handle (Any): the label's text.
        """
        for state in (OPEN, PREPARED):
            path = self._pending(handle, state)
            with _on_disk(path):
                path.unlink(missing_ok=True)

    def list_prepared(self, prefix: str) -> Iterable[PreparedTransaction]:
        """Return what is pending, with the age of its last write.

        Args:
            prefix (str): the beginning of the labels.
        """
        found: dict[str, PreparedTransaction] = {}
        with _on_disk(self.directory):
            for path in (self.directory / PENDING).iterdir():
                if path.suffix in (OPEN, PREPARED) and path.name.startswith(prefix):
                    with contextlib.suppress(FileNotFoundError):  # it has ended meanwhile
                        age_secs = max(0.0, time.time() - path.stat().st_mtime)
                        found[path.stem] = PreparedTransaction(path.stem, path.stem, age_secs)
        return list(found.values())

    def _pending(self, label: str, state: str) -> Path:
        return self.directory / PENDING / f"{label}{state}"

    def _committed(self, text: str) -> Path:
        label = TransactionLabel.read(text)
        if label is None:
            raise StoreFailed(f"{text!r} in {self.directory} is no label of a transaction")
        return self.directory / f"{label.txid:012}-{label.task:04}{self._suffix}"


@contextlib.contextmanager
def _on_disk(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StoreUnavailable(f"{path} cannot be reached or written ({error}); it is tried again") from error


def _sync(directory: Path) -> None:
    """Bring names in a directory to the disk."""
    opened = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
