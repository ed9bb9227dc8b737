"""Counts the words of a Kafka topic into SQLite, each committed one exactly once.

    spout (2 tasks) → words-partial → words (committer)

`python -m examples.kafka_words` shows it with a broker of its own: it writes sentences in transactions, of which it
aborts some, and counts. `stormline run examples.kafka_words` counts topic `sentences` of the broker that the
environment names by KAFKA_SERVERS, and goes on where it stopped.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from examples.kafka_broker import KafkaBroker, free_port
from stormline import (
    BaseBasicBolt,
    Collector,
    Config,
    Fields,
    LocalCluster,
    OutputFieldsDeclarer,
    Topology,
    TransactionalTopologyBuilder,
    Tuple,
    Values,
)
from stormline.spouts.kafka import KafkaTransactionalSpout, Text
from stormline.state import Count, SQLiteStore, TransactionalMap, persistent_aggregate

TOPIC = "sentences"
PARTITIONS = 2
SENTENCES = ["the cat saw the dog", "the dog saw the ox", "nobody ever said this", "the ox slept"] * 30


class SplitSentence(BaseBasicBolt):
    """Emits each word of a sentence."""

    def execute(self, tup: Tuple, collector: Collector) -> None:
        """Emit the words."""
        for word in tup.get_string(1).split():
            collector.emit(Values(tup[0], word))

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """Declare the attempt and the word."""
        declarer.declare(Fields("id", "word"))


def words() -> TransactionalMap:
    """Return where the counts are."""
    store = SQLiteStore(os.environ.get("KAFKA_WORDS_DATABASE", ".stormline/kafka-words.sqlite"))
    return TransactionalMap(store, "words", key={"word": str}, value={"count": int})


def topology() -> Topology:
    """Declare the topology."""
    servers = os.environ.get("KAFKA_SERVERS", "127.0.0.1:9092")
    spout = KafkaTransactionalSpout(servers, TOPIC, ["value"], value=Text(), records_per_partition=20)
    builder = TransactionalTopologyBuilder("kafka-words", "spout", spout, PARTITIONS)
    builder.set_bolt("split", SplitSentence(), 2).shuffle_grouping("spout")
    persistent_aggregate(builder, "words", "split", words(), {"count": Count()})
    return builder.build_topology()


config = Config()
config.set_max_spout_pending(4)


def report() -> str:
    """Return what the database holds."""
    counts = sorted(words().items().items(), key=lambda item: (-item[1], item[0]))
    return "\n".join(f"{word:<8} {count:>4}" for word, count in counts)


def write(servers: str, sentences: Iterable[str]) -> None:
    """Write sentences to the topic, made if it is not there, each in a transaction; those of nobody are aborted."""
    from confluent_kafka import KafkaException, Producer
    from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

    admin = AdminClient({"bootstrap.servers": servers})
    for made in admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)]).values():
        try:
            made.result()
        except KafkaException as error:
            if error.args[0].name() != "TOPIC_ALREADY_EXISTS":
                raise
    producer = Producer({"bootstrap.servers": servers, "transactional.id": "kafka-words-writer"})
    producer.init_transactions()
    for i, sentence in enumerate(sentences):
        producer.begin_transaction()
        producer.produce(TOPIC, sentence, partition=i % PARTITIONS)
        producer.flush()
        if sentence.startswith("nobody"):
            producer.abort_transaction()
        else:
            producer.commit_transaction()


def main() -> None:
    """Start a broker, write, and count."""
    broker = KafkaBroker(free_port(), free_port())
    try:
        broker.start()
        os.environ["KAFKA_SERVERS"] = broker.servers
        write(broker.servers, SENTENCES)
        with LocalCluster() as cluster:
            cluster.submit_topology("kafka-words", config, topology()).await_drained(timeout_secs=120)
        print(report())
    finally:
        broker.stop()


if __name__ == "__main__":
    main()
