"""LocalDRPC: requests answered by lines of bolts, in the manner of Storm's own tests and examples."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from stormline import (
    ArrowBatchBolt,
    BaseBasicBolt,
    BaseBatchBolt,
    BaseTaskHook,
    Config,
    DRPCExecutionException,
    FailedException,
    Fields,
    InProcessCluster,
    LinearDRPCTopologyBuilder,
    LocalDRPC,
    Values,
)
from stormline.runtime.errors import UnknownFunction
from stormline.topology.errors import InvalidGrouping, WrongAttempt


class Exclaim(BaseBasicBolt):
    """The bolt of storm-starter's BasicDRPCTopology."""

    def execute(self, tup: Any, collector: Any) -> None:
        if tup[1] == "fail":
            raise FailedException("on order")
        if tup[1] == "bug":
            raise ZeroDivisionError("on order")
        if tup[1] == "twice":
            collector.emit(Values(tup[0], "once"))
        if tup[1] != "silent":
            collector.emit(Values("another" if tup[1] == "stray" else tup[0], f"{tup[1]}!"))

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("id", "result"))


class Spell(BaseBasicBolt):
    """Emits each letter of the argument."""

    def execute(self, tup: Any, collector: Any) -> None:
        for letter in tup.get_string(1):
            collector.emit(Values(tup[0], letter))

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("id", "letter"))


class Distinct(BaseBatchBolt):
    """The PartialUniquer of storm-starter's ReachTopology: finishes every request, with no tuples too."""

    def prepare(self, conf: Any, context: Any, collector: Any, batch_id: Any) -> None:
        self.collector, self.batch_id, self.seen = collector, batch_id, set[str]()

    def execute(self, tup: Any) -> None:
        self.seen.add(tup[1])

    def finish_batch(self) -> None:
        self.collector.emit(Values(self.batch_id, len(self.seen)))

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("id", "partial-count"))


class Sum(Distinct):
    """Its CountAggregator. `parts`: how many tasks' counts came."""

    def prepare(self, conf: Any, context: Any, collector: Any, batch_id: Any) -> None:
        self.collector, self.batch_id, self.counts = collector, batch_id, list[int]()

    def execute(self, tup: Any) -> None:
        self.counts.append(tup.get_integer(1))

    def finish_batch(self) -> None:
        self.collector.emit(Values(self.batch_id, (sum(self.counts), len(self.counts))))


def reach(last_tasks: int = 2) -> LinearDRPCTopologyBuilder:
    builder = LinearDRPCTopologyBuilder("reach")
    builder.add_bolt(Spell(), 2)
    builder.add_bolt(Distinct(), 3).fields_grouping(Fields("id", "letter"))
    builder.add_bolt(Sum(), last_tasks).fields_grouping(Fields("id"))
    return builder


def test_a_function_answers_as_in_storm_starter() -> None:
    builder = LinearDRPCTopologyBuilder("exclamation")
    builder.add_bolt(Exclaim(), 3)
    with LocalDRPC() as drpc, InProcessCluster() as cluster:
        cluster.submit_topology("drpc-demo", Config(), builder.create_local_topology(drpc))
        assert [drpc.execute("exclamation", word) for word in ("hello", "goodbye")] == ["hello!", "goodbye!"]


def test_a_cluster_kills_the_functions_that_were_submitted_to_it() -> None:
    builder = LinearDRPCTopologyBuilder("exclamation")
    builder.add_bolt(Exclaim())
    drpc = LocalDRPC()
    with InProcessCluster() as cluster:
        named = cluster.submit_topology("by name", {}, builder.create_local_topology(drpc))
        cluster.kill_topology("by name")
        assert not named.running
        running = cluster.submit_topology("at the end", {}, builder.create_local_topology(drpc))
        assert drpc.execute("exclamation", "x") == "x!"
    assert not running.running


def test_batch_bolts_finish_once_all_tuples_of_the_request_have_come() -> None:
    with LocalDRPC() as drpc:
        drpc.submit_topology("reach", {}, reach().create_local_topology(drpc))
        assert drpc.execute("reach", "mississippi") == (4, 3)  # all three tasks have finished, and one gave the result
        assert drpc.execute("reach", "") == (0, 3)


def test_requests_at_once_do_not_mix() -> None:
    words = ["".join(chr(97 + i) for i in range(n)) * 3 for n in range(1, 27)] * 4
    with LocalDRPC() as drpc, ThreadPoolExecutor(8) as pool:
        drpc.submit_topology("reach", {}, reach().create_local_topology(drpc))
        results = list(pool.map(lambda word: drpc.execute("reach", word), words))
    assert results == [(len(set(word)), 3) for word in words]


class Threads(BaseBasicBolt):
    """Says in which thread each call ran."""

    calls: list[tuple[str, int]] = []  # noqa: RUF012

    def prepare(self, conf: Any, context: Any) -> None:
        self.calls.append(("prepare", threading.get_ident()))

    def execute(self, tup: Any, collector: Any) -> None:
        self.calls.append(("execute", threading.get_ident()))
        collector.emit([tup[0], tup[1]])

    def cleanup(self) -> None:
        self.calls.append(("cleanup", threading.get_ident()))

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("id", "value"))


def test_a_basic_bolt_lives_in_one_thread_from_prepare_to_cleanup() -> None:
    builder = LinearDRPCTopologyBuilder("echo")
    builder.add_bolt(Threads())
    with LocalDRPC() as drpc:
        drpc.submit_topology("echo", {}, builder.create_local_topology(drpc))
        assert [drpc.execute("echo", n) for n in range(2)] == [0, 1]
    assert [call for call, _ in Threads.calls] == ["prepare", "execute", "execute", "cleanup"]
    threads = {thread for _, thread in Threads.calls}
    assert len(threads) == 1
    assert threads != {threading.get_ident()}


@pytest.fixture
def exclaiming() -> Any:
    builder = LinearDRPCTopologyBuilder("exclamation")
    builder.add_bolt(Exclaim())
    with LocalDRPC() as drpc:
        drpc.submit_topology("exclamation", {}, builder.create_local_topology(drpc))
        yield drpc


@pytest.mark.parametrize(
    ("args", "cause", "message"),
    [
        ("fail", FailedException, "FailedException in execute of 'bolt0', task 2: on order"),
        ("bug", ZeroDivisionError, "ZeroDivisionError in execute of 'bolt0', task 2: on order"),
        (
            "stray",
            WrongAttempt,
            "WrongAttempt in execute of 'bolt0', task 2: basic bolt 'bolt0', task 2 emits 'another'",
        ),
        (
            "silent",
            None,
            "the last bolt, 'bolt0', has emitted 0 results, expected one; let it emit [request id, result]",
        ),
        ("twice", None, "the last bolt, 'bolt0', has emitted 2 results, expected one"),
    ],
)
def test_a_request_without_its_one_result_raises_and_others_go_on(
    exclaiming: LocalDRPC, args: str, cause: type[BaseException] | None, message: str
) -> None:
    with pytest.raises(DRPCExecutionException) as caught:
        exclaiming.execute("exclamation", args)
    assert str(caught.value).startswith(f"DRPC function 'exclamation', request 1: {message}")
    assert type(caught.value.__cause__) is (cause or type(None))
    assert exclaiming.execute("exclamation", "x") == "x!"


class Measured(Exclaim):
    def prepare(self, conf: Any, context: Any) -> None:
        self.asked = context.register_counter("asked")

    def execute(self, tup: Any, collector: Any) -> None:
        self.asked.inc()
        super().execute(tup, collector)


class MeasuredDistinct(Distinct):
    def prepare(self, conf: Any, context: Any, collector: Any, batch_id: Any) -> None:
        super().prepare(conf, context, collector, batch_id)
        context.register_counter("requests").inc()
        context.add_task_hook(Hears())


class Hears(BaseTaskHook):
    def prepare(self, conf: Any, context: Any) -> None:
        self.heard = context.register_counter("executed")
        self.emitted = context.register_counter("emitted")

    def bolt_execute(self, info: Any) -> None:
        self.heard.inc()

    def emit(self, info: Any) -> None:
        self.emitted.inc()


def test_metrics_count_requests_that_were_answered() -> None:
    builder = LinearDRPCTopologyBuilder("measured")
    builder.add_bolt(Measured())
    builder.add_bolt(MeasuredDistinct()).shuffle_grouping()
    with LocalDRPC() as drpc:
        running = drpc.submit_topology("measured", {}, builder.create_local_topology(drpc))
        assert [drpc.execute("measured", word) for word in ("a", "twice")] == [1, 2]
        with pytest.raises(DRPCExecutionException):
            drpc.execute("measured", "bug")
        assert drpc.execute("measured", "silent") == 0
        metrics = running.metrics()
    assert metrics == {"bolt0": {"asked": 3}, "bolt1": {"requests": 3, "executed": 3, "emitted": 3}}


HOLD = threading.Event()


class Waits(Exclaim):
    def execute(self, tup: Any, collector: Any) -> None:
        HOLD.wait(60)


def test_a_request_that_takes_too_long_and_those_open_at_the_end_raise() -> None:
    HOLD.clear()
    builder = LinearDRPCTopologyBuilder("slow")
    builder.add_bolt(Waits())
    with LocalDRPC() as drpc, ThreadPoolExecutor(1) as pool:
        running = drpc.submit_topology("slow", {}, builder.create_local_topology(drpc))
        with pytest.raises(DRPCExecutionException, match=r"request 1: it has no result after 0.01 s$"):
            drpc.execute("slow", "x", timeout_secs=0.01)
        waiting = pool.submit(drpc.execute, "slow", "y")
        while len(running._open) < 1:
            pass
        running.kill(0)
        with pytest.raises(DRPCExecutionException, match=r"request 2: the function was killed$"):
            waiting.result(60)
        assert not running.running
        HOLD.set()
        with pytest.raises(UnknownFunction, match=r"^DRPC function 'slow' was killed; submit its topology again$"):
            drpc.execute("slow", "x")


def test_a_bolt_that_hangs_is_left_behind_with_a_warning(caplog: Any) -> None:
    HOLD.clear()
    builder = LinearDRPCTopologyBuilder("slow")
    builder.add_bolt(Waits())
    drpc = LocalDRPC()
    running = drpc.submit_topology("slow", {}, builder.create_local_topology(drpc))
    with pytest.raises(DRPCExecutionException, match="no result after"):
        drpc.execute("slow", "x", timeout_secs=0.01)
    running.kill(0.01)
    assert "DRPC function 'slow': thread stormline-slow-2 hangs and is left behind" in caplog.text
    HOLD.set()


def test_a_function_that_nobody_answers_is_told_with_those_there_are(exclaiming: LocalDRPC) -> None:
    with pytest.raises(UnknownFunction) as caught:
        exclaiming.execute("exclamatoin", "x")
    assert str(caught.value) == (
        "DRPC function 'exclamatoin': no topology of it was submitted; there are ['exclamation']; did you mean "
        "'exclamation'?"
    )


def test_a_topology_submitted_again_takes_the_place_of_the_earlier_one(exclaiming: LocalDRPC) -> None:
    earlier = exclaiming._functions["exclamation"]
    builder = LinearDRPCTopologyBuilder("exclamation")
    builder.add_bolt(Spell())
    builder.add_bolt(Distinct()).shuffle_grouping()
    exclaiming.submit_topology("again", {}, builder.create_local_topology(exclaiming))
    assert exclaiming.execute("exclamation", "abca") == 3
    assert not earlier.running


class Chooses:
    """A custom grouping that does what the argument says."""

    def prepare(self, context: Any, stream: Any, target_tasks: Any) -> None:
        self.tasks = target_tasks

    def choose_tasks(self, task_id: int, values: Any) -> Any:
        return {"none": [], "all": self.tasks, "bug": None}[values[1]]


def test_the_first_bolt_may_get_the_arguments_in_several_tasks_or_in_none() -> None:
    builder = LinearDRPCTopologyBuilder("chosen")
    builder.add_bolt(Spell(), 3).custom_grouping(Chooses())
    builder.add_bolt(Distinct(), 2).all_grouping()
    builder.add_bolt(Sum(), 2).global_grouping()
    with LocalDRPC() as drpc:
        drpc.submit_topology("chosen", {}, builder.create_local_topology(drpc))
        assert drpc.execute("chosen", "all") == (4, 2)  # each of two tasks saw 'a' and 'l' of three tasks
        message = "request 2: the grouping of the first bolt has chosen no task for its arguments"
        with pytest.raises(DRPCExecutionException, match=message):
            drpc.execute("chosen", "none")
        message = "request 3: TypeError in the grouping of its arguments: 'NoneType' object is not iterable"
        with pytest.raises(DRPCExecutionException, match=message):
            drpc.execute("chosen", "bug")


def test_tasks_that_the_configuration_gives_to_the_last_bolt_are_checked_too() -> None:
    builder = LinearDRPCTopologyBuilder("spelled")
    builder.add_bolt(Spell())
    builder.add_bolt(Distinct()).shuffle_grouping()
    with (
        LocalDRPC() as drpc,
        pytest.raises(InvalidGrouping, match=r"'bolt1' \(Distinct\), has 2 tasks, and the tuples of"),
    ):
        drpc.submit_topology("spelled", {"topology.tasks": 2}, builder.create_local_topology(drpc))


class CountRows(ArrowBatchBolt):
    """Takes the letters as record batches, and emits one."""

    def prepare(self, conf: Any, context: Any, collector: Any, batch_id: Any) -> None:
        self.collector, self.rows = collector, 0

    def execute_batch(self, batch: Any) -> None:
        self.rows += batch.num_rows

    def finish_batch(self) -> None:
        import pyarrow as pa

        self.collector.emit_batch(pa.RecordBatch.from_pydict({"rows": [self.rows]}))

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("id", "rows"))


def test_a_bolt_that_takes_record_batches_answers_too() -> None:
    builder = LinearDRPCTopologyBuilder("rows")
    builder.add_bolt(Spell())
    builder.add_bolt(CountRows()).shuffle_grouping()
    with LocalDRPC() as drpc:
        drpc.submit_topology("rows", {}, builder.create_local_topology(drpc))
        assert [drpc.execute("rows", word) for word in ("abc", "")] == [3, 0]
