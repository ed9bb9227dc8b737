"""KafkaTransaction: one transaction of Kafka, shared by all committers and tasks of one commit phase."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from stormline.state.errors import StoreFailed, StoreUnavailable
from stormline.state.fence import Fence
from stormline.state.kafka.errors import RecordRefused
from stormline.topology.commit_participants import CommitToken

if TYPE_CHECKING:
    from stormline.state.kafka.sink_resource import OpenProducer

Headers = Mapping[str, str | bytes | None] | Sequence[tuple[str, str | bytes | None]]


@dataclass
class Group:
    """What transactions of the topology have in common that are one transaction of Kafka's.

    `held`: the tokens of those that have done their part. `broken`: why it cannot be committed any more.
    """

    name: str
    opened: OpenProducer
    held: list[CommitToken] = field(default_factory=list)
    broken: BaseException | None = None


class KafkaTransaction:
    """What one transaction of the topology writes. Tasks may send side by side: what one of them sends stays in order.

    By itself it is one transaction of Kafka's; in a group (`hold`, `follow`) it is a part of one.

    Args:
        group (Group): What it shares with others; by itself, with nobody.
        token (CommitToken): Who commits what.
        fence (Fence | None): What the ledger says where it holds this transaction already: the driver ended, or lost
            its turn, before it was recorded; or the answer to its commit got lost. Then what is sent is left out.
    """

    def __init__(self, group: Group, token: CommitToken, fence: Fence | None) -> None:
        self._group = group
        self._opened = group.opened
        self._name = group.name
        self.token = token
        self._fence = fence
        self.stored = fence is not None
        self._sent = False
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
        if self.stored:
            return
        if self._over:
            error = StoreFailed(
                f"{self._name} was used after the commit of {self.token.attempt} had ended; send only within the calls "
                "of a bolt in its commit phase, and let a thread of your own that sends end before them"
            )
            self._opened.late = error  # whoever sends may be a thread whose errors nobody hears
            raise error
        self._sent = True
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

    # ------------------------------------------------------------------------------------ as one of several

    def hold(self) -> None:
        """End its use; what it has sent becomes visible with what those that follow send."""
        self._over = True
        if self._error is not None:
            raise self._error
        self._group.held.append(self.token)

    def follow(self, token: CommitToken) -> KafkaTransaction | None:
        """Return what the next transaction writes in the same one of Kafka's; None: that has to begin anew.

        Args:
            token (CommitToken): of the transaction right behind this one.

        Raises:
            StoreFailed: Something was written too late for an earlier one, and is lost.
        """
        self._opened.raise_if_late()
        if self._fence is None:
            return KafkaTransaction(self._group, token, None)
        if token.txid > self._fence.txid:
            return None
        return KafkaTransaction(self._group, token, self._opened.holds(token, self._name))

    def drop(self) -> None:
        """Leave it out. Kafka undoes nothing but whole transactions: where it has sent, those before fail as well."""
        self._over = True
        if self._sent:
            self._group.broken = self._error or StoreUnavailable(
                f"{self._name}: {self.token.attempt} failed, whose records are in one transaction with those before; "
                "each is replayed by itself"
            )

    # ------------------------------------------------------------------------------------ as a participant

    def prepare(self) -> None:
        """Write the ledger's record behind all others, and wait until the brokers have all of them."""
        self._over = True
        held = self._group.held or [self.token]
        assert held[-1] == self.token, (held, self.token)
        error = self._group.broken if self._group.held else self._error
        if error is not None:
            raise error
        if not self.stored:
            self._left = Fence.of(self.token, tuple(token.commit_id for token in held[:-1]))
            self._opened.write(self._left)
            self._opened.producer.flush()

    def commit(self) -> None:
        """Commit it."""
        if not self.stored:
            self._opened.producer.commit()
            self._opened.fence = self._left

    def abort(self) -> None:
        """Abort it, with all that share it, so that no reader waits for its end."""
        self._over = True
        if not self.stored:
            self._opened.producer.abort()


def _plain(headers: Headers) -> Any:
    return dict(headers) if isinstance(headers, Mapping) else list(headers)
