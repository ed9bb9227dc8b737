"""Every error of the runtime says who, what was got, and what to do; those that no other test reads are read here."""

from __future__ import annotations

from typing import Any

import pytest

from stormline import Config, TransactionalTopologyBuilder, TransactionAttempt, compile_topology
from stormline.runtime.cluster.in_process_cluster import InProcessCluster
from stormline.runtime.cluster.in_process_engine import InProcessEngine
from stormline.runtime.coordination.batch_store import BATCHES, COMMITTED, Batches
from stormline.runtime.errors import JavaMissing, StateCorrupt, UnsafeSpark
from stormline.runtime.messages.wave import PartitionBatch, Wave, WaveAttempt
from stormline.runtime.spark import java
from stormline.runtime.spark.settings import check_safe
from stormline.runtime.state.memory_store import MemoryStateServer, MemoryStateStore
from stormline.runtime.state.state_store import Put
from stormline.runtime.tasks.task_environment import TaskEnvironment, registry_of
from stormline.topology.errors import InvalidRegistration, StaleEmit, UnknownComponent, UnknownStream
from tests.kits.components import EVENTS, LEDGERS, Batch, Fault, Store, line
from tests.kits.spouts import ChangingOpaqueSpout, PartitionedSpout, PlainSpout, Ranges

ATTEMPT = TransactionAttempt(1, 2)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({COMMITTED: 3}, r"committed transaction is stored as 3, expected a txid"),
        ({COMMITTED: {"txid": 0}}, r"committed transaction is stored as {'txid': 0}, expected a txid"),
        ({COMMITTED: {"txid": 3}}, r"transaction 3 is stored as committed, beside the batches \[\]; expected .* 3 on"),
        ({f"{BATCHES}/{1:012}": {"metadata": 1}}, r"stored batch of transaction 1 is {'metadata': 1}: 'partitions'"),
    ],
)
def test_a_state_that_was_meddled_with_is_refused(values: dict[str, Any], message: str) -> None:
    store = MemoryStateStore.open(MemoryStateServer(), "t")
    store.write([Put(path, value) for path, value in values.items()])
    with pytest.raises(StateCorrupt, match=message + r".*nothing was changed"):
        Batches(store)


def process(spout: Any, attempt: WaveAttempt) -> str:
    builder = TransactionalTopologyBuilder("t", "spout", spout)
    builder.set_bolt("x", Batch()).shuffle_grouping("spout")
    engine = InProcessEngine(TaskEnvironment(compile_topology(builder.build_topology()), 1))
    failure = engine.process(Wave(1, (attempt,))).attempts[0].failure
    assert failure is not None
    assert not failure.fatal
    return failure.message


def test_a_partition_that_gives_another_number_of_tuples_after_its_commit_began_says_so() -> None:
    stored = {0: PartitionBatch([0, 3], 3), 1: PartitionBatch([0, 3], 4)}
    message = process(PartitionedSpout(Ranges("t", 1)), WaveAttempt(ATTEMPT, 2, stored, 7, frozen=True))
    assert "partition 1 of spout 'spout' gave 3 tuples for transaction 1:2; it gave 4 when its commit began" in message


def test_an_opaque_partition_that_gives_other_tuples_after_its_commit_began_says_so() -> None:
    spout = ChangingOpaqueSpout()
    spout.available = ["other", "rows"]
    message = process(spout, WaveAttempt(ATTEMPT, None, {0: PartitionBatch(3, 3, 1)}, 3, frozen=True))
    assert "partition 0 of opaque spout 'spout' gave 2 tuples" in message
    assert "that are not the 3 it gave when its commit began; the transaction waits" in message


class Shrinking(PlainSpout):
    """Gives fewer tuples on the second attempt; and all of them again on the third."""

    def get_emitter(self, conf: Any, context: Any) -> Any:
        emitter = super().get_emitter(conf, context)
        emit = emitter.emit_batch

        def emit_batch(attempt: TransactionAttempt, metadata: Any, collector: Any) -> None:
            emit(attempt, {**metadata, "to": metadata["to"] - (attempt.attempt_id == 2)}, collector)

        emitter.emit_batch = emit_batch
        return emitter


def test_a_batch_of_another_number_of_tuples_after_its_commit_began_is_not_committed(caplog: Any) -> None:
    builder = TransactionalTopologyBuilder("t", "spout", Shrinking(Ranges("t", 1, hesitant=False)))
    builder.set_bolt("store", Store("t", Fault("after", txid=1))).global_grouping("spout")
    with InProcessCluster() as cluster:
        cluster.submit_topology("t", {}, builder.build_topology()).await_committed(1, 10)
    assert [attempt.attempt_id for attempt in LEDGERS["t"].finished] == [1, 3]
    assert "transaction 1:2 gave 2 tuples; it gave 3 when its commit began, and must be the same batch" in caplog.text


def test_a_context_names_what_there_is() -> None:
    plan = compile_topology(line("t", {}, 1, lambda b: b.set_bolt("store", Store("t")).shuffle_grouping("spout")))
    context = TaskEnvironment(plan, 1).context("store", 2)
    with pytest.raises(UnknownComponent, match=r"no component 'stroe'; it has \['spout', 'store'\]; did you mean 'sto"):
        context.component_tasks("stroe")
    with pytest.raises(UnknownStream, match=r"'store' has no stream 'defautl'; it declares \['default'\]; did you"):
        context.component_output_fields("store", "defautl")


class Own:
    """Registered by two components."""


class One:
    def to_data(self, obj: Any) -> Any: ...

    def from_data(self, data: Any) -> Any: ...


class Other(One):
    pass


def test_components_that_register_a_class_differently_are_refused() -> None:
    def declare(builder: TransactionalTopologyBuilder) -> None:
        for name, serializer in (("a", One), ("b", Other)):
            config = Config()
            config.register_serialization(Own, serializer)
            builder.set_bolt(name, Batch()).shuffle_grouping("spout").add_configurations(config)

    message = r"components 'a' and 'b' register .*Own with different serializers; register it once"
    with pytest.raises(InvalidRegistration, match=message):
        registry_of(compile_topology(line("t", {}, 1, declare)))


class Keeps(Batch):
    def prepare(self, conf: Any, context: Any, collector: Any, batch_id: Any) -> None:
        super().prepare(conf, context, collector, batch_id)
        KEPT.append(collector)


KEPT: list[Any] = []


def test_a_collector_that_outlives_its_attempt_refuses_tuples() -> None:
    with InProcessCluster() as cluster:
        topology = line("t", {0: [1]}, 1, lambda b: b.set_bolt("x", Keeps()).shuffle_grouping("spout"))
        cluster.submit_topology("t", {}, topology).await_drained(10)
    message = r"'x', task 2 emits for attempt 1:1, which has ended; its tuples are ignored"
    with pytest.raises(StaleEmit, match=message):
        KEPT[0].emit([TransactionAttempt(1, 1), 5])


class Waits(Store):
    def finish_batch(self) -> None:
        EVENTS["waits"].set()
        EVENTS["go on"].wait(20)
        super().finish_batch()


def test_a_kill_that_waits_too_long_says_so_and_goes_on() -> None:
    with InProcessCluster() as cluster:
        topology = line("t", {0: [1, 2]}, 1, lambda b: b.set_bolt("store", Waits("t")).shuffle_grouping("spout"))
        handle = cluster.submit_topology("t", {}, topology)
        assert EVENTS["waits"].wait(10)
        with pytest.raises(TimeoutError, match=r"topology 't' has not stopped within 0.05 s"):
            handle.kill(0.05)
        EVENTS["go on"].set()
        handle.kill()
        assert handle.txid_committed == 1, "the commit that ran was finished, and no other one begun"


def test_spark_on_a_cluster_must_not_run_a_task_twice() -> None:
    with pytest.raises(UnsafeSpark, match=r"spark\.\S+ is not set, expected \S+: replays belong to .*--conf spark\."):
        check_safe("spark://host:7077", {})


def test_a_java_that_is_missing_broken_or_old_is_told_apart(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(JavaMissing, match=r"no java was found: "):
        java.check_java()
    script = tmp_path / "java"
    for text, message in (
        ("no program", r"cannot be run \("),
        ("#!/bin/sh\necho 'openjdk version \"11.0.2\"' >&2", r"is Java 11"),
    ):
        script.write_text(text)
        script.chmod(0o755)
        with pytest.raises(JavaMissing, match=message):
            java.check_java()
