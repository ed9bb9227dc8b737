"""KafkaSink: the brokers that a topology's committers write to, each transaction once (stormline[kafka])."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stormline.spouts.kafka.settings import is_secret
from stormline.state.kafka.errors import InvalidKafkaSink
from stormline.state.kafka.two_phase import cannot_prepare
from stormline.topology.attempt import TransactionAttempt
from stormline.topology.context import TopologyContext
from stormline.topology.errors import MissingExtra
from stormline.topology.secrets import is_reference

if TYPE_CHECKING:
    from stormline.state.kafka.sink_resource import KafkaSinkResource
    from stormline.state.kafka.transaction import KafkaTransaction

OURS = {
    "bootstrap.servers": "use the argument servers",
    "transactional.id": "it is made of the ledger's name and the topology's id",
    "enable.idempotence": "transactions need it",
    "acks": "transactions need all",
    "request.required.acks": "transactions need all",
    "delivery.report.only.error": "nobody hears of deliveries: a transaction is written as a whole, or not",
    "on_delivery": "nobody hears of deliveries: a transaction is written as a whole, or not",
    "error_cb": "the sink listens itself",
    "logger": "what the client's library tells goes to the logger 'stormline.kafka'",
}
"""Settings of the client that are the sink's own, and why."""

TOPIC_CHARS_MAX = 249


@dataclass(frozen=True)
class KafkaSink:
    """Brokers to write to, as plain data: it can be declared in a module, printed, pickled; nothing is opened.

    Two equal sinks are one: all that a transaction of the topology writes there, by however many committers and tasks
    into however many topics, is one transaction of Kafka. With the records it holds the sink's *ledger*: a record of a
    compacted topic that says which transaction this is. Whatever crashes, a reader with `read_committed` sees each
    transaction's records once, and in each partition in the order of transactions.

    Where the brokers are away the batch is replayed until they are there.

    Args:
        servers (str): Brokers to begin with: `host1:9092,host2:9092`.
        ledger (str): The topic of the ledger; empty: `stormline-ledger-` and the topology's id. It is made where there
            is none, with the replication that the brokers give by default. The producer's `transactional.id` is
            `<ledger>/<topology id>`.
        client (Mapping[str, Any]): More settings of librdkafka's producer: `linger.ms`, `compression.type`,
            `partitioner` (here `murmur2_random`, as Java's producers have it), `security.protocol`, …; secrets by
            reference, `env:NAME` or `file:PATH`, read where the connection is made.
        timeout_secs (float): How many seconds to wait for an answer of the brokers, or for room in the queue.

    Raises:
        InvalidKafkaSink: An argument is out of range, a setting is the sink's own, or a secret is given as it is.
    """

    servers: str
    ledger: str = ""
    client: Mapping[str, Any] = field(default_factory=dict, hash=False)
    timeout_secs: float = 10.0

    def __post_init__(self) -> None:
        if not isinstance(self.servers, str) or not self.servers.strip():
            raise InvalidKafkaSink(f"servers is {self.servers!r}, expected text such as 'host1:9092,host2:9092'")
        if not isinstance(self.ledger, str):
            raise InvalidKafkaSink(f"ledger is {self.ledger!r}, expected the name of a topic, or ''")
        secs = self.timeout_secs
        if isinstance(secs, bool) or not isinstance(secs, (int, float)) or not 0 < secs < 1e6:
            raise InvalidKafkaSink(f"timeout_secs is {secs!r}, expected a number of seconds, more than 0")
        if not isinstance(self.client, Mapping):
            raise InvalidKafkaSink(f"client is a {type(self.client).__name__}, expected a dict of settings")
        for name, value in self.client.items():
            if name in OURS:
                raise InvalidKafkaSink(f"client holds {name!r}, which is set by the sink itself: {OURS[name]}")
            if is_secret(name) and not is_reference(value):
                raise InvalidKafkaSink(
                    f"client holds {name!r} with a value that is not shown here, expected a reference to the secret: "
                    "env:NAME or file:PATH"
                )

    def __str__(self) -> str:
        return f"kafka:{self.servers}"

    def __deepcopy__(self, memo: Any) -> KafkaSink:
        return self

    @property
    def no_two_phase_sink(self) -> str:
        """Why a `TwoPhaseCommitBolt` does not take it, and what does."""
        return cannot_prepare(f"a TwoPhaseCommitBolt got {self}", self.servers, "topic")

    def ledger_of(self, topology: str) -> str:
        """Return the name of the ledger's topic.

        Args:
            topology (str): The topology's id.

        Raises:
            InvalidKafkaSink: It is too long for a topic.
        """
        name = self.ledger or f"stormline-ledger-{topology}"
        if len(name) > TOPIC_CHARS_MAX:
            raise InvalidKafkaSink(
                f"the ledger {name!r} has {len(name)} characters, at most {TOPIC_CHARS_MAX} are taken; give the sink "
                "a shorter one: KafkaSink(…, ledger='…')"
            )
        return name

    def open_resource(self) -> KafkaSinkResource:
        """Return what the commit phases of one process take part by.

        Raises:
            MissingExtra: confluent-kafka is not installed.
        """
        try:
            from stormline.state.kafka.sink_resource import KafkaSinkResource
        except ImportError as error:
            raise MissingExtra.of("kafka", str(self), "confluent-kafka") from error
        return KafkaSinkResource(self)

    def in_commit(self, context: TopologyContext, attempt: TransactionAttempt) -> KafkaTransaction:
        """Return the transaction of the commit phase that runs; begin it where nobody has.

        It is committed, or aborted, with all else when the commit phase ends. Every transaction of the topology must
        begin one, also where it has nothing to write: one that the ledger never saw looks like one that it lost.

        Args:
            context (TopologyContext): What `prepare` was given.
            attempt (TransactionAttempt): What `prepare` was given.

        Raises:
            NotCommitting: The commit phase of `attempt` does not run here.
            StoreMismatch: The ledger holds another history than the topology's state.
            StoreUnavailable: The brokers do not answer: the batch is replayed.
            LedgerUnusable: The ledger's topic is not compacted, or holds what no sink wrote.
            KafkaRefused: The brokers do not let this client in.
        """
        transaction: KafkaTransaction = context.take_part(attempt, self, self.open_resource)  # type: ignore[assignment]
        return transaction

    def adopt(self, topology: str, txid: int) -> None:
        """Let a topology that has committed up to `txid` begin with this sink, whose ledger holds nothing of it.

        Args:
            topology (str): The topology's id.
            txid (int): The last transaction that it has committed without this sink.

        Raises:
            InvalidKafkaSink: The ledger holds something of this topology, or `txid` is no number of a transaction.
            StoreUnavailable, LedgerUnusable, KafkaRefused: As `in_commit`.
        """
        if type(txid) is not int or txid < 0:
            raise InvalidKafkaSink(f"{self} is to be adopted at transaction {txid!r}, expected a number from 0 on")
        resource = self.open_resource()
        try:
            resource.adopt(topology, txid)
        finally:
            resource.close()
