"""Files that appear when their transaction is committed; cases of Flink's two-phase sinks, for both ready sinks."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stormline import CommitOutcome, Fields, InProcessCluster, TransactionLabel, Tuple, TwoPhaseCommitSink
from stormline.runtime.state.memory_store import MemoryStateServer
from stormline.state import FileTwoPhaseSink, MemoryTwoPhaseSink
from stormline.state.errors import InvalidStore, StoreFailed, StoreUnavailable
from stormline.state.sinks import file_sink
from stormline.topology.transaction_label import label_scope
from stormline.topology.tuples import TupleSource
from tests.kits.two_phase import sunk

SCOPE = label_scope("t", "sink")
SOURCE = TupleSource("spout", "default", 1, Fields("tx", "n", "what"))


def label(txid: int, task: int = 2, execution: int = 7) -> TransactionLabel:
    """Return a label of one task."""
    return TransactionLabel(SCOPE, txid, 1, txid, task, execution)


def opened(sink: TwoPhaseCommitSink) -> Any:
    """Return a sink that is open."""
    context: Any = None
    sink.open({}, context)
    return sink


def written(sink: Any, txid: int, *values: int, execution: int = 7) -> Any:
    """Write values and pre-commit them; return the handle."""
    transaction = sink.begin_transaction(label(txid, execution=execution))
    for value in values:
        sink.invoke(transaction, Tuple([None, value, "ä"], SOURCE))
    return sink.pre_commit(transaction)


def values_in(directory: Path) -> list[int]:
    """Return all visible values, in the order of the files' names."""
    texts = [path.read_text(encoding="utf-8") for path in sorted(directory.glob("*.jsonl"))]
    return [json.loads(line)["n"] for text in texts for line in text.splitlines()]


def pending(directory: Path) -> list[str]:
    """Return the names of what is not committed."""
    return sorted(path.name for path in (directory / ".pending").iterdir())


@pytest.fixture(params=["files", "memory"])
def sink(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """Each ready sink, opened."""
    if request.param == "files":
        return opened(FileTwoPhaseSink(tmp_path))
    memory = MemoryTwoPhaseSink("cases")
    memory.clear()
    return opened(memory)


# ---------------------------------------------------------------------------------------- Flink's cases


def test_three_snapshots_and_a_late_notice(tmp_path: Path) -> None:
    """42 s0 43 s1 44 s2 n2 n1: all are visible, the late notice of what is committed changes nothing."""
    sink = opened(FileTwoPhaseSink(tmp_path))
    handles = [written(sink, txid, value) for txid, value in ((1, 42), (2, 43), (3, 44))]
    assert [sink.commit(handle) for handle in handles] == [CommitOutcome.DONE] * 3
    assert sink.commit(handles[1]) is CommitOutcome.ALREADY
    assert values_in(tmp_path) == [42, 43, 44]
    assert pending(tmp_path) == []


def test_a_notice_of_the_first_two_only(tmp_path: Path) -> None:
    """42 s0 43 s1 44 s2 n1: 42 and 43 are visible, what comes later waits."""
    sink = opened(FileTwoPhaseSink(tmp_path))
    handles = [written(sink, txid, value) for txid, value in ((1, 42), (2, 43), (3, 44))]
    for handle in handles[:2]:
        sink.commit(handle)
    assert values_in(tmp_path) == [42, 43]
    assert pending(tmp_path) == [f"{handles[2]}.prepared"]


def test_a_write_that_fails_is_restored_without_leaving_anything(tmp_path: Path) -> None:
    """42 s0 43 s1, the write of 44 fails, restore: {42, 43}, nothing pending; the batch is written again then."""
    fails = [True]

    def line(tup: Tuple) -> str:
        if tup[1] == 9 and fails:
            raise OSError("no room on order")
        return json.dumps({"n": tup[1]})

    server = MemoryStateServer()
    config = {"topology.max.spout.pending": 1}
    topology = sunk(FileTwoPhaseSink(tmp_path, line_of=line), rows=12, tasks=1)
    with InProcessCluster(server) as cluster, pytest.raises(Exception, match="no room on order"):
        cluster.submit_topology("t", config, topology).await_drained(60)
    before = values_in(tmp_path)
    assert sorted(before) == list(range(8))
    assert pending(tmp_path) == []
    fails.clear()
    with InProcessCluster(server) as cluster:
        cluster.submit_topology("t", config, topology).await_drained(60)
    assert sorted(values_in(tmp_path)) == list(range(12))
    assert pending(tmp_path) == []


def test_commit_and_abort_may_be_repeated(sink: Any) -> None:
    """Flink's Kafka handles: commit∘commit and abort∘abort are right."""
    first, second = written(sink, 1, 42), written(sink, 2, 43)
    assert [sink.commit(first), sink.commit(first)] == [CommitOutcome.DONE, CommitOutcome.ALREADY]
    sink.abort(second)
    sink.abort(second)


def test_the_first_outcome_stands(sink: Any) -> None:
    """commit∘abort and abort∘commit: what was committed stays so, what was aborted never is."""
    first, second = written(sink, 1, 42), written(sink, 2, 43)
    sink.commit(first)
    sink.abort(first)
    assert sink.commit(first) is CommitOutcome.ALREADY
    sink.abort(second)
    assert sink.commit(second) is CommitOutcome.LOST


@pytest.mark.parametrize("decided", [1, 2, 3])
def test_of_three_that_were_pre_committed_those_that_are_decided_are_committed(sink: Any, decided: int) -> None:
    """3 pre-committed, restore with k of them in state: the others are listed, and aborted."""
    handles = [written(sink, 1, n, execution=n) for n in (42, 43, 44)]
    listed = {prepared.label: prepared.handle for prepared in sink.list_prepared(f"{SCOPE}-")}
    assert set(listed) == set(handles)
    sink.recover_and_commit(handles[decided - 1])
    for name in set(listed) - {handles[decided - 1]}:
        sink.recover_and_abort(listed[name])
    assert list(sink.list_prepared(f"{SCOPE}-")) == []


def test_another_prefix_lists_nothing_of_ours(sink: Any) -> None:
    written(sink, 1, 42)
    assert list(sink.list_prepared(label_scope("t", "other"))) == []


@pytest.mark.parametrize(("before", "after"), [(5, 1), (1, 2), (5, 3)])
def test_what_was_open_is_aborted_at_another_parallelism(before: int, after: int, tmp_path: Path) -> None:
    """5 open, restart at parallelism 1: all aborted. Rescales: what is committed is what was decided, each row once."""
    sink = opened(FileTwoPhaseSink(tmp_path))
    for task in range(before):
        open_one = sink.begin_transaction(TransactionLabel(SCOPE, 1, 1, 1, task, 1))
        sink.invoke(open_one, Tuple([None, 99, ""], SOURCE))
        if task % 2:
            sink.pre_commit(open_one)
        else:
            open_one.file.close()  # as where its process is killed
    assert len(pending(tmp_path)) == before
    server = MemoryStateServer()
    with InProcessCluster(server) as cluster:
        cluster.submit_topology("t", {}, sunk(sink, rows=2, tasks=1)).await_drained(60)
    with InProcessCluster(server) as cluster:  # its epoch is 2: all before is older
        handle = cluster.submit_topology("t", {}, sunk(sink, tasks=after), allow_changed_topology=True)
        handle.await_drained(60)
    assert pending(tmp_path) == []
    assert sorted(values_in(tmp_path)) == list(range(20))


# ---------------------------------------------------------------------------------------- the file sink's own


def test_a_line_is_a_json_object_of_the_fields(tmp_path: Path) -> None:
    sink = opened(FileTwoPhaseSink(tmp_path, ".json"))
    sink.commit(written(sink, 17, 42))
    (file,) = tmp_path.glob("*.json")
    assert file.name == "000000000017-0002.json"
    assert file.read_text(encoding="utf-8") == '{"n": 42, "what": "ä"}\n'


def test_what_is_rolled_back_leaves_nothing(tmp_path: Path) -> None:
    sink = opened(FileTwoPhaseSink(tmp_path))
    transaction = sink.begin_transaction(label(1))
    assert [prepared.label for prepared in sink.list_prepared("")] == [label(1).text], "what is open is listed, too"
    sink.roll_back(transaction)
    assert pending(tmp_path) == []


def test_a_file_that_somebody_took_away_is_lost(tmp_path: Path) -> None:
    """R7: it is proven, since nobody aborts what was decided."""
    sink = opened(FileTwoPhaseSink(tmp_path))
    handle = written(sink, 1, 42)
    (tmp_path / ".pending" / f"{handle}.prepared").unlink()
    assert sink.commit(handle) is CommitOutcome.LOST


def test_a_commit_is_brought_to_the_disk_though_the_one_before_ended_in_between(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is renamed and not synced a power cut takes back; recorded as committed it would be swept, and lost."""
    sink = opened(FileTwoPhaseSink(tmp_path))
    handle = written(sink, 1, 42)
    synced: list[Path] = []

    def ends(directory: Path) -> None:
        raise OSError("the process ends here")

    with monkeypatch.context() as patched:
        patched.setattr(file_sink, "_sync", ends)
        with pytest.raises(StoreUnavailable, match="the process ends here"):
            sink.commit(handle)
    monkeypatch.setattr(file_sink, "_sync", synced.append)
    assert sink.commit(handle) is CommitOutcome.ALREADY
    assert synced == [tmp_path, tmp_path / ".pending"]
    assert values_in(tmp_path) == [42]


def test_a_file_of_somebody_else_s_is_not_written_over(tmp_path: Path) -> None:
    sink = opened(FileTwoPhaseSink(tmp_path))
    handle = written(sink, 1, 42)
    (tmp_path / "000000000001-0002.jsonl").write_text("theirs")
    message = "000000000001-0002.jsonl is there already, and was not written by t_.*; give each a directory of its own"
    with pytest.raises(StoreFailed, match=message):
        sink.commit(handle)
    with pytest.raises(StoreFailed, match=r"'other' in .* is no label of a transaction"):
        sink.commit("other")


@pytest.mark.parametrize(
    "call", [lambda sink: sink.begin_transaction(label(1)), lambda sink: list(sink.list_prepared(""))]
)
def test_a_directory_that_is_gone_is_tried_again(call: Callable[[Any], Any], tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match=r"cannot be reached or written \(.*\); it is tried again"):
        call(FileTwoPhaseSink(tmp_path / "gone"))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: FileTwoPhaseSink(3), "FileTwoPhaseSink got the directory 3, expected a path"),  # type: ignore[arg-type]
        (
            lambda: FileTwoPhaseSink("d", "a/b"),
            "FileTwoPhaseSink got the suffix 'a/b', expected the end of a file's name",
        ),
        (lambda: MemoryTwoPhaseSink(3), "a memory sink is named 3, expected a text"),  # type: ignore[arg-type]
    ],
)
def test_arguments_of_other_kinds_are_refused(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(InvalidStore, match=message):
        make()
