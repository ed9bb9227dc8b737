"""Data sources as strangers write them: a log on disk, a simple one, one of record batches, and some that are wrong."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pyspark.sql import Row
from pyspark.sql.datasource import (
    DataSource,
    DataSourceStreamReader,
    InputPartition,
    SimpleDataSourceStreamReader,
)
from pyspark.sql.types import StructType

LINES_MAX = 7
"""Lines of one batch."""


class Lines(InputPartition):
    """A range of lines of the log."""

    def __init__(self, start: int, end: int) -> None:
        self.start, self.end = start, end


class Log:
    """The lines of a file, each a number; what is committed is written beside it."""

    def __init__(self, path: str) -> None:
        self.path = Path(path)

    def lines(self) -> list[str]:
        return self.path.read_text().split() if self.path.exists() else []

    def committed(self, end: dict[str, Any]) -> None:
        self.path.with_suffix(".committed").write_text(str(end["line"]))


class LogReader(DataSourceStreamReader):
    """Cuts a batch into partitions of two lines."""

    def __init__(self, options: Any) -> None:
        self.log = Log(options["PATH"])  # Spark's options know no case
        self.columnar = options.get("columnar") == "true"
        self.stopped = self.log.path.with_suffix(".stopped")

    def initialOffset(self) -> dict[str, Any]:
        return {"line": 0}

    def latestOffset(self, start: dict[str, Any], limit: Any) -> dict[str, Any]:
        return {"line": min(len(self.log.lines()), start["line"] + LINES_MAX)}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[Lines]:
        return [Lines(at, min(at + 2, end["line"])) for at in range(start["line"], end["line"], 2)]

    def read(self, partition: Lines) -> Iterator[Any]:  # type: ignore[override]
        rows = [(int(line), f"line {line}") for line in self.log.lines()[partition.start : partition.end]]
        if self.columnar:
            import pyarrow as pa

            yield pa.RecordBatch.from_pydict({"n": [n for n, _ in rows], "text": [text for _, text in rows]})
            return
        for n, text in rows:
            yield (n, text) if n % 2 else Row(n=n, text=text)

    def commit(self, end: dict[str, Any]) -> None:
        self.log.committed(end)

    def stop(self) -> None:
        self.stopped.touch()


class LogSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return "log"

    def schema(self) -> str:
        return "n BIGINT NOT NULL, text STRING COMMENT 'as it stands'"

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        return LogReader(self.options)


class OldReader(LogReader):
    """As PySpark 4.1 knows them: all that there is is a batch."""

    def latestOffset(self) -> dict[str, Any]:  # type: ignore[override]
        return {"line": len(self.log.lines())}


class OldSource(LogSource):
    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        return OldReader(self.options)


class SimpleReader(SimpleDataSourceStreamReader):
    def __init__(self, options: Any) -> None:
        self.log = Log(options["path"])

    def initialOffset(self) -> dict[str, Any]:
        return {"line": 0}

    def read(self, start: dict[str, Any]) -> Any:
        end = {"line": min(len(self.log.lines()), start["line"] + LINES_MAX)}
        return self.readBetweenOffsets(start, end), end

    def readBetweenOffsets(self, start: dict[str, Any], end: dict[str, Any]) -> Iterator[Any]:
        return ((int(line), f"line {line}") for line in self.log.lines()[start["line"] : end["line"]])

    def commit(self, end: dict[str, Any]) -> None:
        self.log.committed(end)


class SimpleSource(LogSource):
    streamReader = DataSource.streamReader  # it has none

    def simpleStreamReader(self, schema: StructType) -> SimpleDataSourceStreamReader:
        return SimpleReader(self.options)
