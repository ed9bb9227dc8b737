"""How a running topology stops, is refused, and is replayed in time, on any engine; beside `RunningContract`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from stormline import TransactionalTopologyBuilder
from stormline.runtime.errors import AlreadyRunning, TooManyAttempts, TopologyChanged, TopologyFailed, TopologyStopped
from tests.contracts.running import PENDING_4
from tests.kits.components import LEDGERS, NO_FAULT, Batch, Fault, Store, line, numbers
from tests.kits.spouts import PlainSpout, Ranges


class StoppingContract:
    """Needs what `RunningContract` has: `name`, `drain` and `finish`."""

    drain: Callable[..., Any]
    finish: Callable[..., Any]

    # -------------------------------------------------------------------------------- stopping

    @pytest.mark.parametrize("error", ["bug", "exit"])
    def test_another_exception_stops_at_its_transaction_and_the_next_run_goes_on(
        self, cluster: Any, name: str, error: str
    ) -> None:
        def topology(fault: Fault) -> Any:
            return line(
                name,
                numbers(40),
                5,
                lambda b: b.set_bolt("x", Batch(fault), 2).shuffle_grouping("spout"),
                lambda b: b.set_bolt("store", Store(name)).global_grouping("x"),
            )

        handle = cluster.submit_topology(name, PENDING_4, topology(Fault("execute", txid=3, error=error)))
        with pytest.raises(TopologyFailed) as caught:
            handle.await_drained(60)
        message = str(caught.value)
        assert message.startswith("Traceback (most recent call last):\n")
        assert "kits/components.py" in message.splitlines()[1]
        assert "in execute of 'x', task" in message
        assert "(transaction 3:1)" in message
        assert handle.error is caught.value
        assert isinstance(caught.value.__cause__, ZeroDivisionError if error == "bug" else SystemExit)
        assert handle.txid_committed == 2, "those before it are committed"
        again = self.drain(cluster, topology(NO_FAULT))
        assert sorted(self.finish(again).all()) == list(range(40))

    def test_an_exception_in_a_commit_stops_and_the_next_run_goes_on(self, cluster: Any, name: str) -> None:
        def topology(fault: Fault) -> Any:
            return line(
                name, numbers(40), 5, lambda b: b.set_bolt("store", Store(name, fault)).shuffle_grouping("spout")
            )

        handle = cluster.submit_topology(name, PENDING_4, topology(Fault("after", txid=3, error="bug")))
        with pytest.raises(TopologyFailed, match=r"in finish_batch of 'store'"):
            handle.await_drained(60)
        assert handle.txid_committed == 2
        assert sorted(self.finish(self.drain(cluster, topology(NO_FAULT))).all()) == list(range(40))

    def test_an_exception_in_a_coordinator_stops(self, cluster: Any, name: str) -> None:
        spout = PlainSpout(Ranges(name, 4, fault=Fault("initialize", txid=2, error="bug")))
        builder = TransactionalTopologyBuilder(name, "spout", spout)
        builder.set_bolt("store", Store(name)).global_grouping("spout")
        handle = cluster.submit_topology(name, PENDING_4, builder.build_topology())
        with pytest.raises(TopologyFailed, match=r"(?s)\ATraceback.*in the coordinator of 'spout'"):
            handle.await_committed(4, 60)

    def test_a_batch_that_fails_too_often_stops_with_the_cause(self, cluster: Any, name: str) -> None:
        topology = line(
            name,
            numbers(40),
            5,
            lambda b: b.set_bolt("x", Batch(Fault("execute", txid=2, attempts=99))).shuffle_grouping("spout"),
            lambda b: b.set_bolt("store", Store(name)).global_grouping("x"),
        )
        handle = cluster.submit_topology(name, {"topology.max.batch.attempts": 3}, topology)
        with pytest.raises(TooManyAttempts, match=r"transaction 2 has failed 3 times, .*on order in execute"):
            handle.await_drained(60)

    def test_kill_stops_and_the_same_id_goes_on_with_a_higher_epoch(self, cluster: Any, name: str) -> None:
        rows: dict[int, list[Any]] = {**numbers(20)}
        topology = line(name, rows, 5, lambda b: b.set_bolt("store", Store(name)).shuffle_grouping("spout"))
        first = self.drain(cluster, topology)
        self.finish(first)
        with pytest.raises(TopologyStopped, match=r"was stopped while waiting for transaction 99"):
            first.await_committed(99, 1)
        rows[0].append("more")
        second = self.drain(cluster, topology)
        assert second.txid_committed == 3
        ledger = self.finish(second)
        assert sorted(map(str, ledger.all())) == sorted([*map(str, range(20)), "more"])
        assert ledger.finished[-1].attempt_id > 10**9 * (len(ledger.finished) > 0)

    def test_waiting_too_long_says_where_it_stands(self, cluster: Any, name: str) -> None:
        topology = line(name, numbers(10), 5, lambda b: b.set_bolt("store", Store(name)).shuffle_grouping("spout"))
        handle = self.drain(cluster, topology)
        with pytest.raises(TimeoutError, match=r"waited 0.05 s for transaction 9 to be committed; committed is 1"):
            handle.await_committed(9, 0.05)

    def test_a_second_driver_of_the_same_topology_is_refused(self, cluster: Any, name: str) -> None:
        topology = line(name, numbers(10), 5, lambda b: b.set_bolt("store", Store(name)).shuffle_grouping("spout"))
        handle = self.drain(cluster, topology)
        with pytest.raises(AlreadyRunning):
            cluster.submit_topology("other name", {}, topology)
        self.finish(handle)

    def test_a_changed_graph_is_refused_with_what_changed_unless_allowed(self, cluster: Any, name: str) -> None:
        def topology(tasks: int) -> Any:
            return line(
                name, numbers(10), 5, lambda b: b.set_bolt("store", Store(name), tasks).shuffle_grouping("spout")
            )

        self.drain(cluster, topology(1)).kill()
        with pytest.raises(TopologyChanged, match=r"bolt 'store'.*parallelism.*1.*2"):
            cluster.submit_topology(name, PENDING_4, topology(2))
        cluster.submit_topology(name, PENDING_4, topology(2), allow_changed_topology=True).kill()

    # -------------------------------------------------------------------------------- timeouts

    def test_an_attempt_that_is_not_processed_in_time_is_replayed(self, cluster: Any, name: str) -> None:
        self.check_timeout(cluster, name, Fault("prepare", error="", sleep_secs=4.0), NO_FAULT, 2.0)

    def test_a_commit_that_does_not_finish_in_time_is_replayed(self, cluster: Any, name: str) -> None:
        self.check_timeout(cluster, name, NO_FAULT, Fault("before", error="", sleep_secs=3.0), 2.0)

    def test_a_commit_that_hangs_is_waited_for_and_told_of(self, cluster: Any, name: str, caplog: Any) -> None:
        self.check_timeout(cluster, name, NO_FAULT, Fault("before", error="", sleep_secs=4.0), 1.0)
        assert "the commit of 2:1 has run for " in caplog.text
        assert "It is in finish_batch of 'store', task " in caplog.text
        assert "in strike" in caplog.text

    def check_timeout(self, cluster: Any, name: str, processing: Fault, commit: Fault, timeout_secs: float) -> None:
        topology = line(
            name,
            numbers(20),
            5,
            lambda b: b.set_bolt("x", Batch(processing)).shuffle_grouping("spout"),
            lambda b: b.set_bolt("store", Store(name, commit)).global_grouping("x"),
        )
        config = {"topology.message.timeout.secs": timeout_secs, "topology.max.spout.pending": 2}
        handle = self.drain(cluster, topology, config)
        assert sorted(LEDGERS[name].all()) == list(range(20))
        assert handle.snapshot().replays >= 1
