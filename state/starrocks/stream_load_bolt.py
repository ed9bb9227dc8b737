"""StreamLoadBolt and ArrowStreamLoadBolt: what a topology's tuples, or record batches, become in StarRocks' tables."""

from __future__ import annotations

from collections.abc import Sequence

from stormline.bolts.two_phase_commit import TwoPhaseCommitArrowBolt, TwoPhaseCommitBolt
from stormline.state.starrocks.rows import Rows
from stormline.state.starrocks.server import StarRocks
from stormline.state.starrocks.sink import FLUSH_BYTES, StreamLoadSink
from stormline.topology.two_phase_commit import Semantic


class StreamLoadBolt(TwoPhaseCommitBolt):
    """Loads each tuple as a row: on the executors, while batches are processed; visible at their commits, in order.

    Rows wait until they are many, and are then loaded into a transaction of StarRocks'; at the end of the batch it is
    prepared; the driver commits it in its turn. Of several tables each is a transaction of its own: what of one batch
    is in several tables becomes visible table by table.

    Args:
        server (StarRocks): The database.
        table (str): Where all rows go; it must exist.
        table_field (str | None): The field that says where each row goes, in place of `table`.
        fields (Sequence[str] | None): The fields that are written; None: all but the attempt and `table_field`.
        columns (Sequence[str] | None): The columns that they are written into; None: those of the fields' names.
        rows (Rows | None): The format, `CsvRows(…)` or `JsonRows(…)`; None: CSV.
        flush_bytes (int): So many bytes of one table, before compression, are loaded at a time.
        semantic (Semantic): What is promised.

    Raises:
        InvalidStarRocks: Arguments do not go together.
    """

    def __init__(
        self,
        server: StarRocks,
        table: str = "",
        *,
        table_field: str | None = None,
        fields: Sequence[str] | None = None,
        columns: Sequence[str] | None = None,
        rows: Rows | None = None,
        flush_bytes: int = FLUSH_BYTES,
        semantic: Semantic = Semantic.EXACTLY_ONCE,
    ) -> None:
        sink = StreamLoadSink(
            server, table, table_field=table_field, fields=fields, columns=columns, rows=rows, flush_bytes=flush_bytes
        )
        super().__init__(sink, semantic)


class ArrowStreamLoadBolt(TwoPhaseCommitArrowBolt):
    """The `StreamLoadBolt` that takes record batches: a row for each of theirs.

    Args:
        server (StarRocks): As there, and so the others.
        table (str): Where all rows go.
        table_field (str | None): The field that says where each row goes.
        fields (Sequence[str] | None): The fields that are written; None: all but `table_field`.
        columns (Sequence[str] | None): The columns that they are written into.
        rows (Rows | None): The format.
        flush_bytes (int): So many bytes of one table are loaded at a time.
        semantic (Semantic): What is promised.

    Raises:
        InvalidStarRocks: Arguments do not go together.
    """

    def __init__(
        self,
        server: StarRocks,
        table: str = "",
        *,
        table_field: str | None = None,
        fields: Sequence[str] | None = None,
        columns: Sequence[str] | None = None,
        rows: Rows | None = None,
        flush_bytes: int = FLUSH_BYTES,
        semantic: Semantic = Semantic.EXACTLY_ONCE,
    ) -> None:
        sink = StreamLoadSink(
            server, table, table_field=table_field, fields=fields, columns=columns, rows=rows, flush_bytes=flush_bytes
        )
        super().__init__(sink, semantic)
