"""DataFrameTransactionalSpout: cuts a DataFrame with a stable order into transactions."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame

from stormline.runtime.spark.frame_source import Frame, FrameSource
from stormline.spouts.iterator.positioned import PositionedSpout, checked_fields
from stormline.topology.errors import InvalidConfig, InvalidSpout, UnknownField, shown


class DataFrameTransactionalSpout(PositionedSpout):
    """Reads the rows of a DataFrame in the order of some columns; every row is in exactly one batch.

    The columns must tell all rows apart, and new rows must come at the end of the order: an id, or a time and an id. Of
    a batch is stored after which place in the order it begins, where it ends, how many rows it has, and their checksum:
    a restart, with a new session and a DataFrame made anew, goes on after that place, and a replay asks for the rows
    after it once more, and compares. Rows that share a place, a null in one, rows that came in before the last one
    read, rows that changed: each stops the topology with a sentence, before anything of them is committed.

    What is left of the DataFrame is sorted once a run, not once a batch, and its rows come to the driver partition by
    partition; a replay, and the check of the first two batches, each take the first rows after a place, without a sort
    of all. It runs in the driver, in the topology's own Spark.

    Args:
        frame (Frame): A function that makes the DataFrame of a session, as `lambda spark: spark.read.parquet(path)`:
            Spark is started by the run, after the topology is declared. Or a DataFrame, where a session is there.
        order_by (Sequence[str]): Names of the columns that order it, ascending: whole numbers, text, dates, times,
            decimals.
        fields (Sequence[str] | None): Names of the columns to take; None: all, of a DataFrame that is given as such. A
            struct is emitted as a dict. The attempt, which comes before them as "tx", is put there by the spout.
        rows_per_batch (int): Rows of one batch at most; the last one before the end has fewer.
        refresh_secs (float | None): How often to look for new rows once all have been read, in seconds; the DataFrame
            is made anew by its function. None: the run reads what is there when it begins.
        check_read (bool): Whether to count, at each start and each refresh, the rows up to the last one read, which
            must be as many as were read: one pass over the data. Without, rows that come in there later are never read,
            and old ones may be removed.

    Raises:
        InvalidSpout: `frame` is neither a function nor a DataFrame, or `order_by` names no columns.
        UnknownField: the DataFrame has no such column.
        InvalidConfig: `rows_per_batch` or `refresh_secs` is out of range.
        InvalidStream: `fields` are no distinct names, or "tx" is one of them.
    """

    def __init__(
        self,
        frame: Frame,
        order_by: Sequence[str],
        fields: Sequence[str] | None = None,
        rows_per_batch: int = 10_000,
        *,
        refresh_secs: float | None = None,
        check_read: bool = True,
    ) -> None:
        who = "a DataFrameTransactionalSpout"
        is_frame = isinstance(frame, DataFrame)
        if not is_frame and not callable(frame):
            raise InvalidSpout(
                f"frame of {who} is {shown(frame)}, expected a function that makes a DataFrame of a session, such as "
                "lambda spark: spark.read.parquet(path), or a DataFrame of PySpark"
            )
        if isinstance(order_by, str) or not order_by or not all(isinstance(name, str) for name in order_by):
            raise InvalidSpout(
                f"order_by of {who} is {shown(order_by)}, expected a list of columns that tell all rows apart, such as "
                "['time', 'id']: without an order no part of a DataFrame can be given again, so it is not a fit for a "
                "transactional spout"
            )
        if fields is None and not is_frame:
            raise InvalidSpout(f"fields of {who} are left out; name them, since frame is called when Spark runs, later")
        if refresh_secs is not None and (isinstance(refresh_secs, bool) or not 0 < refresh_secs < 1e6):
            raise InvalidConfig(f"refresh_secs is {refresh_secs!r}, expected a number of seconds, more than 0, or None")
        if isinstance(frame, DataFrame):
            for name in (*order_by, *(fields or ())):
                if name not in frame.columns:
                    raise UnknownField.among(name, frame.columns, "the DataFrame")
            fields = frame.columns if fields is None else fields
        assert fields is not None
        super().__init__(checked_fields(who, fields), rows_per_batch)
        self._frame = frame
        self._order_by = tuple(order_by)
        self._refresh_secs = refresh_secs
        self._check_read = check_read

    def source(self) -> FrameSource:
        """Return what reads the DataFrame, for one run."""
        return FrameSource(self._frame, self._order_by, tuple(self._fields), self._refresh_secs, self._check_read)
