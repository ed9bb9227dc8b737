"""PartitionTable: which partition of which topic each number of the spout means, for ever."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from stormline.topology.contracts import Metadata
from stormline.topology.errors import CorruptData, shown


class Place(NamedTuple):
    """A partition of a topic."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"topic {self.topic!r}, partition {self.partition}"


@dataclass(frozen=True, slots=True)
class Run:
    """Consecutive partitions of one topic, found together. `starts`: where to begin; None: at the earliest record.

    One without an id, and without partitions, says that the topic was deleted.
    """

    topic: str
    topic_id: str
    first: int
    count: int
    starts: tuple[int | None, ...] | None = None

    def to_metadata(self) -> list[Any]:
        """Return what is stored."""
        return [self.topic, self.topic_id, self.first, self.count, None if self.starts is None else [*self.starts]]


class PartitionTable:
    """Partitions by their numbers: those that were found first have the first numbers, and keep them.

    A topic that was deleted and made anew is another one: its id tells. The numbers of the old one are *gone*.
    """

    def __init__(self, runs: Sequence[Run] = ()) -> None:
        self.runs = tuple(runs)
        self.ids: dict[str, str] = {}
        """Of each topic: of the latest one of its name."""
        self._places: list[Place] = []
        self._starts: list[int | None] = []
        self._runs: list[Run] = []
        for run in self.runs:
            self.ids[run.topic] = run.topic_id
            for i in range(run.count):
                self._places.append(Place(run.topic, run.first + i))
                self._starts.append(None if run.starts is None else run.starts[i])
                self._runs.append(run)

    def __len__(self) -> int:
        return len(self._places)

    def place(self, number: int) -> Place:
        """Return the partition that a number means."""
        return self._places[number]

    def topic_id(self, number: int) -> str:
        """Return the id of the topic to which a partition belongs."""
        return self._runs[number].topic_id

    def start(self, number: int) -> int | None:
        """Return the offset at which a partition is to begin; None: at the earliest there is."""
        return self._starts[number]

    def is_gone(self, number: int) -> bool:
        """Return whether the partition is of a topic in whose place there is another by now."""
        run = self._runs[number]
        return self.ids[run.topic] != run.topic_id

    def known(self, topic: str, topic_id: str) -> int:
        """Return how many partitions of a topic have numbers."""
        return sum(run.count for run in self.runs if (run.topic, run.topic_id) == (topic, topic_id))

    def numbers(self) -> dict[Place, int]:
        """Return the numbers of all partitions that are not gone."""
        return {place: number for number, place in enumerate(self._places) if not self.is_gone(number)}

    def with_runs(self, runs: Sequence[Run]) -> PartitionTable:
        """Return a table with more runs."""
        return PartitionTable((*self.runs, *runs))

    def to_metadata(self) -> Metadata:
        """Return what is stored with each batch."""
        return [run.to_metadata() for run in self.runs]

    @classmethod
    def from_metadata(cls, metadata: Any) -> PartitionTable:
        """Return the table that is stored; an empty one for None.

        Raises:
            CorruptData: it is none.
        """
        if metadata is None:
            return cls()
        if type(metadata) is not list or not all(_is_run(run) for run in metadata):
            raise CorruptData(
                f"stored partitions of a Kafka spout are {shown(metadata)}, expected a list of [topic, id, first "
                "partition, partitions, starts]; restore the state from a backup, or begin anew under another "
                "topology id"
            )
        return cls([Run(run[0], run[1], run[2], run[3], None if run[4] is None else tuple(run[4])) for run in metadata])


def _is_run(run: Any) -> bool:
    if type(run) is not list or [type(part) for part in run[:4]] != [str, str, int, int] or len(run) != 5:
        return False
    _, _, first, count, starts = run
    if first < 0 or count < 0:
        return False
    return starts is None or (type(starts) is list and len(starts) == count and all(map(_is_offset, starts)))


def _is_offset(value: Any) -> bool:
    return value is None or (type(value) is int and 0 <= value < 1 << 63)


class Range(NamedTuple):
    """What one batch has of one partition: the offsets [start, end), and how many records they gave.

    `epoch` is that of the leader who wrote the last of them, -1 where that is not known.
    """

    start: int
    end: int
    records: int
    epoch: int

    @classmethod
    def from_metadata(cls, metadata: Any) -> Range:
        """Return the range that is stored.

        Raises:
            CorruptData: it is none.
        """
        if type(metadata) is list and len(metadata) == 4 and all(type(part) is int for part in metadata):
            found = cls(*metadata)
            if 0 <= found.start <= found.end < 1 << 63 and found.records >= 0:
                return found
        raise CorruptData(
            f"stored metadata of a Kafka partition is {shown(metadata)}, expected [start, end, records, epoch]; "
            "restore the state from a backup, or begin anew under another topology id"
        )


def positions_of(metadata: Mapping[int, Metadata]) -> dict[int, int]:
    """Return where each partition stands, by its number; those that have given nothing yet are left out."""
    return {number: Range.from_metadata(at).end for number, at in metadata.items() if at is not None}
