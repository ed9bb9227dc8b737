"""What metrics and hooks must do on every engine: a committed attempt counts once, wherever it was counted."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

import pytest

from stormline import (
    AssignableMetric,
    BaseTaskHook,
    Config,
    CountMetric,
    IMetric,
    MeanReducer,
    MultiCountMetric,
    StormlineError,
    TransactionalTopologyBuilder,
    TransactionAttempt,
)
from stormline.errors import InvalidMetric
from tests.kits.components import NO_FAULT, Basic, Batch, Fault, Store, line, numbers
from tests.kits.spouts import CommitterSpout, PlainSpout, Ranges

PENDING_4 = {Config.TOPOLOGY_MAX_SPOUT_PENDING: 4}
PLACED = {**PENDING_4, Config.TOPOLOGY_COMMIT_PLACEMENT: "executors"}


class CountingBasic(Basic):
    """Counts its tuples before it may fail at the third one."""

    def prepare(self, conf: Any, context: Any) -> None:
        self.seen = context.register_counter("seen")

    def execute(self, tup: Any, collector: Any) -> None:
        self.seen.inc()
        super().execute(tup, collector)


class CountingBatch(Batch):
    """Has one metric of each kind."""

    def prepare(self, conf: Any, context: Any, collector: Any, batch_id: Any) -> None:
        super().prepare(conf, context, collector, batch_id)
        self.seen = context.register_counter("seen")
        self.meter = context.register_meter("marked")
        self.sizes = context.register_histogram("values")
        self.timer = context.register_timer("secs")
        context.register_gauge("txid", lambda: batch_id.transaction_id)
        self.old = context.register_metric("old", CountMetric(), 60)
        self.by_parity = context.register_metric("by parity", MultiCountMetric(), 60)
        self.mean = context.register_metric("mean", MeanReducer(), 60)
        self.newest = context.register_metric("newest", AssignableMetric(), 60)

    def execute(self, tup: Any) -> None:
        super().execute(tup)
        with self.timer.time():
            self.seen.inc()
            self.meter.mark()
            self.sizes.update(tup[1])
            self.old.incr()
            self.by_parity.scope(["even", "odd"][tup[1] % 2]).incr_by(2)
            self.mean.update(tup[1])
            self.newest.set_value(self.attempt.transaction_id)


class CountingStore(Store):
    """Counts in each of its calls."""

    def prepare(self, conf: Any, context: Any, collector: Any, batch_id: Any) -> None:
        self.executed, self.finished = context.register_counter("executed"), context.register_counter("finished")
        super().prepare(conf, context, collector, batch_id)

    def execute(self, tup: Any) -> None:
        self.executed.inc()
        super().execute(tup)

    def finish_batch(self) -> None:
        self.finished.inc()
        super().finish_batch()


class GatheringStore(CountingStore):
    gathers = ("values",)


class CountingSpout(CommitterSpout):
    """Its coordinator and its emitters count their calls."""

    def get_coordinator(self, conf: Any, context: Any) -> Any:
        begun = context.register_counter("begun")
        coordinator = super().get_coordinator(conf, context)
        initialize = coordinator.initialize_transaction

        def counted(txid: int, prev_metadata: Any) -> Any:
            begun.inc()
            return initialize(txid, prev_metadata)

        coordinator.initialize_transaction = counted
        return coordinator

    def get_emitter(self, conf: Any, context: Any) -> Any:
        emitted, committed = context.register_counter("emitted"), context.register_counter("committed")
        emitter = super().get_emitter(conf, context)
        emit_batch, commit = emitter.emit_batch, emitter.commit

        def counted(attempt: TransactionAttempt, metadata: Any, collector: Any) -> None:
            emitted.inc()
            emit_batch(attempt, metadata, collector)

        def counted_commit(attempt: TransactionAttempt) -> None:
            committed.inc()
            commit(attempt)

        emitter.emit_batch, emitter.commit = counted, counted_commit
        return emitter


class Unpicklable(Batch):
    def prepare(self, conf: Any, context: Any, collector: Any, batch_id: Any) -> None:
        super().prepare(conf, context, collector, batch_id)
        context.register_gauge("lock", threading.Lock)


class Doubled(IMetric):
    """A metric of the user's own."""

    def __init__(self) -> None:
        self.value = 0

    def get_value_and_reset(self) -> int:
        return 2 * self.value


class Clash(Batch):
    def prepare(self, conf: Any, context: Any, collector: Any, batch_id: Any) -> None:
        super().prepare(conf, context, collector, batch_id)
        context.register_counter("same")
        context.register_metric("same", Doubled(), 60)


class CountingHook(BaseTaskHook):
    """Counts in metrics what it hears: so it is seen from the driver wherever the task is."""

    def prepare(self, conf: Any, context: Any) -> None:
        self.context = context

    def emit(self, info: Any) -> None:
        self.context.register_counter("heard of emits").inc()
        self.context.register_metric("emitted by task", self.tasks()).scope(str(info.task_id)).incr()

    def bolt_execute(self, info: Any) -> None:
        assert info.execute_latency_ms >= 0
        assert info.executing_task_id == self.context.this_task_id
        self.context.register_counter("heard of executes").inc()

    def tasks(self) -> MultiCountMetric:
        if not hasattr(self, "_tasks"):
            self._tasks = MultiCountMetric()
        return self._tasks


class HookedBatch(Batch):
    def prepare(self, conf: Any, context: Any, collector: Any, batch_id: Any) -> None:
        super().prepare(conf, context, collector, batch_id)
        context.add_task_hook(CountingHook())


class HookedBasic(Basic):
    def prepare(self, conf: Any, context: Any) -> None:
        context.add_task_hook(CountingHook())


class HookedStore(Store):
    def prepare(self, conf: Any, context: Any, collector: Any, batch_id: Any) -> None:
        super().prepare(conf, context, collector, batch_id)
        context.add_task_hook(CountingHook())


class MetricsContract:
    """Mixed into the tests of each engine, with a fixture `cluster`."""

    def count(self, cluster: Any, topology: Any, config: Any = None) -> Mapping[str, Mapping[str, Any]]:
        handle = cluster.submit_topology(topology.id, config or PENDING_4, topology)
        handle.await_drained(90)
        handle.kill()
        assert handle.error is None
        metrics: Mapping[str, Mapping[str, Any]] = handle.metrics()
        return metrics

    def bolts(self, name: str, store: Any, fault: Fault = NO_FAULT) -> Any:
        return line(
            name,
            numbers(40),
            5,
            lambda b: b.set_bolt("basic", CountingBasic(fault), 2).shuffle_grouping("spout"),
            lambda b: b.set_bolt("batch", CountingBatch(), 2).shuffle_grouping("basic"),
            lambda b: b.set_bolt("store", store, 2).fields_grouping("batch", ["value"]),
        )

    def check(self, metrics: Mapping[str, Mapping[str, Any]], transactions: int) -> None:
        assert metrics["basic"] == {"seen": 40}
        assert metrics["store"] == {"executed": 40, "finished": 2 * transactions}
        batch = metrics["batch"]
        assert (batch["seen"], batch["old"], batch["by parity"]) == (40, 40, {"even": 40, "odd": 40})
        assert batch["mean"] == pytest.approx(19.5)
        assert (batch["txid"], batch["newest"]) == (transactions, transactions)
        assert batch["marked"]["count"] == 40
        assert batch["marked"]["mean_rate"] > 0
        values = batch["values"]
        assert (values["count"], values["mean"], values["min"], values["max"]) == (40, 19.5, 0, 39)
        assert values["p50"] == pytest.approx(19.5, abs=0.8)
        assert batch["secs"]["count"] == 40

    @pytest.mark.parametrize("store", [CountingStore, GatheringStore], ids=["as sent", "as gathered"])
    @pytest.mark.parametrize("config", [PENDING_4, PLACED], ids=["on the driver", "on the executors"])
    def test_each_kind_of_metric_counts_each_tuple_once(self, cluster: Any, name: str, store: Any, config: Any) -> None:
        self.check(self.count(cluster, self.bolts(name, store(name)), config), 4)

    @pytest.mark.parametrize("where", ["before", "after", "execute"])
    def test_an_attempt_that_fails_at_the_commit_counts_nothing(self, cluster: Any, name: str, where: str) -> None:
        store = CountingStore(name, Fault(where, txid=2, attempts=2))
        self.check(self.count(cluster, self.bolts(name, store)), 4)

    def test_an_attempt_that_fails_while_it_is_processed_counts_nothing(self, cluster: Any, name: str) -> None:
        self.check(self.count(cluster, self.bolts(name, CountingStore(name), Fault("execute", txid=2, attempts=2))), 4)

    def test_a_commit_on_the_executors_that_fails_counts_nothing(self, cluster: Any, name: str) -> None:
        store = CountingStore(name, Fault("after", txid=2, attempts=2))
        self.check(self.count(cluster, self.bolts(name, store), PLACED), 4)

    def test_a_basic_bolt_behind_a_committer_counts_what_was_committed(self, cluster: Any, name: str) -> None:
        fault = Fault("execute", txid=2, attempts=2)
        topology = line(
            name,
            numbers(40),
            5,
            lambda b: b.set_bolt("store", Store(name), 2).fields_grouping("spout", ["value"]),
            lambda b: b.set_bolt("behind", CountingBasic(fault)).shuffle_grouping("store"),
        )
        assert self.count(cluster, topology)["behind"] == {"seen": 8}

    def test_coordinators_and_emitters_count(self, cluster: Any, name: str) -> None:
        ranges = Ranges(name, 4, fault=Fault("emit", txid=2, attempts=2))
        builder = TransactionalTopologyBuilder(name, "spout", CountingSpout(ranges), 2)
        builder.set_bolt("store", Store(name)).global_grouping("spout")
        handle = cluster.submit_topology(name, PENDING_4, builder.build_topology())
        handle.await_committed(4, 60)
        handle.kill()
        assert handle.metrics()["spout"] == {"begun": 4, "emitted": 8, "committed": 8}

    def test_a_value_that_cannot_travel_is_told_with_its_metric(self, cluster: Any, name: str) -> None:
        topology = line(name, numbers(4), 2, lambda b: b.set_bolt("batch", Unpicklable()).shuffle_grouping("spout"))
        self.stops(cluster, topology, "component 'batch': the value of metric 'lock' cannot be sent to the driver")

    def test_a_name_that_is_another_metric_is_told(self, cluster: Any, name: str) -> None:
        topology = line(name, numbers(4), 2, lambda b: b.set_bolt("batch", Clash()).shuffle_grouping("spout"))
        self.stops(
            cluster,
            topology,
            "component 'batch' registers metric 'same' as a Doubled, and has a Counter of that name; give each its own",
        )

    def stops(self, cluster: Any, topology: Any, message: str) -> None:
        handle = cluster.submit_topology(topology.id, PENDING_4, topology)
        with pytest.raises(StormlineError, match=message) as caught:
            handle.await_drained(60)
        assert isinstance(caught.value.__cause__, InvalidMetric)

    # ------------------------------------------------------------------------------------ hooks

    @pytest.mark.parametrize("config", [PENDING_4, PLACED], ids=["on the driver", "on the executors"])
    def test_hooks_hear_of_every_tuple_wherever_their_task_is(self, cluster: Any, name: str, config: Any) -> None:
        topology = line(
            name,
            numbers(40),
            5,
            lambda b: b.set_bolt("basic", HookedBasic(), 2).shuffle_grouping("spout"),
            lambda b: b.set_bolt("batch", HookedBatch(), 2).shuffle_grouping("basic"),
            lambda b: b.set_bolt("store", HookedStore(name), 2).fields_grouping("batch", ["value"]),
            lambda b: b.set_bolt("behind", HookedBasic()).shuffle_grouping("store"),
        )
        metrics = self.count(cluster, topology, config)
        for component, executed, emitted in (("basic", 40, 40), ("batch", 40, 40), ("store", 40, 8), ("behind", 8, 8)):
            heard = metrics[component]
            assert (heard["heard of executes"], heard["heard of emits"]) == (executed, emitted), component
            assert sum(heard["emitted by task"].values()) == emitted

    def test_hooks_that_the_configuration_names_are_in_every_task(self, cluster: Any, name: str) -> None:
        ranges = Ranges(name, 3)
        builder = TransactionalTopologyBuilder(name, "spout", PlainSpout(ranges), 2)
        builder.set_bolt("batch", Batch()).shuffle_grouping("spout")
        builder.set_bolt("store", Store(name)).global_grouping("batch")
        hooks = [f"{__name__}.CountingHook"]
        handle = cluster.submit_topology(
            name, {**PENDING_4, Config.TOPOLOGY_AUTO_TASK_HOOKS: hooks}, builder.build_topology()
        )
        handle.await_committed(3, 60)
        handle.kill()
        heard = {component: metrics["heard of emits"] for component, metrics in handle.metrics().items()}
        assert heard == {"spout": 9, "batch": 9, "store": 3}

    def test_a_hook_that_raises_is_an_error_of_its_component(self, cluster: Any, name: str) -> None:
        topology = line(name, numbers(4), 2, lambda b: b.set_bolt("batch", BadlyHooked()).shuffle_grouping("spout"))
        handle = cluster.submit_topology(topology.id, PENDING_4, topology)
        with pytest.raises(StormlineError, match="ZeroDivisionError in execute of 'batch', task 2: in the hook"):
            handle.await_drained(60)


class Raises(BaseTaskHook):
    def bolt_execute(self, info: Any) -> None:
        raise ZeroDivisionError("in the hook")


class BadlyHooked(Batch):
    def prepare(self, conf: Any, context: Any, collector: Any, batch_id: Any) -> None:
        super().prepare(conf, context, collector, batch_id)
        context.add_task_hook(Raises())
