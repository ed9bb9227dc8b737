"""PositionedSpout: cuts into batches what can begin anew at a position; what it gives again is compared."""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Generator, Sequence
from typing import Any, NamedTuple, Protocol

from stormline.spouts.checksum import rows_checksum
from stormline.spouts.errors import SourceChanged
from stormline.topology.attempt import TransactionAttempt
from stormline.topology.context import TopologyContext
from stormline.topology.contracts import (
    Collector,
    Conf,
    ITransactionalCoordinator,
    ITransactionalEmitter,
    ITransactionalSpout,
    Metadata,
)
from stormline.topology.errors import CorruptData, FailedException, InvalidConfig, InvalidStream, shown
from stormline.topology.fields import Fields
from stormline.topology.streams import OutputFieldsDeclarer

ATTEMPT_FIELD = "tx"
Position = Metadata
"""Where a source can begin: any value that a tuple can hold, never None."""

Reading = Generator[tuple[Position, list[Any]], None, None]
READ_AGAIN = 2
"""So many batches of each run the emitters read for themselves, though the coordinator has just read them: one that
cannot replay is found at once, and not when something fails."""


class PositionedSource(Protocol):
    """What a spout reads: it begins at a position, and every row has its own."""

    def after(self, start: Position | None, who: str, rows_max: int | None = None) -> Reading:
        """Give each position, and the values of its row, after `start`; None: from the beginning.

        Args:
            start: the position of a row, or None.
            who: the spout, for messages.
            rows_max: how many rows a replay will read; None: the next batches are to be made of them.
        """


class _Range(NamedTuple):
    """What is stored of a batch: the rows after `start`, to that of position `end`; how many, and their checksum."""

    start: Position | None
    end: Position
    rows: int
    checksum: int

    @classmethod
    def from_metadata(cls, metadata: Any) -> _Range:
        if type(metadata) is list and len(metadata) == 4:
            found = cls(*metadata)
            if type(found.rows) is int and type(found.checksum) is int and found.rows > 0 and found.end is not None:
                return found
        raise CorruptData(
            f"stored metadata of a spout of positions is {shown(metadata)}, expected [start, end, rows, "
            "checksum]; restore the state from a backup, or begin anew under another topology id"
        )


class _Planned:
    """Rows that the coordinator has read, for the emitters, by transaction and task; each is taken once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._rows: dict[tuple[int, int], tuple[Metadata, list[list[Any]]]] = {}

    def put(self, txid: int, metadata: Metadata, rows: list[list[Any]], tasks: int) -> None:
        with self._lock:
            for task in range(tasks):
                self._rows[txid, task] = (metadata, rows[task::tasks])

    def take(self, txid: int, task: int, metadata: Metadata) -> list[list[Any]] | None:
        with self._lock:
            stored, rows = self._rows.pop((txid, task), (None, None))
        return rows if stored == metadata else None

    def forget(self, until: int | None = None) -> None:
        with self._lock:
            self._rows = {} if until is None else {key: kept for key, kept in self._rows.items() if key[0] > until}


class _Coordinator(ITransactionalCoordinator):
    """Reads the rows of each batch, once, in the driver."""

    def __init__(self, spout: PositionedSpout, who: str, tasks: int) -> None:
        self._spout = spout
        self._source = spout.source()
        self._who = who
        self._tasks = tasks
        self._stored: Metadata = None
        self._at: Position | None = None
        self._reading: Reading | None = None
        self._next: tuple[Position, list[Any]] | None = None
        self._read_again = READ_AGAIN

    def resume(self, prev_metadata: Metadata) -> None:
        """Go on after the batch that was stored last."""
        self._go_on_after(prev_metadata)

    def is_ready(self) -> bool:
        """Return whether there is one more row."""
        if self._next is not None:
            return True
        begun = self._reading is None
        self._next = self._read()
        if self._next is None and not begun:  # it has ended before, and more may have come since
            self._next = self._read()
        return self._next is not None

    def initialize_transaction(self, txid: int, prev_metadata: Metadata) -> Metadata:
        """Return the range of the next rows.

        Raises:
            FailedException: there is none, or the source says so.
        """
        if prev_metadata != self._stored:
            self._go_on_after(prev_metadata)
        start = self._at
        rows: list[list[Any]] = []
        try:
            while len(rows) < self._spout._rows_per_batch and self.is_ready():
                assert self._next is not None
                self._at, values = self._next
                self._next = None
                rows.append(values)
        except FailedException:
            self._reading = None
            if not rows:
                raise  # else the batch ends with what there is
        except BaseException:
            self._go_on_after(prev_metadata)  # what was read is stored nowhere
            raise
        if not rows:
            raise FailedException(f"transaction {txid}: {self._who} has no more rows now")
        self._stored = [start, self._at, len(rows), rows_checksum(rows)]
        if self._read_again:
            self._read_again -= 1
        else:
            self._spout._planned.put(txid, self._stored, rows, self._tasks)
        return self._stored

    def close(self) -> None:
        """Let the source end: a generator's `finally` runs."""
        self._end_reading()
        self._spout._planned.forget()

    def _read(self) -> tuple[Position, list[Any]] | None:
        try:
            if self._reading is None:
                self._reading = self._source.after(self._at, self._who)
            found = next(self._reading, None)
        except BaseException:
            self._reading = None
            raise
        if found is None:
            self._reading = None
        return found

    def _go_on_after(self, metadata: Metadata) -> None:
        self._end_reading()
        self._stored = metadata
        self._at = None if metadata is None else _Range.from_metadata(metadata).end
        self._next = None

    def _end_reading(self) -> None:
        reading, self._reading = self._reading, None
        if reading is not None:
            reading.close()


class _Emitter(ITransactionalEmitter):
    """Emits every t-th row of each batch: those that the coordinator has read, or as the source gives them again."""

    def __init__(self, spout: PositionedSpout, who: str, task: int, tasks: int) -> None:
        self._spout = spout
        self._source = spout.source()
        self._who = who
        self._task = task
        self._tasks = tasks

    def emit_batch(self, attempt: TransactionAttempt, metadata: Metadata, collector: Collector) -> None:
        rows = self._spout._planned.take(attempt.transaction_id, self._task, metadata)
        if rows is None:
            rows = self._read(_Range.from_metadata(metadata))[self._task :: self._tasks]
        collector.emit_all([[attempt, *values] for values in rows])

    def cleanup_before(self, txid: int) -> None:
        self._spout._planned.forget(txid)

    def _read(self, stored: _Range) -> list[list[Any]]:
        reading = self._source.after(stored.start, self._who, stored.rows)
        rows: list[list[Any]] = []
        end: Position | None = stored.start
        try:
            for position, values in reading:
                rows.append(values)
                end = position
                if len(rows) == stored.rows:
                    break
        finally:
            reading.close()
        if len(rows) < stored.rows:
            raise SourceChanged.shrank(self._who, shown(stored.start), stored.rows, len(rows))
        if end != stored.end or rows_checksum(rows) != stored.checksum:
            raise SourceChanged.other_rows(self._who, shown(stored.start), stored.rows)
        return rows


class PositionedSpout(ITransactionalSpout):
    """Reads in the driver, in the coordinator's thread; task i of t emits the rows i, i + t, … of each batch.

    Args:
        fields (Fields): Names of the fields, checked.
        rows_per_batch (int): Rows of one batch at most.

    Raises:
        InvalidConfig: `rows_per_batch` is no whole number of at least 1.
    """

    def __init__(self, fields: Fields, rows_per_batch: int) -> None:
        if not isinstance(rows_per_batch, int) or isinstance(rows_per_batch, bool) or rows_per_batch < 1:
            raise InvalidConfig(f"rows_per_batch is {rows_per_batch!r}, expected a whole number of at least 1")
        self._fields = fields
        self._rows_per_batch = rows_per_batch
        self._planned = _Planned()

    @abstractmethod
    def source(self) -> PositionedSource:
        """Return what the coordinator, or an emitter, reads in its thread."""

    def get_coordinator(self, conf: Conf, context: TopologyContext) -> ITransactionalCoordinator:
        """Return the coordinator, which reads."""
        tasks = len(context.component_tasks(context.this_component_id))
        return _Coordinator(self, f"spout {context.this_component_id!r}", tasks)

    def get_emitter(self, conf: Conf, context: TopologyContext) -> ITransactionalEmitter:
        """Return the emitter of one task."""
        tasks = len(context.component_tasks(context.this_component_id))
        return _Emitter(self, f"spout {context.this_component_id!r}", context.this_task_index, tasks)

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """Declare the attempt and `fields`."""
        declarer.declare(Fields(ATTEMPT_FIELD, *self._fields))


def checked_fields(who: str, fields: Sequence[str]) -> Fields:
    """Return the names of the fields that a ready spout emits after the attempt.

    Raises:
        InvalidStream: they are no distinct names, or one is the attempt's.
    """
    if isinstance(fields, str):
        raise InvalidStream(f"fields of {who} is the text {fields!r}, expected [{fields!r}]")
    names = Fields(*fields)
    if ATTEMPT_FIELD in names or not len(names):
        raise InvalidStream(
            f"fields of {who} are {names.to_list()}, expected at least one; the spout itself puts {ATTEMPT_FIELD!r}, "
            "the attempt, first: leave it out"
        )
    return names
