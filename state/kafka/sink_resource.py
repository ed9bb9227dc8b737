"""KafkaSinkResource: a sink as one process uses it for one topology: a producer that lives as long as it may."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stormline.state.errors import StoreFailed
from stormline.state.fence import Fence, stored_by
from stormline.state.kafka.errors import InvalidKafkaSink
from stormline.state.kafka.ledger import PARTITION, Ledger
from stormline.state.kafka.ledger_record import key_of, to_value
from stormline.state.kafka.producer import KafkaProducer
from stormline.state.kafka.sink import KafkaSink
from stormline.state.kafka.transaction import Group, KafkaTransaction
from stormline.topology.commit_participants import WHOLE_TOPOLOGY, CommitToken

if TYPE_CHECKING:
    from stormline.topology.serialization import Registry


class OpenProducer:
    """A producer after its init, and what the ledger holds: what it read then, or has committed since."""

    def __init__(self, sink: KafkaSink, topology: str) -> None:
        self.ledger = sink.ledger_of(topology)
        self.key = key_of(topology, WHOLE_TOPOLOGY)
        self.late: StoreFailed | None = None
        transactional_id = f"{self.ledger}/{topology}"
        ledger = Ledger(sink, self.ledger, transactional_id)
        self.producer = KafkaProducer(sink, transactional_id)
        try:
            # In this order: before the init is over, one that was taken over may still commit.
            self.producer.init()
            ledger.make_sure()
            self.fence = ledger.read().get(self.key)
        except BaseException:
            self.producer.drop()
            raise

    def holds(self, token: CommitToken, name: str) -> Fence | None:
        """Return what the ledger says, where it holds this transaction already.

        Raises:
            StoreMismatch: it is of another history.
        """
        fences = {WHOLE_TOPOLOGY: self.fence} if self.fence is not None else {}
        return stored_by(token, self.fence, fences, f"{name}, ledger {self.ledger!r},")

    def raise_if_late(self) -> None:
        """Raise what nobody may have heard: something was sent in a transaction that had ended."""
        if self.late is not None:
            raise self.late

    def write(self, fence: Fence) -> None:
        """Write what the transaction leaves behind."""
        self.producer.send(self.ledger, to_value(fence), {"key": self.key, "partition": PARTITION})


class KafkaSinkResource:
    """Where the transactions of one topology begin, in one process."""

    def __init__(self, sink: KafkaSink) -> None:
        self.name = str(sink)
        self._sink = sink
        self._opened: OpenProducer | None = None

    def begin(self, token: CommitToken, registry: Registry) -> KafkaTransaction:
        """Begin a transaction; none where the ledger holds it already."""
        if token.scope != WHOLE_TOPOLOGY:
            raise InvalidKafkaSink(
                f"{token.scope} writes to {self.name} from an executor, where each task would be a transaction of its "
                "own; commit in the driver: topology.commit.placement=driver"
            )
        opened = self._open(token.topology)
        fence = opened.holds(token, self.name)
        if fence is None:
            opened.producer.begin()
        return KafkaTransaction(Group(self.name, opened), token, fence)

    def _open(self, topology: str) -> OpenProducer:
        if self._opened is not None:
            self._opened.raise_if_late()
        if self._opened is None or not self._opened.producer.usable:
            self._opened = None
            self._opened = OpenProducer(self._sink, topology)
        return self._opened

    def adopt(self, topology: str, txid: int) -> None:
        """Write that a topology has committed up to `txid` without this sink."""
        opened = self._open(topology)
        if opened.fence is not None:
            raise InvalidKafkaSink(
                f"{self.name}, ledger {opened.ledger!r}, holds transaction {opened.fence.txid} of topology "
                f"{topology!r}, and is to be adopted at {txid}; adopt a sink whose ledger holds nothing of the topology"
            )
        opened.producer.begin()
        opened.write(Fence(0, txid, 0, 0))
        opened.producer.commit()

    def close(self) -> None:
        """End the producer."""
        if self._opened is not None:
            self._opened.producer.drop()
            self._opened = None
