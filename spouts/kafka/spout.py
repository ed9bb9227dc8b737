"""KafkaTransactionalSpout and OpaqueKafkaTransactionalSpout: the records of Kafka topics, each in exactly one batch."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from stormline.spouts.kafka.coordinator import KafkaCoordinator
from stormline.spouts.kafka.settings import (
    ATTEMPT_FIELD,
    UNREADABLE,
    UNREADABLE_FIELDS,
    KafkaSettings,
    Start,
    Topics,
)
from stormline.topology.context import TopologyContext
from stormline.topology.contracts import (
    Conf,
    IOpaqueEmitter,
    IOpaquePartitionedTransactionalSpout,
    IPartitionedEmitter,
    IPartitionedTransactionalSpout,
    Metadata,
)
from stormline.topology.errors import MissingExtra
from stormline.topology.fields import Fields
from stormline.topology.streams import OutputFieldsDeclarer

if TYPE_CHECKING:
    from stormline.spouts.kafka.client import Cluster
    from stormline.spouts.kafka.lag import PartitionLag
    from stormline.spouts.kafka.ranges import Ranges
    from stormline.spouts.kafka.records import RecordEmitter

RECORDS = 10_000


class KafkaSpout:
    """What `KafkaTransactionalSpout` and `OpaqueKafkaTransactionalSpout` are declared with.

    Args:
        servers (str): Where the brokers are, as "host1:9092,host2:9092".
        topics (Topics): A name, a pattern (`re.compile`, of whole names), or a list of them. Topics that match a
            pattern later, and partitions that are added, are found while the topology runs, and read from their
            beginning.
        fields (Sequence[str] | Mapping[str, str]): What to take of a record: "key", "value", "headers" (name and
            bytes of each), "timestamp" (ms since 1970), "topic", "partition", "offset"; any other name is a field of
            the decoded value. As a dict: the name of each field, and where it comes from, "value.NAME" for one of the
            value.
        key (Any): What decodes keys: `Text()`, `Json()`, …, or a callable that takes bytes; None: they stay bytes. A
            key that is null is None.
        value (Any): What decodes values, likewise.
        defaults (Mapping[str, Any] | None): For some fields of the value, what to emit where it lacks them.
        start (Start): Where a topology begins that has no state yet: "earliest"; "latest", what comes from the start
            on; a datetime with a time zone, the first record that is as late; or {(topic, partition): offset},
            "earliest" for the others.
        records_per_partition (int): Offsets that a batch has of one partition at most. Markers of transactions, and
            records of aborted ones, have offsets too.
        bytes_per_partition (int | None): Bytes of keys and values at most; the record that reaches it is the last.
        on_unreadable (str): What happens to a record that cannot be decoded. "stop": the topology stops, naming it.
            "skip": it is left out, logged and counted as "unreadable". "emit": besides, it goes to the stream
            "unreadable" as it is, with what is wrong with it, once as all tuples do.
        on_lost (str): What happens when records are gone before they were read. "stop": the topology stops, and says
            which. "continue": it says so, counts "gaps", and goes on with what there is. A batch that was begun and
            needs them again stops it in any case.
        discover_secs (float): How often topics and partitions are looked up.
        timeout_secs (float): How long to wait for an answer, or a record, before an attempt fails and is tried again.
        group_id (str): A consumer group to which the committed positions are written, for tools that show how far
            consumers lag behind; it is never read. Empty: none.
        client (Mapping[str, Any] | None): More settings of librdkafka, as security.protocol, sasl.mechanism,
            ssl.ca.location. Secrets among them are references, `env:NAME` or `file:PATH`, read where they are used.

    Raises:
        InvalidKafkaSpout: arguments do not go together, or one is out of range.
        MissingExtra: confluent-kafka, or what a deserialiser needs, is not installed.
    """

    emits_on_executors = True
    _replays = True

    def __init__(
        self,
        servers: str,
        topics: Topics,
        fields: Sequence[str] | Mapping[str, str],
        *,
        key: Any = None,
        value: Any = None,
        defaults: Mapping[str, Any] | None = None,
        start: Start = "earliest",
        records_per_partition: int = RECORDS,
        bytes_per_partition: int | None = None,
        on_unreadable: str = "stop",
        on_lost: str = "stop",
        discover_secs: float = 5.0,
        timeout_secs: float = 10.0,
        group_id: str = "",
        client: Mapping[str, Any] | None = None,
    ) -> None:
        self._settings = KafkaSettings.checked(
            servers=servers,
            topics=topics,
            fields=fields,
            key=key,
            value=value,
            defaults=defaults,
            start=start,
            records_per_partition=records_per_partition,
            bytes_per_partition=bytes_per_partition,
            on_unreadable=on_unreadable,
            on_lost=on_lost,
            discover_secs=discover_secs,
            timeout_secs=timeout_secs,
            group_id=group_id,
            client=client,
            replays=self._replays,
        )
        if importlib.util.find_spec("confluent_kafka") is None:
            raise MissingExtra.of("kafka", type(self).__name__, "confluent-kafka")

    def __repr__(self) -> str:
        settings = self._settings
        topics = [*settings.topics, *(pattern.pattern for pattern in settings.patterns)]
        return f"{type(self).__name__}({settings.servers!r}, {topics!r})"

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """Declare (attempt, *fields), and the stream of records that cannot be read where they are emitted.

        Args:
            declarer (OutputFieldsDeclarer): takes the streams.
        """
        declarer.declare(Fields(ATTEMPT_FIELD, *self._settings.fields))
        if self._settings.on_unreadable == "emit":
            declarer.declare_stream(UNREADABLE, UNREADABLE_FIELDS)

    def get_coordinator(self, conf: Conf, context: TopologyContext) -> KafkaCoordinator:
        """Return the coordinator.

        Args:
            conf (Conf): the configuration as this spout has it.
            context (TopologyContext): what the spout's first task may know.
        """
        return KafkaCoordinator(self._settings, self._cluster(context))

    def lag(self, topology_id: str, described: Metadata, positions: Mapping[int, Metadata]) -> list[PartitionLag]:
        """Return how far each partition's committed position is behind its end; what `stormline lag` shows.

        Args:
            topology_id (str): id of the topology.
            described (Metadata): what the coordinator said of the partitions with the last batch; None: there is none.
            positions (Mapping[int, Metadata]): metadata of each partition after the last committed batch, by number.

        Raises:
            BrokersAway: no broker answers.
            TopicMissing: a topic that is named is not there, and never was.
            KafkaRefused, KafkaFailed: the brokers refuse.
        """
        from stormline.spouts.kafka.lag import measure

        return measure(self._settings, topology_id, described, positions)

    @property
    def group_id(self) -> str:
        """The consumer group to which committed positions are written; empty: none."""
        return self._settings.group_id

    def _cluster(self, context: TopologyContext) -> Cluster:
        from stormline.spouts.kafka.client import Cluster

        return Cluster(self._settings, context.topology_id)

    def _parts(self, context: TopologyContext) -> tuple[Ranges, RecordEmitter]:
        from stormline.spouts.kafka.ranges import Ranges
        from stormline.spouts.kafka.records import RecordEmitter

        records = RecordEmitter(self._settings, context)
        tasks = len(context.component_tasks(context.this_component_id))
        cluster = self._cluster(context)
        return Ranges(self._settings, cluster, context.this_task_index, tasks, records.count_gap), records


class KafkaTransactionalSpout(KafkaSpout, IPartitionedTransactionalSpout):
    """Reads the committed records of Kafka topics; every record is in exactly one batch, the same after any restart.

    Emits (attempt, *fields); as record batches where only bolts that take those listen, and the types of all fields are
    known. A batch is a range of offsets of each partition, which is stored: a replay gives exactly these records, so
    the brokers must keep them until the batch is committed, and no topic may be compacted. Records of transactions that
    were aborted are never seen, those of one that is open hold back what comes after it.

    Its emitters run on the executors, each with a connection of its own, which lives as long as the worker does. See
    `KafkaSpout` for the arguments.
    """

    _replays = True

    def get_emitter(self, conf: Conf, context: TopologyContext) -> IPartitionedEmitter:
        """Return the emitter of one task."""
        from stormline.spouts.kafka.emitter import KafkaEmitter

        return KafkaEmitter(self._settings, *self._parts(context))


class OpaqueKafkaTransactionalSpout(KafkaSpout, IOpaquePartitionedTransactionalSpout):
    """As `KafkaTransactionalSpout`, but a partition that is away gives nothing, and the others go on without it.

    A replay may have other records, until the commit of its batch begins. Every record is in exactly one batch all the
    same. A compacted topic may be read, too; what compaction takes out before it is read is never seen, and what it
    takes out of a batch whose commit was cut off stops the topology. See `KafkaSpout` for the arguments.
    """

    _replays = False

    def get_emitter(self, conf: Conf, context: TopologyContext) -> IOpaqueEmitter:
        """Return the emitter of one task."""
        from stormline.spouts.kafka.emitter import OpaqueKafkaEmitter

        return OpaqueKafkaEmitter(*self._parts(context))
