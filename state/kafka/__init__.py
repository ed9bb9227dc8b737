"""Kafka as what a topology writes to, each transaction exactly once (pip install 'stormline[kafka]')."""

from stormline.state.kafka.committer import ArrowKafkaCommitter, KafkaCommitter
from stormline.state.kafka.sink import KafkaSink
from stormline.state.kafka.transaction import KafkaTransaction
from stormline.state.kafka.two_phase import KafkaTwoPhaseSink

__all__ = ["ArrowKafkaCommitter", "KafkaCommitter", "KafkaSink", "KafkaTransaction", "KafkaTwoPhaseSink"]
