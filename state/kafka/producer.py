"""KafkaProducer: confluent-kafka's transactional producer, whose errors say what they mean for the engine."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NoReturn

from confluent_kafka import KafkaError, KafkaException, Producer

from stormline.spouts.kafka.client_log import CLIENT_LOG, Heard
from stormline.spouts.kafka.settings import is_secret
from stormline.state.errors import StoreUnavailable
from stormline.state.kafka.errors import RecordRefused
from stormline.state.kafka.meanings import meaning_of, refusal_in
from stormline.state.kafka.sink import KafkaSink
from stormline.topology.secrets import resolve_secret

log = logging.getLogger("stormline")

SLICE_SECS = 0.5
"""So long one call waits, before it is looked why there is no answer."""

APPEARS_SECS = 3.0
"""How long a topic may be unknown to a broker before it is told that there is none."""
LOOK_SECS = 0.1


def client_settings(sink: KafkaSink) -> dict[str, Any]:
    """Return the settings that all clients of a sink have, with the secrets that they refer to, read now."""
    resolved = {
        name: resolve_secret(value, f"the Kafka setting {name}") if is_secret(name) else value
        for name, value in sink.client.items()
    }
    return {"bootstrap.servers": sink.servers, "logger": CLIENT_LOG, **resolved}


class KafkaProducer:
    """One producer, from its `init_transactions` to its end. `send` may be called from several threads, the rest not.

    `usable`: another transaction may begin with it. After an error that leaves its state, or the outcome of a commit,
    unknown, a new producer has to find it out: its init ends what is open, and then the ledger tells.
    """

    def __init__(self, sink: KafkaSink, transactional_id: str) -> None:
        self._name = str(sink)
        self._id = transactional_id
        self._timeout = sink.timeout_secs
        self._heard = Heard()
        self._partitions: dict[str, int] = {}
        self.usable = True
        settings = {
            "partitioner": "murmur2_random",  # Java's: so that what it writes and what we write of a key meet
            "error_cb": self._heard,
            **client_settings(sink),
            "transactional.id": transactional_id,
            "delivery.report.only.error": True,
        }
        with self._told("making a producer"):
            self._producer: Producer | None = Producer(settings)

    def init(self) -> None:
        """Fence whoever had this transactional.id before; what they left open, or prepared, has ended then."""
        self._until_done("beginning as a producer", lambda p, secs: p.init_transactions(secs))

    def begin(self) -> None:
        """Begin a transaction."""
        with self._told("beginning a transaction"):
            self._open.begin_transaction()

    def send(self, topic: str, value: bytes | None, more: Mapping[str, Any]) -> None:
        """Let a record go out as soon as it may, in the transaction; wait while the queue is full.

        Args:
            topic: where to.
            value: of the record.
            more: key, headers, timestamp, partition, as confluent-kafka calls them.
        """
        partition = more.get("partition")
        if partition is not None or topic not in self._partitions:
            self._check(topic, partition)
        try:
            self._open.produce(topic, value, **more)
        except BufferError:
            self._send_when_there_is_room(topic, value, more)
        except (KafkaException, TypeError, ValueError) as error:
            self._refused(topic, error)

    def _send_when_there_is_room(self, topic: str, value: bytes | None, more: Mapping[str, Any]) -> None:
        deadline = time.monotonic() + self._timeout
        while time.monotonic() < deadline:
            with self._told(_writing(topic)):
                self._open.poll(min(SLICE_SECS, self._timeout) / 10)
            try:
                self._open.produce(topic, value, **more)
                return
            except BufferError:
                continue
            except (KafkaException, TypeError, ValueError) as error:
                self._refused(topic, error)
        raise StoreUnavailable(
            f"{self._name}: {_writing(topic)}: the queue was full for {self._timeout} s: the brokers take less than is "
            "written (queue.buffering.max.messages and .kbytes in client={…} say how much waits); the batch is replayed"
        )

    def _refused(self, topic: str, error: Exception) -> NoReturn:
        """Raise what it means that a record was not taken."""
        with self._told(_writing(topic)):
            if not isinstance(error, KafkaException):
                raise RecordRefused(f"{self._name}: {_writing(topic)}: {error}") from error
            if error.args[0].code() in (KafkaError._STATE, KafkaError._FATAL):
                self._tell_why(error)
            raise error

    def _check(self, topic: str, partition: int | None) -> None:
        """Ask for a topic that is not known: only then the library knows how many partitions it has, too."""
        known = self._partitions.get(topic)
        if known is None or (partition is not None and partition >= known):
            known = self._partitions[topic] = self._found(topic, _writing(topic))
        if partition is not None and not 0 <= partition < known:
            raise RecordRefused(
                f"{self._name}: {_writing(topic)}: a record is for partition {partition}, and the topic has {known}; "
                "add partitions, or give another number"
            )

    def _tell_why(self, error: KafkaException) -> NoReturn:
        """Raise why a transaction takes no more records: only a commit says so, which fails for the same reason."""
        self._open.commit_transaction(SLICE_SECS)
        raise AssertionError(f"{self._id} has committed a transaction that took no more records") from error

    def _found(self, topic: str, what: str) -> int:
        """Return how many partitions a topic has; a broker that has just begun may not know of it yet."""
        deadline = time.monotonic() + min(APPEARS_SECS, self._timeout)
        while True:
            with self._told(what):
                found = self._open.list_topics(topic, timeout=self._timeout).topics[topic]
            if found.error is None:
                return len(found.partitions)
            if found.error.code() != KafkaError.UNKNOWN_TOPIC_OR_PART or time.monotonic() >= deadline:
                raise self._meaning(found.error, what)
            time.sleep(LOOK_SECS)

    def flush(self) -> None:
        """Wait until the brokers have all that was sent, and have told so."""
        deadline = time.monotonic() + self._timeout
        with self._told("writing"):
            while left := self._open.flush(min(SLICE_SECS, self._timeout)):
                if time.monotonic() > deadline:
                    break
        if left:
            raise StoreUnavailable(
                f"{self._name}: {left} records were not taken within {self._timeout} s"
                f"{''.join(f'; {error.str()}' for error in self._heard.errors)}; the batch is replayed"
            )

    def commit(self) -> None:
        """Make all that was sent visible; it fails where any record did. What raises may have committed all the same,
        and is not usable then.
        """
        try:
            self._until_done("committing", lambda p, secs: p.commit_transaction(secs))
        except BaseException as error:
            cause = error.__cause__
            if not isinstance(cause, KafkaException) or not cause.args[0].txn_requires_abort():
                self.drop()
            raise

    def abort(self) -> None:
        """Abort the transaction; where that fails the producer is dropped, and the next one's init does it."""
        if self._producer is None:
            return
        self._partitions.clear()  # a topic may have been what failed
        try:
            self._until_done("aborting", lambda p, secs: p.abort_transaction(secs))
        except Exception:
            log.debug("aborting a transaction of %s", self._id, exc_info=True)
            self.drop()

    def drop(self) -> None:
        """End its threads and connections, now; a transaction that is open stays so until another producer's init."""
        self.usable = False
        self._producer = None  # close() would try to abort, and warn where it cannot

    @property
    def _open(self) -> Producer:
        if self._producer is None:
            raise StoreUnavailable(f"{self._name}: the producer {self._id!r} has ended; the batch is replayed")
        return self._producer

    def _until_done(self, what: str, call: Callable[[Producer, float], None]) -> None:
        """Call again while the library says that the same call may go on, until the time is over."""
        deadline = time.monotonic() + self._timeout
        with self._told(what):
            while True:
                try:
                    call(self._open, max(0.01, min(SLICE_SECS, deadline - time.monotonic())))
                except KafkaException as error:
                    over = time.monotonic() >= deadline
                    if over or not error.args[0].retriable() or error.args[0].code() == KafkaError._CONFLICT:
                        raise
                    self._open.poll(0)  # lets the library tell why
                    if refusal_in(self._heard.errors) is not None:
                        raise
                else:
                    self._heard.forget()
                    return

    @contextmanager
    def _told(self, what: str) -> Iterator[None]:
        """Raise an error of the library's as what it means."""
        try:
            yield
        except KafkaException as error:
            cause: KafkaError = error.args[0]
            if cause.fatal():
                self.drop()
            raise self._meaning(cause, what) from error

    def _meaning(self, error: KafkaError, what: str) -> Exception:
        return meaning_of(error, f"{self._name}: {what}", self._id, self._heard.errors)


def _writing(topic: str) -> str:
    return f"writing to topic {topic!r}"
