"""MemoryTransactionalSpout and its opaque sister, driven by hand."""

from __future__ import annotations

from typing import Any

import pytest

from stormline import MemoryTransactionalSpout, OpaqueMemoryTransactionalSpout, StormlineError, TransactionAttempt
from stormline.spouts.memory import RowsVanished
from stormline.topology.errors import CorruptData, InvalidComponent, InvalidConfig, InvalidStream
from stormline.topology.streams import OutputFieldsDeclarer

FIRST, AGAIN = TransactionAttempt(1, 1), TransactionAttempt(1, 2)
BOTH = pytest.mark.parametrize("spout_class", [MemoryTransactionalSpout, OpaqueMemoryTransactionalSpout])


class Collected:
    def __init__(self) -> None:
        self.rows: list[list[Any]] = []

    def emit(self, values: Any, stream: str = "default") -> None:
        self.rows.append(list(values))


def parts(spout: Any) -> tuple[Any, Any]:
    return spout.get_coordinator({}, None), spout.get_emitter({}, None)


def new_batch(emitter: Any, partition: int, last: Any, attempt: TransactionAttempt = FIRST) -> tuple[Any, list[Any]]:
    collected = Collected()
    emit = getattr(emitter, "emit_partition_batch_new", emitter.emit_partition_batch)
    metadata = emit(attempt, collected, partition, last)
    assert all(row[0] is attempt for row in collected.rows)
    return metadata, [row[1:] for row in collected.rows]


def replayed(emitter: Any, partition: int, metadata: Any) -> list[Any]:
    collected = Collected()
    emitter.emit_partition_batch(AGAIN, collected, partition, metadata)
    assert all(row[0] is AGAIN for row in collected.rows)
    return [row[1:] for row in collected.rows]


@BOTH
def test_it_declares_the_attempt_first(spout_class: Any) -> None:
    declarer = OutputFieldsDeclarer("words")
    spout_class({}, ["word", "n"], 3).declare_output_fields(declarer)
    assert declarer.streams["default"].fields.to_list() == ["tx", "word", "n"]
    assert not spout_class.emits_on_executors


@BOTH
def test_batches_follow_each_other_without_gap_or_overlap(spout_class: Any) -> None:
    _, emitter = parts(spout_class({0: list("abcde")}, ["letter"], 2))
    last, seen = None, []
    for _ in range(4):
        last, rows = new_batch(emitter, 0, last)
        seen.append((last, [row[0] for row in rows]))
    assert seen == [([0, 2], ["a", "b"]), ([2, 4], ["c", "d"]), ([4, 5], ["e"]), ([5, 5], [])]


@BOTH
def test_a_row_is_a_list_a_tuple_or_a_single_value(spout_class: Any) -> None:
    _, emitter = parts(spout_class({0: [["a", 1], ("b", 2), "cd", 3]}, ["x"], 9))
    assert new_batch(emitter, 0, None)[1] == [["a", 1], ["b", 2], ["cd"], [3]]


@BOTH
def test_rows_and_partitions_added_later_are_seen(spout_class: Any) -> None:
    data: dict[int, list[Any]] = {}
    coordinator, emitter = parts(spout_class(data, ["x"], 2))
    partitions = emitter if spout_class is OpaqueMemoryTransactionalSpout else coordinator
    assert partitions.num_partitions() == 0
    assert not coordinator.is_ready_after({}, 0)
    data[2] = ["a"]
    assert partitions.num_partitions() == 3
    assert coordinator.is_ready_after({}, 0)
    assert new_batch(emitter, 0, None) == ([0, 0], [])
    last, rows = new_batch(emitter, 2, None)
    assert (last, rows) == ([0, 1], [["a"]])
    assert not coordinator.is_ready_after({2: last}, 0)
    data[2].append("b")
    assert coordinator.is_ready_after({2: last}, 0)
    assert new_batch(emitter, 2, last) == ([1, 2], [["b"]])


@BOTH
def test_it_is_ready_only_while_rows_are_left_behind_the_batches_under_way(spout_class: Any) -> None:
    coordinator, _ = parts(spout_class({0: list("abcde"), 1: []}, ["x"], 2))
    assert [coordinator.is_ready_after({}, ahead) for ahead in range(4)] == [True, True, True, False]
    assert [coordinator.is_ready_after({0: [2, 4]}, ahead) for ahead in range(2)] == [True, False]
    assert not coordinator.is_ready_after({0: [4, 5]}, 0)


def test_a_replay_gives_the_rows_of_the_first_time_though_more_have_come() -> None:
    data = {0: list("abc")}
    _, emitter = parts(MemoryTransactionalSpout(data, ["x"], 9))
    metadata, rows = new_batch(emitter, 0, None)
    data[0] += list("de")
    assert replayed(emitter, 0, metadata) == rows == [["a"], ["b"], ["c"]]


def test_a_replay_whose_rows_are_gone_halts_instead_of_emitting_fewer() -> None:
    data = {3: list("abc")}
    _, emitter = parts(MemoryTransactionalSpout(data, ["x"], 2))
    metadata, _ = new_batch(emitter, 3, [0, 1])
    for left, holds in (({3: ["a"]}, 1), ({}, 0)):
        data.clear()
        data.update(left)
        with pytest.raises(RowsVanished) as caught:
            replayed(emitter, 3, metadata)
        assert str(caught.value) == (
            f"batch 1:2 has rows 1 to 2 of partition 3 of a memory spout, which now holds {holds} rows; "
            "give the spout all rows it had"
        )
    assert isinstance(caught.value, StormlineError)


def test_a_disabled_partition_gives_nothing_keeps_its_place_and_does_not_make_the_spout_ready() -> None:
    spout = OpaqueMemoryTransactionalSpout({0: list("abc"), 1: ["x"]}, ["letter"], 2)
    coordinator, emitter = parts(spout)
    last, _ = new_batch(emitter, 0, None)
    spout.set_disabled(0, True)
    spout.set_disabled(0, True)
    assert new_batch(emitter, 0, last) == (None, [])
    assert new_batch(emitter, 1, None) == ([0, 1], [["x"]])
    assert not coordinator.is_ready_after({0: last, 1: [0, 1]}, 0)
    spout.set_disabled(0, False)
    assert coordinator.is_ready_after({0: last, 1: [0, 1]}, 0)
    assert new_batch(emitter, 0, last) == ([2, 3], [["c"]])


@BOTH
@pytest.mark.parametrize(
    "metadata", [[0], [0, 1, 2], [1, 0], [-1, 1], ["0", "1"], [0, True], [0, 1.0], (0, 1), "01", 3, {}]
)
def test_metadata_that_is_not_ours_is_corrupt(spout_class: Any, metadata: Any) -> None:
    coordinator, emitter = parts(spout_class({0: ["a"]}, ["x"], 1))
    message = f"stored metadata of a memory spout is {metadata!r}, expected [first row, end row]"
    for use in (
        lambda: new_batch(emitter, 0, metadata),
        lambda: replayed(emitter, 0, metadata),
        lambda: coordinator.is_ready_after({0: metadata}, 0),
    ):
        with pytest.raises(CorruptData) as caught:
            use()
        assert str(caught.value) == message


@BOTH
@pytest.mark.parametrize(
    ("partitions", "fields", "take", "error", "message"),
    [
        ([["a"]], ["x"], 1, InvalidComponent, "partitions is a list, expected a dict of partition → list of rows"),
        (
            {"0": []},
            ["x"],
            1,
            InvalidComponent,
            "partition '0' of a memory spout: expected a whole number from 0 for ea",
        ),
        (
            {-1: []},
            ["x"],
            1,
            InvalidComponent,
            "partition -1 of a memory spout: expected a whole number from 0 for each",
        ),
        ({True: []}, ["x"], 1, InvalidComponent, "partition True of a memory spout: expected a whole number from 0"),
        ({0: "abc"}, ["x"], 1, InvalidComponent, "partition 0 of a memory spout is a str, expected a list of rows"),
        (
            {0: iter("abc")},
            ["x"],
            1,
            InvalidComponent,
            "partition 0 of a memory spout is a str_ascii_iterator, expected",
        ),
        ({}, ["x"], 0, InvalidConfig, "take_per_batch is 0, expected a whole number of at least 1"),
        ({}, ["x"], True, InvalidConfig, "take_per_batch is True, expected a whole number of at least 1"),
        ({}, ["x"], 2.0, InvalidConfig, "take_per_batch is 2.0, expected a whole number of at least 1"),
        ({}, "word", 1, InvalidStream, "fields of a memory spout is the text 'word', expected Fields('word', …)"),
        (
            {},
            ["tx", "x"],
            1,
            InvalidStream,
            "fields of a memory spout are ['tx', 'x']; the spout itself puts 'tx', the",
        ),
        ({}, ["x", "x"], 1, InvalidStream, "Fields('x', 'x'): field 'x' is given twice; give each field its own name"),
    ],
)
def test_a_wrong_argument_is_refused_when_the_spout_is_made(
    spout_class: Any, partitions: Any, fields: Any, take: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error) as caught:
        spout_class(partitions, fields, take)
    assert str(caught.value).replace("str_iterator", "str_ascii_iterator").startswith(message)


@BOTH
def test_a_wrong_partition_added_later_is_an_error_and_not_a_spout_that_is_ready_for_ever(spout_class: Any) -> None:
    data: dict[Any, Any] = {0: []}
    coordinator, emitter = parts(spout_class(data, ["x"], 1))
    data["late"] = ["a"]
    partitions = emitter if spout_class is OpaqueMemoryTransactionalSpout else coordinator
    with pytest.raises(InvalidComponent, match="partition 'late' of a memory spout: expected a whole number from 0"):
        partitions.num_partitions()
