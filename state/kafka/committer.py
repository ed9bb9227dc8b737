"""KafkaCommitter and ArrowKafkaCommitter: what a topology's tuples, or record batches, become in Kafka's topics."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from typing import TYPE_CHECKING

from stormline.bolts.arrow import ArrowTransactionalBolt
from stormline.bolts.base import BaseTransactionalBolt
from stormline.state.kafka.errors import InvalidKafkaSink
from stormline.state.kafka.record_fields import RecordFields, Serializer
from stormline.state.kafka.sink import KafkaSink
from stormline.topology.attempt import TransactionAttempt
from stormline.topology.commit_participants import CommitTarget
from stormline.topology.context import TopologyContext
from stormline.topology.contracts import Collector, Conf, ICommitter
from stormline.topology.errors import MissingExtra
from stormline.topology.fields import Fields
from stormline.topology.tuples import Tuple

if TYPE_CHECKING:
    import pyarrow


class KafkaWriter:
    """What `KafkaCommitter` and `ArrowKafkaCommitter` are declared with.

    Args:
        sink (KafkaSink): The brokers; committers that share one write in one transaction of Kafka.
        topic (str): Where all records go; it must exist.
        topic_field (str | None): The field that says where each record goes, in place of `topic`.
        value (str | Sequence[str]): The field of the value; of several a dict is made for `value_serializer`.
        key (str | None): The field of the key; None: records have none.
        headers (str | None): The field of the headers: a dict, or a list of (name, text or bytes).
        timestamp (str | None): The field of the timestamp: ms since 1970, or a datetime with a time zone; None: they
            have that of their writing.
        partition (str | None): The field of the partition's number; None: the partitioner says it, by the key.
        value_serializer (Serializer | None): Makes bytes or text of a value; None: it is that already. A value of None
            stays None, which marks its key as removed in a compacted topic.
        key_serializer (Serializer | None): Makes bytes or text of a key.

    Raises:
        InvalidKafkaSink: Arguments do not go together.
        MissingExtra: confluent-kafka is not installed.
    """

    effects_in: CommitTarget | None = None

    def __init__(
        self,
        sink: KafkaSink,
        topic: str = "",
        *,
        topic_field: str | None = None,
        value: str | Sequence[str] = "value",
        key: str | None = None,
        headers: str | None = None,
        timestamp: str | None = None,
        partition: str | None = None,
        value_serializer: Serializer | None = None,
        key_serializer: Serializer | None = None,
    ) -> None:
        if not isinstance(sink, KafkaSink):
            raise InvalidKafkaSink(f"sink is {sink!r:.80}, expected KafkaSink('host:9092')")
        if importlib.util.find_spec("confluent_kafka") is None:
            raise MissingExtra.of("kafka", type(self).__name__, "confluent-kafka")
        self.sink = sink
        if type(self).__module__ == __name__:  # one of yours may have effects elsewhere
            self.effects_in = sink
        self.fields = RecordFields(
            topic, topic_field, value, key, headers, timestamp, partition, value_serializer, key_serializer
        )

    def prepare(self, conf: Conf, context: TopologyContext, collector: Collector, batch_id: TransactionAttempt) -> None:
        """Begin, or join, the sink's transaction.

        Args:
            conf (Conf): the configuration as this component has it.
            context (TopologyContext): what the task may know about itself and the topology.
            collector (Collector): takes what the bolt emits: nothing.
            batch_id (TransactionAttempt): the attempt of the batch.
        """
        self._who = f"component {context.this_component_id!r}"
        for source in context.this_sources:
            fields = context.component_output_fields(source)
            for name in self.fields.names:
                fields.field_index(name)
        self._transaction = self.sink.in_commit(context, batch_id)

    def finish_batch(self) -> None:
        """Leave the rest to the end of the commit phase."""


class KafkaCommitter(KafkaWriter, BaseTransactionalBolt, ICommitter):
    """A committer that writes each tuple as a record, each transaction of the topology exactly once."""

    _known: Fields | None = None

    def execute(self, tup: Tuple) -> None:
        """Send a record.

        Args:
            tup (Tuple): what has arrived.
        """
        if not self._transaction.stored:
            if tup.fields is not self._known:
                self._known = tup.fields
                self._positions = [tup.fields.field_index(name) for name in self.fields.names]
            values = tup.values
            self.fields.send(self._transaction, self._who, [values[position] for position in self._positions])


class ArrowKafkaCommitter(KafkaWriter, ArrowTransactionalBolt, ICommitter):
    """The `KafkaCommitter` that takes record batches: a record for each row."""

    def execute_batch(self, batch: pyarrow.RecordBatch) -> None:
        """Send a record for each row.

        Args:
            batch (pyarrow.RecordBatch): what has arrived.
        """
        if not self._transaction.stored:
            columns = [batch.column(name).to_pylist() for name in self.fields.names]
            for row in zip(*columns, strict=True):
                self.fields.send(self._transaction, self._who, row)
