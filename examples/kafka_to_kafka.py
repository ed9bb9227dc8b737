"""Makes invoices of orders, from a Kafka topic into another one: of each committed order one, a customer's in order.

    orders (2 tasks) → price → invoices (committer)

`python -m examples.kafka_to_kafka` shows it with a broker of its own: it writes orders in transactions, of which it
aborts some, kills the topology's driver twice on the way, and compares the invoices that a reader of committed records
has seen meanwhile. `stormline run examples.kafka_to_kafka` goes from topic `orders` to topic `invoices` of the broker
that the environment names by KAFKA_SERVERS, and goes on where it stopped.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from typing import Any

from examples.kafka_broker import KafkaBroker, free_port
from stormline import (
    BaseBasicBolt,
    Collector,
    Config,
    Fields,
    OutputFieldsDeclarer,
    Topology,
    TransactionalTopologyBuilder,
    Tuple,
    Values,
)
from stormline.spouts.kafka import Json, KafkaTransactionalSpout
from stormline.state.kafka import KafkaCommitter, KafkaSink

ORDERS, INVOICES = "orders", "invoices"
PARTITIONS = 2
CUSTOMERS = ["ada", "bob", "cyd"]
CENTS = {"tea": 320, "bun": 150, "soup": 690}
ORDERS_COUNT = 3000
KILLS = 2
LIFE_SECS = 120.0


class Price(BaseBasicBolt):
    """Says what an order costs."""

    def execute(self, tup: Tuple, collector: Collector) -> None:
        """Emit the order with its price."""
        _, number, customer, item, quantity = tup
        collector.emit(Values(tup[0], number, customer, quantity * CENTS[item]))

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """Declare the attempt, and the parts of an invoice."""
        declarer.declare(Fields("id", "order", "customer", "cents"))


def topology() -> Topology:
    """Declare the topology."""
    servers = os.environ.get("KAFKA_SERVERS", "127.0.0.1:9092")
    fields = {"order": int, "customer": str, "item": str, "quantity": int}
    spout = KafkaTransactionalSpout(servers, ORDERS, [*fields], value=Json(fields), records_per_partition=50)
    builder = TransactionalTopologyBuilder("kafka-to-kafka", "orders", spout, PARTITIONS)
    builder.set_bolt("price", Price(), 2).fields_grouping("orders", ["customer"])
    # One customer's orders take one way, so they stay in order.
    invoices = KafkaCommitter(
        KafkaSink(servers), INVOICES, key="customer", value=["order", "customer", "cents"], value_serializer=json.dumps
    )
    builder.set_bolt("invoices", invoices, 2).fields_grouping("price", ["customer"])
    return builder.build_topology()


config = Config()
config.set_max_spout_pending(4)


# ---------------------------------------------------------------------------------------- the demonstration


def make_topics(servers: str) -> None:
    """Make both topics."""
    from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

    admin = AdminClient({"bootstrap.servers": servers})
    for made in admin.create_topics([NewTopic(topic, PARTITIONS, 1) for topic in (ORDERS, INVOICES)]).values():
        made.result()


def write_orders(servers: str, count: int) -> list[dict[str, Any]]:
    """Write orders in transactions, the fourth of every four of which is aborted; return those that stay."""
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": servers, "transactional.id": "kafka-to-kafka-writer"})
    producer.init_transactions()
    stay: list[dict[str, Any]] = []
    items = [*CENTS]
    for first in range(0, count, 25):
        orders: list[dict[str, Any]] = [
            {"order": n, "customer": CUSTOMERS[n % 7 % 3], "item": items[n % 5 % 3], "quantity": 1 + n % 4}
            for n in range(first, min(first + 25, count))
        ]
        producer.begin_transaction()
        for order in orders:
            producer.produce(ORDERS, json.dumps(order), order["customer"])
        producer.flush()
        if first // 25 % 4 == 3:
            producer.abort_transaction()
        else:
            producer.commit_transaction()
            stay += orders
    return stay


class InvoiceReader:
    """A reader of committed records, from the first on."""

    def __init__(self, servers: str) -> None:
        from confluent_kafka import Consumer, TopicPartition

        self.invoices: list[dict[str, Any]] = []
        self._consumer = Consumer(
            {"bootstrap.servers": servers, "group.id": "invoice-reader", "isolation.level": "read_committed"}
        )
        self._consumer.assign([TopicPartition(INVOICES, partition, 0) for partition in range(PARTITIONS)])

    def read(self) -> None:
        """Read what there is, or comes soon."""
        for message in self._consumer.consume(1000, 0.1):
            if message.error() is None:
                self.invoices.append(json.loads(message.value() or b""))

    def close(self) -> None:
        """End the connection."""
        self._consumer.close()


def run_and_kill(servers: str, reader: InvoiceReader, count: int) -> None:
    """Run the topology until there are so many invoices, in a driver that is killed on the way, and begun anew."""
    with tempfile.TemporaryDirectory(prefix="stormline-", ignore_cleanup_errors=True) as folder:
        command = [sys.executable, "-m", "stormline.cli.main", "run", "examples.kafka_to_kafka", "--progress", "none"]
        command += ["--master", "local[2]", "--state-dir", folder]
        for life in range(KILLS + 1):
            enough = count * (life + 1) // (KILLS + 1)
            driver = subprocess.Popen(command, env={**os.environ, "KAFKA_SERVERS": servers}, stdin=subprocess.DEVNULL)
            try:
                deadline = time.monotonic() + LIFE_SECS
                while len(reader.invoices) < enough and driver.poll() is None and time.monotonic() < deadline:
                    reader.read()
                if life == KILLS:
                    driver.wait(LIFE_SECS)
                    reader.read()
            finally:
                driver.kill()  # as kill -9 does; what it has started ends by itself
                driver.wait()
            if life < KILLS:
                print(f"killed the driver after {len(reader.invoices)} invoices", flush=True)


def comparison(orders: Sequence[dict[str, Any]], invoices: Sequence[dict[str, Any]]) -> str:
    """Return what was ordered and what there are invoices of, customer by customer."""
    lines = [f"{len(orders)} orders, {len(invoices)} invoices"]
    for customer in CUSTOMERS:
        own = [one for one in orders if one["customer"] == customer]
        ordered = [(one["order"], one["quantity"] * CENTS[one["item"]]) for one in own]
        found = [(one["order"], one["cents"]) for one in invoices if one["customer"] == customer]
        total = sum(cents for _, cents in found) / 100
        lines.append(f"{customer}: {total:,.2f}; each once, in order: {'yes' if found == ordered else 'NO'}")
    return "\n".join(lines)


def main() -> None:
    """Start a broker, write orders, and make invoices of them, whatever is killed."""
    broker = KafkaBroker(free_port(), free_port())
    try:
        broker.start()
        make_topics(broker.servers)
        orders = write_orders(broker.servers, ORDERS_COUNT)
        reader = InvoiceReader(broker.servers)
        run_and_kill(broker.servers, reader, len(orders))
        reader.close()
        print(comparison(orders, reader.invoices))
    finally:
        broker.stop()


if __name__ == "__main__":
    main()
