"""Emitters and coordinators that answer what is no answer: no position, no number, nothing that can be stored."""

from __future__ import annotations

from typing import Any

import pytest

from stormline import IOpaquePartitionedTransactionalSpout, IPartitionedTransactionalSpout, TransactionAttempt
from stormline.runtime.cluster.in_process_cluster import InProcessCluster
from stormline.runtime.errors import TopologyFailed
from stormline.runtime.state.memory_store import MemoryStateServer
from tests.kits.components import LEDGERS
from tests.kits.in_process import submit
from tests.kits.own_emitter import OwnEmitter


class Thing:
    """Not registered."""


class Answers(OwnEmitter):
    """Emits `rows` tuples of partition 0 in each batch, and answers for batch 2 what it is told."""

    def __init__(self, partitions: Any = 1, position: Any = 2, rows: int = 2, txid: int = 2) -> None:
        self.partitions = partitions
        self.position = position
        self.rows = rows
        self.txid = txid

    def num_partitions(self) -> Any:
        return self.partitions

    def _new(self, attempt: TransactionAttempt, collector: Any, last: Any) -> Any:
        start = last or 0
        odd = attempt.transaction_id == self.txid
        rows = self.rows if odd else 2
        for offset in range(start, start + rows):
            collector.emit([attempt, offset])
        return self.position if odd and self.position != 2 else start + rows


class AnswersOpaque(Answers, IOpaquePartitionedTransactionalSpout):
    def emit_partition_batch(self, attempt: Any, collector: Any, partition: int, last: Any) -> Any:
        return self._new(attempt, collector, last)


class AnswersPartitioned(Answers, IPartitionedTransactionalSpout):
    def emit_partition_batch_new(self, attempt: Any, collector: Any, partition: int, last: Any) -> Any:
        return self._new(attempt, collector, last)

    def emit_partition_batch(self, attempt: Any, collector: Any, partition: int, metadata: Any) -> None:
        for offset in range(max(0, (metadata or 0) - 2), metadata or 0):
            collector.emit([attempt, offset])


def refusal_of(wrong: Any, mended: Any, committed: int) -> str:
    """Return why a topology stops after `committed`; with the mended spout the same state goes on to 4."""
    server = MemoryStateServer()
    with InProcessCluster(server) as cluster:
        handle = submit(cluster, wrong)
        with pytest.raises(TopologyFailed) as failed:
            handle.await_committed(4, 20)
    assert handle.txid_committed == committed
    with InProcessCluster(server) as cluster:
        handle = submit(cluster, mended)
        handle.await_committed(4, 20)
    values = LEDGERS["t"].all()
    assert sorted(values) == list(range(len(values)))
    return str(failed.value)


def test_an_opaque_emitter_that_emits_and_gives_no_position_stops_the_topology_before_the_batch_is_fixed() -> None:
    message = refusal_of(AnswersOpaque(position=None), AnswersOpaque(), 1)
    assert message.startswith("topology 't' stopped: PositionMissing in the emitter of 'spout', task 1: ")
    assert (
        "emit_partition_batch of opaque spout 'spout' emitted 2 tuples of partition 0 for transaction 2:1 and"
        in message
    )
    assert "returned None; expected metadata, the position after them" in message
    assert "return metadata in every branch that emits" in message


@pytest.mark.parametrize(("txid", "rows", "last"), [(1, 2, None), (2, 2, 2), (2, 0, 2)])
def test_a_partitioned_emitter_that_gives_no_position_stops_the_topology_before_its_partition_is_read_again(
    txid: int, rows: int, last: Any
) -> None:
    wrong = AnswersPartitioned(position=None, rows=rows, txid=txid)
    message = refusal_of(wrong, AnswersPartitioned(), txid - 1)
    assert "PositionMissing in the emitter of 'spout', task 1: emit_partition_batch_new of spout 'spout'" in message
    assert f"emitted {rows} tuples of partition 0 for transaction {txid}:1 and returned None; its metadata" in message
    assert f"before was {last}. Expected metadata that says which tuples these are" in message
    assert "Return metadata in every branch" in message


@pytest.mark.parametrize("spout", [AnswersOpaque, AnswersPartitioned])
def test_a_partition_that_has_never_given_anything_needs_no_position(spout: Any) -> None:
    with InProcessCluster() as cluster:
        submit(cluster, spout(position=None, rows=0, txid=1)).await_committed(3, 20)
    assert LEDGERS["t"].all()[:4] == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("spout", "who"),
    [(AnswersOpaque, "the emitter of opaque spout 'spout', task 1"), (AnswersPartitioned, "the coordinator of spout")],
)
@pytest.mark.parametrize("answer", [2.0, None, "2", -1, True])
def test_a_number_of_partitions_that_is_none_is_refused_and_a_mended_spout_goes_on(
    spout: Any, who: str, answer: Any
) -> None:
    message = refusal_of(spout(partitions=answer), spout(), 0)
    assert f": num_partitions() of {who}" in message
    assert (
        f" returned {answer!r}, of type {type(answer).__name__}; expected how many partitions there are now" in message
    )
    assert "an int of 0 or more: return len() of a list of them" in message


@pytest.mark.parametrize("spout", [AnswersOpaque, AnswersPartitioned])
def test_metadata_of_a_partition_that_cannot_be_stored_names_spout_and_partition(spout: Any) -> None:
    message = refusal_of(spout(position=Thing()), spout(), 1)
    assert f"metadata that spout 'spout' gave for partition 0: class {Thing.__module__}.Thing is" in message


class EmitsThings(Answers, IOpaquePartitionedTransactionalSpout):
    def emit_partition_batch(self, attempt: Any, collector: Any, partition: int, last: Any) -> Any:
        collector.emit([attempt, Thing()])


def test_what_an_opaque_emitter_emits_unregistered_is_named_with_component_stream_and_field() -> None:
    message = r"'spout' emitted to stream 'default', field 'value': class \S*Thing is not registered"
    with InProcessCluster() as cluster, pytest.raises(TopologyFailed, match=message):
        submit(cluster, EmitsThings()).await_committed(1, 20)
