"""KafkaTransaction: one transaction of Kafka, shared by all committers and tasks of one commit phase."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from stormline.state.errors import StoreFailed
from stormline.state.fence import Fence
from stormline.state.kafka.errors import RecordRefused
from stormline.topology.commit_participants import CommitToken

if TYPE_CHECKING:
    from stormline.state.kafka.sink_resource import OpenProducer

Headers = Mapping[str, str | bytes | None] | Sequence[tuple[str, str | bytes | None]]


class KafkaTransaction:
    """Takes part in a commit phase. Tasks may send side by side: what one of them sends stays in its order.

    Args:
        name (str): What messages call the sink.
        opened (OpenProducer): The producer.
        token (CommitToken): Who commits what.
        stored (bool): Whether the ledger holds this transaction already: the driver ended, or lost its turn, before it
            was recorded; or the answer to its commit got lost. Then what is sent is left out.
    """

    def __init__(self, name: str, opened: OpenProducer, token: CommitToken, stored: bool) -> None:
        self._name = name
        self._opened = opened
        self.token = token
        self.stored = stored
        self._error: BaseException | None = None
        self._over = False

    def send(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None = None,
        headers: Headers | None = None,
        timestamp: int | datetime | None = None,
        partition: int | None = None,
    ) -> None:
        """Write a record in this transaction. What fails here fails the transaction, whoever catches it.

        Args:
            topic (str): Where to; it must exist.
            value (bytes | None): None marks the key as removed, in a compacted topic.
            key (bytes | None): Records of one key go to one partition, unless `partition` says which.
            headers (Headers | None): Names with text, bytes or None; in a list a name may come again.
            timestamp (int | datetime | None): Milliseconds since 1970, or a datetime with a time zone; None: now.
            partition (int | None): Its number; None: the partitioner says it.

        Raises:
            RecordRefused: It is too large, or no record: the topology stops.
            TopicMissing: There is no such topic.
            KafkaRefused: This user may not write there.
            StoreUnavailable: The brokers are away, or take nothing: the batch is replayed.
            StoreFailed: The commit phase has ended.
        """
        if self._over:
            raise StoreFailed(
                f"{self._name} was used after the commit of {self.token.attempt} had ended; send only within the calls "
                "of a bolt in its commit phase, in the thread that they are made in"
            )
        if self.stored:
            return
        more: dict[str, Any] = {}
        if key is not None:
            more["key"] = key
        try:
            if headers is not None:
                more["headers"] = headers if isinstance(headers, (dict, list)) else _plain(headers)
            if timestamp is not None:
                more["timestamp"] = self._millis(timestamp, topic)
            if partition is not None:
                more["partition"] = partition
            self._opened.producer.send(topic, value, more)
        except BaseException as error:
            self._error = self._error or error
            raise

    def _millis(self, timestamp: int | datetime, topic: str) -> int:
        if isinstance(timestamp, datetime) and timestamp.tzinfo is not None:
            return round(timestamp.timestamp() * 1000)
        if type(timestamp) is int and timestamp > 0:  # the library takes 0 for now
            return timestamp
        raise RecordRefused(
            f"{self._name}: a record for topic {topic!r} has the timestamp {timestamp!r}, expected ms since 1970 of at "
            "least 1, or a datetime with a time zone"
        )

    def prepare(self) -> None:
        """Write the ledger's record behind all others, and wait until the brokers have all of them."""
        self._over = True
        if self._error is not None:
            raise self._error
        if not self.stored:
            self._opened.write(Fence.of(self.token))
            self._opened.producer.flush()

    def commit(self) -> None:
        """Commit it."""
        if not self.stored:
            self._opened.producer.commit()
            self._opened.fence = Fence.of(self.token)

    def abort(self) -> None:
        """Abort it, so that no reader waits for its end."""
        self._over = True
        if not self.stored:
            self._opened.producer.abort()


def _plain(headers: Headers) -> Any:
    return dict(headers) if isinstance(headers, Mapping) else list(headers)
