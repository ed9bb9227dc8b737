"""What hangs is named: component, task, transaction, and the line where it stands."""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stormline import BaseBasicBolt, TransactionalTopologyBuilder, TransactionAttempt
from stormline.runtime.cluster.in_process_cluster import InProcessCluster
from stormline.runtime.spark import call_watch
from stormline.runtime.spark.call_watch import read_calls, watch_calls
from stormline.runtime.tasks.task_environment import TaskEnvironment
from stormline.runtime.world.own_thread import OwnThread
from stormline.runtime.world.running_calls import Calls, told
from stormline.runtime.world.world import REAL
from stormline.topology.compiler import compile_topology
from tests.kits.components import Store, eventually
from tests.kits.spouts import PlainSpout, Ranges

FIRST, SECOND = TransactionAttempt(7, 3), TransactionAttempt(8, 1)
GO_ON = threading.Event()
HERE = re.escape(__file__)


def begin(calls: Calls, component: str, task: int | None, where: str, attempt: TransactionAttempt) -> Any:
    """Do in this thread what `run_guarded` does before a call; return what it does after it with `end`."""
    outer = calls.running.get(threading.get_ident())
    calls.running[threading.get_ident()] = (component, task, where, attempt, time.monotonic())
    return outer


def end(calls: Calls, outer: Any) -> None:
    calls.running[threading.get_ident()] = outer


@pytest.fixture(autouse=True)
def let_go() -> Iterator[None]:
    GO_ON.clear()
    yield
    GO_ON.set()


def hang() -> None:
    GO_ON.wait(30)


class Hangs:
    """Stands in one call until it is let go: of its first attempt only."""

    def __init__(self, where: str) -> None:
        self.where = where

    def at(self, where: str, attempt: Any) -> None:
        if where == self.where and attempt.attempt_id == 1:
            hang()


class HangingStore(Store, Hangs):
    def __init__(self, where: str) -> None:
        Store.__init__(self, "hangs")
        Hangs.__init__(self, where)

    def prepare(self, conf: Any, context: Any, collector: Any, batch_id: Any) -> None:
        self.id = batch_id
        self.at("prepare", batch_id)
        super().prepare(conf, context, collector, batch_id)

    def execute(self, tup: Any) -> None:
        self.at("execute", self.id)
        super().execute(tup)

    def finish_batch(self) -> None:
        self.at("finish_batch", self.id)
        super().finish_batch()


class HangingBasic(BaseBasicBolt, Hangs):
    def execute(self, tup: Any, collector: Any) -> None:
        self.at("execute of a basic bolt", tup.values[0])
        collector.emit(list(tup.values))

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(["attempt", "n"])


class HangingSpout(PlainSpout, Hangs):
    def __init__(self, where: str) -> None:
        PlainSpout.__init__(self, Ranges("hangs", batches=2))
        Hangs.__init__(self, where)

    def get_emitter(self, conf: Any, context: Any) -> Any:
        emitter = super().get_emitter(conf, context)
        emit_batch = emitter.emit_batch

        def emit_when_let_go(attempt: Any, metadata: Any, collector: Any) -> None:
            self.at("emit_batch", attempt)
            emit_batch(attempt, metadata, collector)

        emitter.emit_batch = emit_when_let_go
        return emitter


@pytest.mark.parametrize(
    ("where", "named"),
    [
        ("execute of a basic bolt", "execute of 'pass'"),
        ("emit_batch", "the emitter of 'spout'"),
        ("prepare", "prepare of 'store'"),
        ("execute", "execute of 'store'"),
        ("finish_batch", "finish_batch of 'store'"),
    ],
)
def test_a_time_out_names_the_call_that_hangs_and_its_line(
    where: str, named: str, caplog: pytest.LogCaptureFixture
) -> None:
    builder = TransactionalTopologyBuilder("hangs", "spout", HangingSpout(where))
    builder.set_bolt("pass", HangingBasic(where)).shuffle_grouping("spout")
    builder.set_bolt("store", HangingStore(where)).global_grouping("pass")
    config = {"topology.message.timeout.secs": 1}
    with caplog.at_level(logging.INFO), InProcessCluster() as cluster:
        handle = cluster.submit_topology("hangs", config, builder.build_topology())
        told_in = (
            rf"within 1 s \(topology\.message\.timeout\.secs\); it is in {named}, task \d+, for [\d.]+ s, in "
            rf"transaction \d:1, at {HERE}:\d+ in \w+, which has called .*threading.py:\d+ in wait"
        )
        eventually(lambda: re.search(told_in, caplog.text) is not None)
        GO_ON.set()
        assert handle.await_drained(30) == 2
        handle.kill()


def test_calls_are_known_while_they_run_and_the_innermost_is_told_of() -> None:
    calls = Calls(REAL)
    none = begin(calls, "spout", 1, "the emitter", FIRST)
    outer = begin(calls, "count", None, "execute", FIRST)
    (report,) = calls.reports()
    assert (report.component, report.task, report.attempt) == ("count", None, FIRST)
    assert re.fullmatch(r"execute of 'count' for 0\.\d s, in transaction 7:3, at .+", report.text)
    assert calls.reports((SECOND,)) == []
    assert calls.reports(secs=100) == []
    end(calls, outer)
    assert [report.component for report in calls.reports((FIRST,))] == ["spout"]
    end(calls, none)
    assert calls.reports() == []


def test_a_call_that_waits_for_another_thread_stands_where_that_one_does() -> None:
    calls = Calls(REAL)
    emitters = OwnThread(REAL, "emitter")

    def ask() -> None:
        begin(calls, "spout", 2, "the emitter", FIRST)
        emitters.call(hang)
        end(calls, None)

    asking = threading.Thread(target=ask)
    asking.start()
    stands = f", at {__file__}:{hang.__code__.co_firstlineno + 1} in hang, which has called "
    eventually(lambda: any(stands in report.text for report in calls.reports()))
    GO_ON.set()
    asking.join()
    emitters.close()
    assert calls.reports() == []


def test_no_more_than_some_calls_are_told() -> None:
    calls = Calls(REAL)

    def call(task: int) -> None:
        begin(calls, "count", task, "execute", FIRST)
        hang()
        end(calls, None)

    threads = [threading.Thread(target=call, args=(task,)) for task in range(5)]
    for thread in threads:
        thread.start()
    eventually(lambda: len(calls.reports()) == 5)
    text = told(calls.reports())
    assert text.count("execute of 'count', task ") == 3
    assert text.endswith("; 2 more")
    assert told([]) == ""
    GO_ON.set()
    for thread in threads:
        thread.join()


class TestWatch:
    def env(self, **config: Any) -> TaskEnvironment:
        builder = TransactionalTopologyBuilder("watched", "spout", PlainSpout(Ranges("watched", batches=1)))
        builder.set_bolt("store", Store("watched")).global_grouping("spout")
        return TaskEnvironment(compile_topology(builder.build_topology(), config), 1)

    def test_a_long_call_is_in_the_log_and_in_the_file_while_it_runs(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        monkeypatch.setattr(call_watch, "LONG_SECS_MAX", 0.05)
        env = self.env()
        watch_calls(env, str(tmp_path))
        begin(env.calls, "store", 2, "execute", FIRST)
        eventually(lambda: "topology watched has long been in execute of 'store', task 2, for 0." in caplog.text)
        (report,) = read_calls(str(tmp_path), {FIRST, SECOND})
        assert (report.component, report.task, report.attempt) == ("store", 2, FIRST)
        assert ", for 0." in report.text
        assert read_calls(str(tmp_path), {SECOND}) == []
        end(env.calls, None)
        eventually(lambda: not list(tmp_path.iterdir()))
        begin(env.calls, "store", 2, "execute", SECOND)
        eventually(lambda: list(tmp_path.glob("*.json")))
        env.close()
        eventually(lambda: not list(tmp_path.iterdir()))
        end(env.calls, None)

    def test_a_call_is_told_of_again_only_after_twice_as_long(
        self, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        monkeypatch.setattr(call_watch, "LONG_SECS_MAX", 0.05)
        env = self.env(**{"topology.enable.message.timeouts": False})
        begin(env.calls, "store", 2, "execute", FIRST)
        watch_calls(env, None)
        eventually(lambda: caplog.text.count("execute of 'store', task 2, for ") >= 3)
        assert caplog.text.count("task 2, for") < 8
        env.close()
        end(env.calls, None)

    def test_a_directory_that_is_not_there_or_holds_other_things_harms_nothing(self, tmp_path: Path) -> None:
        (tmp_path / "1.json").write_text("[[1]]")
        (tmp_path / "2.json").write_bytes(b"\xff")
        (tmp_path / "3.json").write_text("3")
        assert read_calls(str(tmp_path), {FIRST}) == []
        assert read_calls(str(tmp_path / "nowhere"), {FIRST}) == []
