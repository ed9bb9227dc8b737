"""Spouts that read Kafka topics, each record in exactly one batch (pip install 'stormline[kafka]')."""

from stormline.spouts.kafka.deserializers import Avro, Json, MessagePack, Protobuf, Text
from stormline.spouts.kafka.schema_registry import SchemaRegistry
from stormline.spouts.kafka.spout import KafkaTransactionalSpout, OpaqueKafkaTransactionalSpout

__all__ = [
    "Avro",
    "Json",
    "KafkaTransactionalSpout",
    "MessagePack",
    "OpaqueKafkaTransactionalSpout",
    "Protobuf",
    "SchemaRegistry",
    "Text",
]
