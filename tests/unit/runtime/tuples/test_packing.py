"""How tuples become bytes: a cut is noticed, and of a slice no more than its own rows travels."""

from __future__ import annotations

import pickle

import pyarrow as pa
import pytest

from stormline import Fields, TransactionAttempt
from stormline.runtime.tasks.gathered import pack_gathered, restore_gathered
from stormline.runtime.tuples import packing as packing
from stormline.runtime.tuples.columns import Columns
from stormline.runtime.tuples.packing import ARROW, Packed, in_segments, pack_batch, unpack_batch
from stormline.topology.errors import CorruptData
from stormline.topology.serialization import PLAIN
from stormline.topology.tuples import TupleSource
from tests.kits.columnar import ArrowGather

ATTEMPT = TransactionAttempt(1, 1)
SOURCE = TupleSource("words", "default", 7, Fields("tx", "n", "word"))
BIG = pa.record_batch({"n": pa.array(range(100_000)), "word": ["w" * 5] * 100_000})


def test_rows_and_columns_come_back_as_what_they_were() -> None:
    rows = [[ATTEMPT, 1, "a"], [ATTEMPT, 2, None]]
    packed = Packed.of([[*row] for row in rows], SOURCE, PLAIN)
    assert (packed.rows, packed.unpack(ATTEMPT, PLAIN)) == (2, rows)
    columns = Packed.of(Columns(ATTEMPT, BIG.slice(3, 2)), SOURCE, PLAIN)
    assert (columns.rows, columns.kind) == (2, ARROW)
    again = columns.unpack(ATTEMPT, PLAIN)
    assert isinstance(again, Columns)
    assert again.rows() == [[ATTEMPT, 3, "wwwww"], [ATTEMPT, 4, "wwwww"]]
    assert len(columns.data) < 1000, "no more than the slice"


def test_an_arrow_stream_that_was_cut_anywhere_is_noticed() -> None:
    data = pack_batch(pa.record_batch({"n": [1, 2, 3]}))
    complete = len(data) - 8  # the end mark proves nothing, and is not needed
    for end in range(0, complete - 1, 8):
        with pytest.raises(
            CorruptData, match=r"an Arrow stream without its record batch|bytes that are no Arrow stream"
        ):
            Packed(3, data[:end], ARROW).unpack(ATTEMPT, PLAIN)
    assert len(Packed(3, data[:complete], ARROW).unpack(ATTEMPT, PLAIN)) == 3


def test_a_large_batch_travels_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing, "SEGMENT_BYTES_MAX", 500_000)
    columns = Columns(ATTEMPT, BIG)
    parts = list(in_segments(columns))
    assert 3 <= len(parts) <= 5
    assert [row for part in parts for row in part.rows()] == columns.rows()
    assert [len(part) for part in in_segments(columns.slice(0, 10))] == [10]


@pytest.mark.parametrize(
    "keep", [BIG.slice(5, 2), pa.Table.from_batches([BIG] * 2).slice(5, 2), BIG.column(1).slice(5, 2)]
)
def test_of_a_slice_that_a_bolt_gathered_its_own_rows_travel(keep: pa.RecordBatch) -> None:
    bolt = ArrowGather()
    bolt.batches = [keep]
    state = pack_gathered(bolt, ["batches"], "bolt 'b'", PLAIN)
    assert len(state) < 3000 < len(pickle.dumps(keep, protocol=5))
    other = ArrowGather()
    restore_gathered(other, state, PLAIN)
    assert other.batches == [keep]


def test_of_a_dictionary_no_more_travels_than_the_rows_need() -> None:
    words = pa.array([f"word {n % 5000}" for n in range(10_000)]).dictionary_encode().cast(WORDS)
    batch = pa.record_batch({"word": words, "lists": pa.array([[1]] * 10_000)})
    part = batch.slice(7000, 3)
    assert len(pack_batch(part)) < 2000 < 50_000 < len(pack_batch(batch))
    again = unpack_batch(pack_batch(part))
    assert again.schema == batch.schema
    assert again.to_pydict() == part.to_pydict()
    ranked = pa.DictionaryArray.from_arrays([2, 1], ["a", "b", "c"], ordered=True)
    assert unpack_batch(pack_batch(pa.record_batch({"rank": ranked}))).column(0).equals(ranked), "order has a meaning"


WORDS = pa.dictionary(pa.int16(), pa.string())


def test_what_was_packed_is_counted_when_it_is_unpacked() -> None:
    for tuples in ([[ATTEMPT, 1, "a"], [ATTEMPT, 2, "b"]], Columns(ATTEMPT, BIG.slice(0, 2))):
        whole = Packed.of(tuples, SOURCE, PLAIN)
        assert len(whole.unpack_whole(ATTEMPT, PLAIN)) == 2
        with pytest.raises(CorruptData, match=r"3 tuples were packed, and 2 came out"):
            Packed(3, whole.data, whole.kind).unpack_whole(ATTEMPT, PLAIN)
    with pytest.raises(CorruptData, match=r"columns of \[1, 2\] values, expected 2 in each"):
        Packed(2, PLAIN.pack([2, [1], [1, 2]])).unpack(ATTEMPT, PLAIN)
