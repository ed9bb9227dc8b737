"""FileTransactionalSpout: the rows of files, each in exactly one batch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from stormline.spouts.file.coordinator import FileCoordinator
from stormline.spouts.file.emitter import FileEmitter
from stormline.spouts.file.errors import FileMissing
from stormline.spouts.file.formats import layout_of, ranges_of
from stormline.spouts.file.header import check_columns
from stormline.spouts.file.layout import Columns
from stormline.spouts.file.listing import list_files
from stormline.spouts.file.merging_coordinator import MergingCoordinator
from stormline.spouts.file.merging_emitter import MergingEmitter
from stormline.spouts.file.settings import FileSettings, Paths
from stormline.topology.context import TopologyContext
from stormline.topology.contracts import Conf, ITransactionalSpout
from stormline.topology.fields import Fields
from stormline.topology.streams import OutputFieldsDeclarer


class FileTransactionalSpout(ITransactionalSpout):
    """Reads CSV, JSON Lines, text or Parquet files; every row is in exactly one batch, the same after any restart.

    Emits (attempt, *fields); as record batches where only bolts that take those listen, and the format is CSV or
    Parquet. The driver plans each batch as ranges of the files and stores them with checksums; the
    tasks read a batch's ranges in parallel. Files must not change once reading has begun, which is checked at every
    reading; new files are picked up while the topology runs, so write them under another name (or one that
    begins with a dot) and rename them when complete. A file that has been read to its end may go, unless its last
    batch is not committed yet, but none of the same name may come in its place: one of another size is refused, one of
    the same size is taken for the old. Symbolic links are followed: a file is known by its real path, and read once
    whatever leads to it. A link may go when its file was read, but one that is given as a path must be there at every
    start. The driver and every executor must see the files under the same real paths.

    Args:
        paths (Paths): One path or several, relative to the current directory of the driver; globs, with `**` too, may
            match nothing yet. `glob.escape` takes the meaning from `*`, `?` and `[` in a name. At most 40,000 files.
        fields (Sequence[str] | None): CSV and Parquet: the columns to take, in this order; None: all columns of the
            first file, which must then exist when the topology is declared. JSON Lines: the keys to take. Text: a name
            for the one field, which is "line" otherwise.
        format (str): "csv" (values are text, "" where empty; blank lines are no rows), "jsonl" (blank lines are no
            rows), "text" (every line is a row) or "parquet" (needs `stormline[parquet]`). Lines end with \\n or \\r\\n.
            Compressed files will not do (Parquet's own compression does): no part of one can be read alone.
        rows_per_batch (int): Rows of one batch; only the last batch before the end of the data has fewer.
        on_bad_line (str): "error": a row that cannot be read stops the topology, naming file and line. "skip": such
            rows are counted, logged and left out; a batch then has fewer rows.
        encoding (str): Of the files of lines; one in which ASCII characters are single bytes. A byte order mark is left
            out.
        delimiter (str): CSV: what separates values.
        header (bool): CSV: whether the first row of each file names its columns; it must be the same in all files.
            Without, `fields` names all columns.
        types (Mapping[str, Callable[[str], Any]] | None): CSV: for some fields, what makes a value of the text, as
            {"distance": float}; what it raises makes the row a bad one. It must give the same value for the same text
            every time.
        defaults (Mapping[str, Any] | None): JSON Lines: for some fields, the value where the key is missing. Elsewhere
            that is a bad row.
        order_by (str | None): CSV and JSON Lines: one of the fields, a time. All files are then read side by side, and
            their rows come in the order of this field, across files and batches; rows of the same time in the order of
            their files' paths. A time is a number, a `datetime`, or text: a number, or ISO 8601 (without a time zone:
            UTC). A row without one (None or "") goes with the row before it in its file. A batch is emitted by one
            task, in order; with several tasks the batches take turns. The driver reads all rows, too, to plan (some
            200,000 a second). A file that appears later joins the others; what it has of times that are past comes
            next, and a warning names it. Emitted as rows in any case.
        order_window (int): How many rows a row may stand behind its place in its own file, at most 10,000: so many rows
            of each file, beside the next, are looked at for the earliest. 0: each file is in order.
        on_late_row (str): "error": a row that stands further behind stops the topology, naming file and line. "keep":
            such rows are emitted when they are met, ordered within their batch, counted and logged.

    Raises:
        InvalidFileSpout, UnknownField, MissingExtra: the arguments do not go together.
    """

    emits_on_executors = True

    def __init__(
        self,
        paths: Paths,
        fields: Sequence[str] | None = None,
        format: str = "csv",
        rows_per_batch: int = 10_000,
        on_bad_line: str = "error",
        *,
        encoding: str = "utf-8",
        delimiter: str = ",",
        header: bool = True,
        types: Mapping[str, Callable[[str], Any]] | None = None,
        defaults: Mapping[str, Any] | None = None,
        order_by: str | None = None,
        order_window: int = 0,
        on_late_row: str = "error",
    ) -> None:
        self._settings = FileSettings.checked(
            paths=paths,
            format=format,
            fields=fields,
            rows_per_batch=rows_per_batch,
            on_bad_line=on_bad_line,
            encoding=encoding,
            delimiter=delimiter,
            header=header,
            types=types,
            defaults=defaults,
            order_by=order_by,
            order_window=order_window,
            on_late_row=on_late_row,
        )
        self._declared: Columns | None = None

    def __repr__(self) -> str:
        settings = self._settings
        paths = ", ".join(map(repr, settings.paths))
        return f"{type(self).__name__}([{paths}], format={settings.format!r})"

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """Declare (attempt, *fields); without `fields` the first file is asked for its columns.

        Raises:
            FileMissing: there is no file to ask.
            BadHeader, UnusableFile: the first file has no usable columns.
        """
        fields: Sequence[str] | None = self._settings.fields
        if fields is None:
            self._declared = self._columns_of_first_file()
            fields = self._declared.columns
        declarer.declare(Fields("attempt", *fields))

    def _columns_of_first_file(self) -> Columns:
        settings = self._settings
        listing = list_files(settings.paths)
        for path in listing.missing:
            raise FileMissing.at(path)
        layout = layout_of(settings)
        for path, size in sorted(listing.sizes.items()):
            columns = layout.begin(path).columns if size else None
            if columns is not None:
                check_columns(columns, path, settings)
                return Columns(path, columns)
        raise FileMissing(
            f"no file with a header matches {list(settings.paths)} yet, so the fields are not known; name them with "
            "fields=[…], or begin when the first file is there"
        )

    def get_coordinator(self, conf: Conf, context: TopologyContext) -> FileCoordinator | MergingCoordinator:
        """Return the coordinator; it cuts batches for as many tasks as the spout has."""
        settings = self._settings
        if settings.order_by is not None:
            return MergingCoordinator(settings, ranges_of(settings), self._declared)
        tasks = len(context.component_tasks(context.this_component_id))
        return FileCoordinator(settings, layout_of(settings), tasks, self._declared)

    def get_emitter(self, conf: Conf, context: TopologyContext) -> FileEmitter | MergingEmitter:
        """Return the emitter of one task."""
        settings, task = self._settings, context.this_task_index
        tasks = len(context.component_tasks(context.this_component_id))
        if settings.order_by is not None:
            return MergingEmitter(settings, task, tasks)
        return FileEmitter(settings, task, tasks, context.targets_are_columnar())
