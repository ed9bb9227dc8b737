"""KafkaCoordinator: finds partitions, gives them their numbers, and says whether there is anything to read."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from stormline.spouts.kafka.errors import CompactedTopic, RecordsLost, TopicMissing
from stormline.spouts.kafka.partitions import PartitionTable, Place, Run, positions_of
from stormline.spouts.kafka.settings import KafkaSettings
from stormline.topology.contracts import IOpaqueCoordinator, IPartitionedCoordinator, Metadata
from stormline.topology.errors import FailedException

if TYPE_CHECKING:
    from stormline.spouts.kafka.client import Cluster

log = logging.getLogger("stormline")

LATEST = -1
PUBLISH_SECS = 1.0
"""How often committed positions are written to the group, at most."""

PAUSE_SECS = 1.0
"""How long to wait after a batch that gave nothing, though there was something to read: partitions may be away."""


class KafkaCoordinator(IPartitionedCoordinator, IOpaqueCoordinator):
    """Knows the partitions of all batches, by a table that is stored with each and only grows.

    Args:
        settings: how the spout was declared.
        cluster: its connection to the brokers.
    """

    def __init__(self, settings: KafkaSettings, cluster: Cluster) -> None:
        self._settings = settings
        self._cluster = cluster
        self._table = PartitionTable()
        self._described = False
        self._discover_at = 0.0
        self._ends: dict[Place, int] = {}
        self._begun_at: dict[int, int] | None = None
        self._looks_again_at: float | None = None
        self._to_publish: dict[int, int] = {}
        self._publish_at = 0.0

    def resume_partitions(self, described: Metadata) -> None:
        """Go on with the partitions that are stored."""
        self._table = PartitionTable.from_metadata(described)
        self._described = described is not None

    def is_ready_after(self, positions: Mapping[int, Metadata], batches_ahead: int) -> bool:
        """Return whether a record is left after these positions and that many more batches.

        Raises:
            TopicMissing: a topic that is named is not there, and never was.
            RecordsLost: a topic is another one than before, and `on_lost` is 'stop'.
            CompactedTopic: a topic is compacted, and every batch must be the same in each replay.
            KafkaRefused, KafkaFailed: the brokers refuse.
        """
        if time.monotonic() >= self._discover_at:
            self._discover()
            self._discover_at = time.monotonic() + self._settings.discover_secs
        if self._to_publish and time.monotonic() >= self._publish_at:
            self._publish()
            self._publish_at = time.monotonic() + PUBLISH_SECS
        if not len(self._table):
            return False
        if not self._described and self._settings.start == "latest":
            return True  # an empty batch, so that what is the latest now is so for ever
        at = positions_of(positions)
        ahead = batches_ahead * self._settings.records_max
        if not batches_ahead and at == self._begun_at and not self._looks_again():
            return False
        if not self._has_more(at, ahead):
            self._ask_ends()
            if not self._has_more(at, ahead):
                return False
        self._begun_at, self._looks_again_at = at, None
        return True

    def describe_partitions(self, described: Metadata) -> Metadata:
        """Return the table of all partitions."""
        self._described = True
        return self._table.to_metadata()

    def positions_committed(self, positions: Mapping[int, Metadata]) -> None:
        """Keep the positions, to be published to the group that the user has named."""
        self._to_publish = positions_of(positions)

    def num_partitions(self) -> int:
        """Return how many partitions have been found."""
        return len(self._table)

    def close(self) -> None:
        """Publish what is left to be, and end the connections."""
        try:
            self._publish()
        finally:
            self._cluster.close()

    def _publish(self) -> None:
        """Write the committed positions to the group: for those who look, so it fails nothing but where it is refused.

        Raises:
            KafkaRefused: this user may not Read the group.
        """
        positions, self._to_publish = self._to_publish, {}
        if not self._settings.group_id or not positions:
            return
        places = {place: positions[number] for place, number in self._table.numbers().items() if number in positions}
        try:
            self._cluster.publish(self._settings.group_id, places)
        except FailedException as error:
            log.warning("the committed positions were not published: %s; the next ones will be", error)

    def _looks_again(self) -> bool:
        """Return whether to ask anew, after a batch that gave nothing: it is waited for a while first."""
        now = time.monotonic()
        if self._looks_again_at is None:
            self._looks_again_at = now + PAUSE_SECS
        if now < self._looks_again_at:
            return False
        self._ends = {}  # what was asked before may be of a partition that is away
        return True

    def _has_more(self, positions: Mapping[int, int], ahead: int) -> bool:
        for place, number in self._table.numbers().items():
            start = positions.get(number, self._table.start(number))
            if self._ends.get(place, -1) > (0 if start is None else start) + ahead:
                return True
        return False

    def _ask_ends(self) -> None:
        numbers = self._table.numbers()
        for place, end in self._cluster.offsets(numbers, LATEST).items():
            if isinstance(end, int):
                self._ends[place] = end

    def _discover(self) -> None:
        """Look what topics there are, and give numbers to the partitions that have none."""
        settings, table = self._settings, self._table
        runs: list[Run] = []
        found = self._cluster.topics()
        for topic in dict.fromkeys((*settings.topics, *table.ids)):
            stored, now = table.ids.get(topic), found.get(topic)
            if now is None and stored != "":
                self._cluster.check_missed(topic)
            if now is None and stored is None:
                raise TopicMissing.named(topic, settings.servers)
            if stored and (now is None or now.topic_id != stored):
                self._stop_or_tell(RecordsLost.made_anew(topic, stored, now and now.topic_id, replay=False))
                if now is None:
                    runs.append(Run(topic, "", 0, 0))
        if settings.replays:
            self._refuse_compacted(topic for topic in found if topic not in table.ids)
        for topic, now in found.items():
            known = table.known(topic, now.topic_id)
            if now.partitions > known:
                first = topic not in table.ids
                places = [Place(topic, partition) for partition in range(known, now.partitions)]
                # Those that are added later began after we did: all of them is to be read.
                starts = starts_of(settings, self._cluster, places) if first and not self._described else None
                runs.append(Run(topic, now.topic_id, known, len(places), starts))
        if runs:
            self._table = table.with_runs(runs)
            log.info("Kafka partitions found: %s", ", ".join(f"{run.topic} +{run.count}" for run in runs))

    def _stop_or_tell(self, lost: RecordsLost) -> None:
        if self._settings.lost_stops:
            raise lost
        log.error("%s; on_lost='continue': going on with what there is", lost)

    def _refuse_compacted(self, topics: Iterable[str]) -> None:
        names = list(topics)
        if not names:
            return
        for topic, policy in self._cluster.cleanup_policies(names).items():
            if policy is None:
                log.warning(
                    "topic %r: this user may not DescribeConfigs, so it is not known whether it is compacted; a batch "
                    "of a compacted topic cannot be replayed",
                    topic,
                )
            elif "compact" in policy:
                raise CompactedTopic.named(topic, policy)


def starts_of(settings: KafkaSettings, cluster: Cluster, places: Sequence[Place]) -> tuple[int | None, ...] | None:
    """Return the offsets at which a topology without state begins these partitions; None: at the earliest there are.

    Raises:
        FailedException: the brokers do not answer.
    """
    start = settings.start
    if start == "earliest":
        return None
    if isinstance(start, Mapping):
        return tuple(start.get((place.topic, place.partition)) for place in places)
    at = int(start.timestamp() * 1000) if isinstance(start, datetime) else LATEST
    told = cluster.offsets(places, at)
    ends = cluster.offsets(places, LATEST)
    starts = []
    for place in places:
        for answer in (told[place], ends[place]):
            if not isinstance(answer, int):
                raise cluster.failure(answer, f"the offset at which {place} starts")
        asked, end = told[place], ends[place]
        assert isinstance(asked, int)
        assert isinstance(end, int)
        starts.append(asked if asked >= 0 else end)  # no record is that late
    return tuple(starts)
