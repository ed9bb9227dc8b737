"""IteratorTransactionalSpout: rows of any Python source that can begin anew at a position."""

from __future__ import annotations

from collections.abc import Sequence

from stormline.spouts.iterator.positioned import PositionedSpout, checked_fields
from stormline.spouts.iterator.source import ReplayableSource, Source


class IteratorTransactionalSpout(PositionedSpout):
    """Serves the rows of any Python source that can begin anew at a position; every row is in exactly one batch.

    A source is a function `source(start)` that gives `(position, row)` after `(position, row)`. The position is any
    value that a tuple can hold (an offset, an id, a time and an id), and `source(position)` begins with the row after
    it; None: with the first one. It ends when there is nothing more now, and does not wait. Or it is a list, or what
    has a length and rows by numbers like one. The same start must give the same rows, today and after a restart; more
    may come at the end, and are read then.

    What is stored of a batch is where it begins and ends, how many rows it has, and their checksum. A source that gives
    others in a replay stops the topology, before anything of them is committed. The first two batches of each run are
    read twice for that, so one that cannot replay is found at once. One that raises `FailedException` is asked again
    later, from where it was; what else it raises stops the topology with its traceback, resumable.

    It runs in the driver process, so lambdas, connections and modules' state may be used: batches are read in one
    thread, replays in that of an emitter. With t tasks, task i emits the rows i, i + t, … of each batch.

    Args:
        source (ReplayableSource): The source. A row is a list or tuple of values for `fields`, or a single value.
        fields (Sequence[str]): Names of the fields; the attempt, which comes before them as "tx", is put there by the
            spout.
        rows_per_batch (int): Rows of one batch at most; one has fewer where the source has no more just then.

    Raises:
        CannotReplay: the source can give each row only once: a generator object, an iterator, an open file.
        InvalidComponent: `source` is none.
        InvalidConfig: `rows_per_batch` is no whole number of at least 1.
        InvalidStream: `fields` are no distinct names, or "tx" is one of them.
    """

    def __init__(self, source: ReplayableSource, fields: Sequence[str], rows_per_batch: int = 1000) -> None:
        names = checked_fields("an IteratorTransactionalSpout", fields)
        self._source = Source(source, len(names))
        super().__init__(names, rows_per_batch)

    def source(self) -> Source:
        """Return the source, one for all: so an iterator that it gives twice is found out."""
        return self._source
