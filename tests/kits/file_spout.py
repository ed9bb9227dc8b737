"""A hand-driven FileTransactionalSpout: coordinator and emitters without a topology around them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import msgpack

from stormline.runtime.tuples.columns import Columns
from stormline.spouts.file import FileTransactionalSpout
from stormline.topology.attempt import TransactionAttempt
from stormline.topology.context import TopologyContext
from stormline.topology.contracts import Collector
from stormline.topology.fields import Fields
from stormline.topology.grouping import DEFAULT_STREAM, GlobalStreamId, Grouping
from stormline.topology.streams import OutputFieldsDeclarer

ATTEMPT = TransactionAttempt(1, 1)


class FakeContext:
    """A task of a spout that has nothing but tasks."""

    topology_id = "t"
    epoch = 1
    this_component_id = "files"
    this_sources: Mapping[GlobalStreamId, Grouping] = {}
    this_targets: Mapping[str, Mapping[str, Grouping]] = {}

    def __init__(self, tasks: int = 1, index: int = 0, columnar: bool = False) -> None:
        self._tasks = tasks
        self._columnar = columnar
        self.this_task_index = index
        self.this_task_id = index + 1

    def targets_are_columnar(self, stream: str = DEFAULT_STREAM) -> bool:
        return self._columnar

    def component_tasks(self, component: str) -> Sequence[int]:
        assert component == self.this_component_id
        return range(1, self._tasks + 1)

    def component_output_fields(self, component: str, stream: str = DEFAULT_STREAM) -> Fields:
        raise NotImplementedError

    def set_task_data(self, name: str, value: Any) -> None:
        raise NotImplementedError

    def get_task_data(self, name: str) -> Any:
        raise NotImplementedError


def context(tasks: int = 1, index: int = 0, columnar: bool = False) -> TopologyContext:
    """Return such a task, where a whole one is asked for."""
    return cast(TopologyContext, FakeContext(tasks, index, columnar))


class Gathered:
    """A collector that keeps what is emitted."""

    def __init__(self) -> None:
        self.values: list[list[Any]] = []
        self.batches: list[Any] = []

    def emit(self, values: Sequence[Any], stream: str = DEFAULT_STREAM) -> None:
        assert stream == DEFAULT_STREAM
        self.values.append(list(values))

    def emit_batch(self, batch: Any, stream: str = DEFAULT_STREAM) -> None:
        assert stream == DEFAULT_STREAM
        self.batches.append(batch)
        for part in batch.to_batches():
            self.values += Columns(ATTEMPT, part).rows()

    def emit_direct(self, task_id: int, values: Sequence[Any], stream: str = DEFAULT_STREAM) -> None:
        raise NotImplementedError

    def report_error(self, error: BaseException) -> None:
        raise NotImplementedError


def stored(metadata: Any) -> Any:
    """Return metadata as it comes back from ZooKeeper."""
    return msgpack.unpackb(msgpack.packb(metadata))


class Run:
    """A driver's life: begins where `batches` end, as after a restart."""

    def __init__(self, spout: FileTransactionalSpout, tasks: int = 1, batches: Sequence[Any] = ()) -> None:
        self.spout = spout
        self.tasks = tasks
        self.batches = list(batches)
        self.coordinator = spout.get_coordinator({}, context(tasks))
        self.coordinator.resume(self.batches[-1] if self.batches else None)

    def plan(self) -> Any:
        """Plan the next batch, which there must be."""
        assert self.coordinator.is_ready()
        previous = self.batches[-1] if self.batches else None
        self.batches.append(stored(self.coordinator.initialize_transaction(len(self.batches) + 1, previous)))
        return self.batches[-1]

    def plan_all(self) -> list[Any]:
        """Plan until nothing is left; return all batches."""
        while self.coordinator.is_ready():
            self.plan()
        return self.batches

    def emit(self, metadata: Any, tasks: int | None = None) -> list[list[Any]]:
        """Emit a batch and return its rows, without the attempt, in the order of the pieces' tasks."""
        return [values[1:] for values in self.gather(metadata, tasks).values]

    def gather(self, metadata: Any, tasks: int | None = None, columnar: bool = False) -> Gathered:
        """Emit a batch, to bolts that take record batches where `columnar`."""
        tasks = tasks or self.tasks
        gathered = Gathered()
        for index in range(tasks):
            emitter = self.spout.get_emitter({}, context(tasks, index, columnar))
            emitter.emit_batch(ATTEMPT, metadata, cast(Collector, gathered))
            emitter.close()
        assert all(values[0] == ATTEMPT for values in gathered.values)
        return gathered

    def rows(self) -> list[list[Any]]:
        """Plan everything and return the rows of all batches."""
        return [row for metadata in self.plan_all() for row in self.emit(metadata)]


def declared_fields(spout: FileTransactionalSpout) -> list[str]:
    """Return the fields of the default stream."""
    declarer = OutputFieldsDeclarer("files")
    spout.declare_output_fields(declarer)
    return list(declarer.streams[DEFAULT_STREAM].fields)


def write(name: str, text: str | bytes) -> str:
    """Write a file below the current directory; return its full path."""
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return str(path.resolve())


def numbers(first: int, last: int) -> str:
    """Return a CSV of one column, n."""
    return "n\n" + "".join(f"{n}\n" for n in range(first, last + 1))


def ints(rows: list[list[Any]]) -> list[int]:
    """Return the first column."""
    return [int(row[0]) for row in rows]
