"""Law 5 (complete input): drop, double or truncate whatever is sent, and no batch is finished on it.

It is replayed, and counts once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from stormline import Fields, TransactionAttempt, compile_topology
from stormline.runtime.cluster.in_process_cluster import InProcessCluster
from stormline.runtime.cluster.in_process_engine import InProcessEngine
from stormline.runtime.cluster.submission import start_topology
from stormline.runtime.errors import TopologyFailed
from stormline.runtime.messages.wave import Wave, WaveAttempt, WaveResult
from stormline.runtime.processing.driver_stage import run_driver_stage
from stormline.runtime.processing.slot_layout import Layout
from stormline.runtime.processing.slot_report import read_report
from stormline.runtime.processing.slot_reports import merge_reports
from stormline.runtime.processing.stage_runner import SlotBlock, StageRunner
from stormline.runtime.state.memory_store import MemoryStateServer, MemoryStateStore
from stormline.runtime.tasks.task_environment import TaskEnvironment
from stormline.runtime.tuples import blocks
from stormline.runtime.tuples.packing import ARROW
from stormline.topology.errors import CorruptData
from stormline.topology.packing import msgpack
from stormline.topology.plan import Placement
from stormline.topology.storm_config import Config
from tests.kits.columnar import ArrowGather, ArrowStore
from tests.kits.components import LEDGERS, Batch, Store, line, numbers

FINISHED: list[tuple[str, TransactionAttempt, int]] = []


@pytest.fixture(autouse=True)
def fresh_finished() -> Iterator[None]:
    FINISHED.clear()
    yield
    FINISHED.clear()


class Noting(Batch):
    """Notes who finished, and with how many tuples."""

    def finish_batch(self) -> None:
        FINISHED.append((self.context.this_component_id, self.attempt, len(self.values)))
        super().finish_batch()


Meddle = Callable[[list[SlotBlock]], list[SlotBlock]]


class MeddlingEngine(InProcessEngine):
    """Meddles once with what is on its way to one slot of one stage."""

    def __init__(self, env: TaskEnvironment, stage: int, meddle: Meddle) -> None:
        super().__init__(env, 2)
        self.stage = stage
        self.meddle: Meddle | None = meddle

    def _run_stage(self, wave: Wave, stage: int, given: list[SlotBlock]) -> Iterator[SlotBlock]:
        if stage == self.stage and self.meddle is not None:
            meddled = self.meddle(given)
            if meddled != given:
                self.meddle = None
            given = meddled
        yield from super()._run_stage(wave, stage, given)

    def process(self, wave: Wave) -> WaveResult:
        if self.stage >= 0:
            return super().process(wave)
        given, reports = run_driver_stage(self._env, self._layout, wave)
        for stage in self._env.plan.stages:
            if stage.placement is Placement.EXECUTORS:
                given = list(super()._run_stage(wave, stage.index, given))
        if self.meddle is not None:
            given, self.meddle = self.meddle(given), None
        return merge_reports(wave, self._layout, reports + [read_report(block) for _, block in given])


def topology() -> Any:
    return line(
        "t",
        numbers(60, 3),
        5,
        lambda b: b.set_bolt("x", Noting(), 3).shuffle_grouping("spout"),
        lambda b: b.set_bolt("y", Noting(), 2).fields_grouping("x", ["value"]),
        lambda b: b.set_bolt("store", Store("t"), 2).fields_grouping("y", ["value"]),
        parallelism=3,
    )


class ArrowNoting(ArrowGather):
    """Notes who finished, and with how many rows."""

    def finish_batch(self) -> None:
        FINISHED.append((self.context.this_component_id, self.attempt, sum(batch.num_rows for batch in self.batches)))
        super().finish_batch()


def columnar_topology() -> Any:
    return line(
        "t",
        numbers(60, 3),
        5,
        lambda b: b.set_bolt("x", ArrowNoting(), 3).shuffle_grouping("spout"),
        lambda b: b.set_bolt("y", ArrowNoting(), 2).fields_grouping("x", ["value"]),
        lambda b: b.set_bolt("store", ArrowStore("t"), 2).fields_grouping("y", ["value"]),
        parallelism=3,
    )


def run(stage: int, meddle: Meddle, of: Callable[[], Any] = topology) -> Any:
    plan = compile_topology(of(), {"topology.max.spout.pending": 4, "topology.max.batch.attempts": 1})
    engines: list[MeddlingEngine] = []

    def make(env: TaskEnvironment) -> MeddlingEngine:
        engines.append(MeddlingEngine(env, stage, meddle))
        return engines[0]

    server = MemoryStateServer()
    handle = start_topology("t", plan, lambda lost: MemoryStateStore.open(server, "t", on_lost=lost), make)
    try:
        handle.await_drained(20)
    finally:
        handle.kill()
    assert engines[0].meddle is None, "it has meddled"
    return handle


def kind_of(block: bytes, stage: int) -> str:
    if blocks.stage_of(block) != stage:
        return "report" if blocks.stage_of(block) == blocks.FOR_DRIVER else "other"
    *_, segments, closing = msgpack.unpackb(block[1:], raw=False)
    return ("data" if segments else "") + ("closing" if closing is not None else "")


def first(kinds: set[str], stage: int, change: Callable[[SlotBlock], list[SlotBlock]]) -> Meddle:
    def meddle(given: list[SlotBlock]) -> list[SlotBlock]:
        i = next((i for i, (_, block) in enumerate(given) if kind_of(block, stage) in kinds), None)
        return given if i is None else [*given[:i], *change(given[i]), *given[i + 1 :]]

    return meddle


CHANGES: dict[str, Callable[[SlotBlock], list[SlotBlock]]] = {
    "dropped": lambda sent: [],
    "doubled": lambda sent: [sent, sent],
    "truncated": lambda sent: [(sent[0], sent[1][:-7])],
    "cut to its head": lambda sent: [(sent[0], sent[1][:1])],
    "in another wave": lambda sent: [sent, (sent[0], renumbered(sent[1]))],
}


def renumbered(block: bytes) -> bytes:
    version, epoch, wave, *rest = msgpack.unpackb(block[1:], raw=False)
    return block[:1] + bytes(msgpack.packb([version, epoch, wave + 1, *rest], use_bin_type=True))


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every segment is a block of its own, every row a segment."""
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 1)
    monkeypatch.setattr(blocks, "SEGMENT_ROWS_MAX", 1)


def check_replayed(handle: Any, replayed: bool = True) -> None:
    assert sorted(LEDGERS["t"].all()) == list(range(60))
    assert len(LEDGERS["t"].finished) == 2 * 4, "each transaction was committed once"
    assert (handle.snapshot().replays > 0) == replayed
    whole = {attempt: [n for name, a, n in FINISHED if (name, a) == ("y", attempt)] for _, attempt, _ in FINISHED}
    assert {sum(counts) for attempt, counts in whole.items() if len(counts) == 2} == {15}, "none finished on less"


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("how", CHANGES)
@pytest.mark.parametrize("kind", ["data", "closing"])
@pytest.mark.parametrize("stage", [1, 2, 3])
def test_a_block_that_is_lost_doubled_or_cut_means_a_replay(stage: int, kind: str, how: str) -> None:
    handle = run(stage, first({kind}, stage, CHANGES[how]))
    check_replayed(handle, replayed=(kind, how) != ("closing", "doubled"))


@pytest.mark.parametrize("how", CHANGES)
@pytest.mark.parametrize("stage", [1, 2, 3])
def test_a_block_of_tuples_and_counts_that_is_lost_doubled_or_cut_means_a_replay(stage: int, how: str) -> None:
    check_replayed(run(stage, first({"dataclosing"}, stage, CHANGES[how])))


@pytest.mark.parametrize("stage", [2, 3])
def test_a_report_that_is_lost_on_its_way_through_a_later_stage_means_a_replay(stage: int) -> None:
    check_replayed(run(stage, first({"report"}, stage, CHANGES["dropped"])))


def test_a_report_that_comes_twice_counts_once() -> None:
    check_replayed(run(3, first({"report"}, 3, CHANGES["doubled"])), replayed=False)


@pytest.mark.parametrize("n", range(7))
def test_every_slots_report_is_needed(n: int) -> None:
    """Of the end of the input nothing is known: whatever is cut off there was perhaps a report."""
    check_replayed(run(-1, lambda given: given[:n] + given[n + 1 :]), replayed=n < 6)


def test_the_slots_of_the_whole_topology_are_as_many_as_were_cut_above() -> None:
    layout = Layout(compile_topology(topology()), 2)
    assert layout.slots == (1, 2, 2, 2), "the driver's own report does not travel"


@pytest.mark.usefixtures("small_blocks")
def test_all_that_comes_for_a_slot_may_be_missing() -> None:
    check_replayed(run(2, lambda given: [(slot, block) for slot, block in given if slot != 1]))


class Turning(Noting):
    """Emits its tuples in the other order each time that Spark lets it run again."""

    executions = 0

    def finish_batch(self) -> None:
        Turning.executions += 1
        self.values.sort(reverse=Turning.executions % 2 == 0)
        super().finish_batch()


class RecomputingEngine(InProcessEngine):
    """Computes stage 1 of the first wave again when some of its output has been read already, as Spark may."""

    def _run_stage(self, wave: Wave, stage: int, given: list[SlotBlock]) -> Iterator[SlotBlock]:
        once = list(super()._run_stage(wave, stage, given))
        if stage != 1 or wave.number > 1:
            yield from once
            return
        again = list(super()._run_stage(wave, stage, given))
        yield from [block for block in once if block[0] % 2 == 0]
        yield from [block for block in again if block[0] % 2 == 1]


def test_what_two_executions_of_one_task_gave_is_never_taken_for_one_batch() -> None:
    """As many tuples come from each to each, so the counts match; but some came twice, and some never."""
    declared = line(
        "t",
        {0: list(range(10))},
        10,
        lambda b: b.set_bolt("x", Turning(), 1).global_grouping("spout"),
        lambda b: b.set_bolt("y", Noting(), 2).shuffle_grouping("x"),
        lambda b: b.set_bolt("store", Store("t"), 1).global_grouping("y"),
    )
    server = MemoryStateServer()
    handle = start_topology(
        "t",
        compile_topology(declared),
        lambda lost: MemoryStateStore.open(server, "t", on_lost=lost),
        RecomputingEngine,
    )
    handle.await_drained(20)
    handle.kill()
    assert sorted(LEDGERS["t"].all()) == list(range(10))
    assert handle.snapshot().replays == 1


# ---------------------------------------------------------------------------------------- by hand, one slot


def test_a_slot_finishes_nothing_before_the_counts_of_every_source_have_come() -> None:
    plan = compile_topology(topology())
    layout = Layout(plan, 2)
    env = TaskEnvironment(plan, 1)
    wave = Wave(1, (WaveAttempt(TransactionAttempt(1, 1), 3),))
    given, _ = run_driver_stage(env, layout, wave)
    sent = [block for slot in range(2) for block in StageRunner(env, layout, wave, 1, slot).run(
        [(to, block) for to, block in given if to == slot]
    )]  # fmt: skip
    mine = [(slot, block) for slot, block in sent if blocks.stage_of(block) == 2 and slot == 0]
    assert len(mine) == 2, "one closing block of each source slot"
    for left in (mine[:1], mine[1:], []):
        FINISHED.clear()
        (report,) = [read_report(b) for _, b in StageRunner(env, layout, wave, 2, 0).run(left)
                     if blocks.stage_of(b) == blocks.FOR_DRIVER]  # fmt: skip
        (result,) = report.attempts
        assert result.failure is not None
        assert f"the counts of {2 - len(left)} of 2 Spark tasks have not arrived" in result.failure.message
        assert not result.failure.counts
        assert FINISHED == []


@pytest.mark.parametrize(
    ("place", "message"),
    [
        (0, "an attempt or an edge that does not exist"),
        (1, "an attempt or an edge that does not exist"),
        (3, "task 999, "),
    ],
)
def test_a_segment_for_nobody_fails_the_attempts_and_is_told(place: int, message: str) -> None:
    plan = compile_topology(topology())
    layout = Layout(plan, 2)
    env = TaskEnvironment(plan, 1)
    wave = Wave(1, (WaveAttempt(TransactionAttempt(1, 1), 3),))
    given, _ = run_driver_stage(env, layout, wave)
    slot, block = next((slot, block) for slot, block in given if msgpack.unpackb(block[1:], raw=False)[-2])
    *head, segments, closing = msgpack.unpackb(block[1:], raw=False)
    segments[0][place] = 999
    block = block[:1] + msgpack.packb([*head, segments, closing], use_bin_type=True)
    sent = StageRunner(env, layout, wave, 1, slot).run([(slot, block)])
    (report,) = [read_report(b) for _, b in sent if blocks.stage_of(b) == blocks.FOR_DRIVER]
    (result,) = report.attempts
    assert result.failure is not None
    assert f"a block for {message}" in result.failure.message
    assert not result.failure.counts


def test_a_segment_that_does_not_hold_as_many_rows_as_it_says_means_a_replay() -> None:
    check_replayed(run(1, first({"dataclosing"}, 1, with_a_row_more)))


def with_a_row_more(sent: SlotBlock) -> list[SlotBlock]:
    *head, segments, closing = msgpack.unpackb(sent[1][1:], raw=False)
    for segment in segments:
        segment[4] += 1
    return [(sent[0], sent[1][:1] + msgpack.packb([*head, segments, closing], use_bin_type=True))]


def with_half_of_the_batches(sent: SlotBlock) -> list[SlotBlock]:
    *head, segments, closing = msgpack.unpackb(sent[1][1:], raw=False)
    for segment in segments:
        assert segment[6] == ARROW
        segment[5] = segment[5][: len(segment[5]) // 2]
    return [(sent[0], sent[1][:1] + msgpack.packb([*head, segments, closing], use_bin_type=True))]


OF_COLUMNS = {**CHANGES, "with a row more": with_a_row_more, "with half batches": with_half_of_the_batches}


@pytest.mark.parametrize("how", OF_COLUMNS)
@pytest.mark.parametrize("stage", [1, 2, 3])
def test_a_block_of_record_batches_that_is_lost_doubled_or_cut_means_a_replay(stage: int, how: str) -> None:
    check_replayed(run(stage, first({"dataclosing"}, stage, OF_COLUMNS[how]), columnar_topology))


def test_a_block_of_another_epoch_or_version_and_bytes_that_are_none_are_refused() -> None:
    block = blocks.encode(1, blocks.Origin(2, 3), (0, 0, b"once"), [], None)
    assert blocks.decode(block, blocks.Origin(2, 3)).segments == []
    with pytest.raises(CorruptData, match=r"a block of version 2, epoch 2, wave 3; expected version 2, epoch 3"):
        blocks.decode(block, blocks.Origin(3, 3))
    with pytest.raises(CorruptData, match=r"3 bytes that are no block"):
        blocks.decode(block[:3], blocks.Origin(2, 3))


class Unreadable:
    pass


class UnreadableSerializer:
    def to_data(self, obj: Any) -> Any:
        return 1

    def from_data(self, data: Any) -> Any:
        raise ZeroDivisionError("on order")


class EmitsUnreadable(Batch):
    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("tx", "value"))

    def finish_batch(self) -> None:
        self.collector.emit([self.attempt, Unreadable()])


@pytest.mark.parametrize("committer", [False, True])
def test_a_serializer_that_cannot_read_what_it_wrote_stops_the_topology_instead_of_replaying(committer: bool) -> None:
    config = Config()
    config.register_serialization(Unreadable, UnreadableSerializer)
    declared = line(
        "t",
        {0: [1]},
        1,
        lambda b: b.set_bolt("x", EmitsUnreadable(), 2).shuffle_grouping("spout"),
        lambda b: (b.set_committer_bolt if committer else b.set_bolt)("y", Batch()).global_grouping("x"),
    )
    with InProcessCluster() as cluster:
        handle = cluster.submit_topology("t", config, declared)
        message = r"(?s)\ATraceback.*CorruptData in reading the tuples of 'x'.*ZeroDivisionError: on order"
        with pytest.raises(TopologyFailed, match=message):
            handle.await_drained(10)
