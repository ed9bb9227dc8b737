"""What the fuzzer found, each as small as it could be made: bad bytes give typed errors with a message that teaches."""

from __future__ import annotations

import datetime as dt
import mmap
import os
import struct
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click import BadParameter

from stormline import FileTransactionalSpout, TransactionAttempt
from stormline.cli.conf import parse_conf
from stormline.runtime.coordination.batch_store import _from_value
from stormline.runtime.errors import StateCorrupt
from stormline.runtime.state.driver_identity import DriverIdentity
from stormline.runtime.state.rotating_state import RotatingState
from stormline.runtime.state.state_tree import StateTree
from stormline.runtime.state.stored_value import seal
from stormline.runtime.tuples import blocks
from stormline.runtime.tuples.blocks import Origin
from stormline.runtime.tuples.packing import ARROW, BARE_ROWS_MAX, Packed, _field, _inner, pack_batch, unpack_batch
from stormline.runtime.world.world import REAL
from stormline.runtime.zookeeper.claim import Owner
from stormline.spouts.file.errors import UnusableFile
from stormline.spouts.file.metadata import Progress
from stormline.topology.columns import values_of
from stormline.topology.errors import ColumnCannotTravel, CorruptData, shown
from stormline.topology.packing import msgpack
from stormline.topology.serialization import PLAIN
from tests.kits.file_spout import Run

ATTEMPT = TransactionAttempt(1, 1)
ORIGIN = Origin(1, 1)


def broken_offsets() -> bytes:
    """Return a stream whose second text begins 2 GB behind its data: reading it without a check ends the process."""
    packed = pack_batch(pa.record_batch({"s": ["aaaa", "bbbb"]}))
    offsets = b"\0\0\0\0\4\0\0\0\x08\0\0\0"
    assert packed.count(offsets) == 1
    return packed.replace(offsets, b"\0\0\0\0\0\0\0\x70\x08\0\0\x70")


def test_offsets_that_lead_out_of_a_record_batch_are_corrupt() -> None:
    with pytest.raises(CorruptData, match=r"^\d+ bytes that are no Arrow stream: .*[Oo]ffset"):
        Packed(2, broken_offsets(), ARROW).unpack(ATTEMPT, PLAIN)


def test_text_that_is_none_in_a_record_batch_is_corrupt() -> None:
    packed = pack_batch(pa.record_batch({"s": ["aaaa"]}))
    with pytest.raises(CorruptData, match=r"that are no Arrow stream: .*UTF"):
        Packed(1, packed.replace(b"aaaa", b"a\xff\xffa"), ARROW).unpack(ATTEMPT, PLAIN)
    packed = pack_batch(pa.record_batch({"name": [1]}))
    with pytest.raises(CorruptData, match="that are no Arrow stream"):
        Packed(1, packed.replace(b"name", b"n\xff\xffe"), ARROW).unpack(ATTEMPT, PLAIN)


WIDTH, WIDE_ROWS = 1 << 16, 1 << 10
WIDE_BYTES = WIDTH * WIDE_ROWS


def zeros(size: int) -> Any:
    """Return a buffer that takes no memory."""
    return pa.py_buffer(mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))


def wide() -> Any:
    """Return an array of 64 MiB."""
    return pa.Array.from_buffers(pa.binary(WIDTH), WIDE_ROWS, [None, zeros(WIDE_BYTES)])


def stream(array: Any, metadata: dict[str, str] | None = None, **options: Any) -> bytes:
    batch = pa.record_batch({"wide": array}, metadata={"a": "b"})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_batch(batch, custom_metadata=metadata)
    packed: bytes = sink.getvalue().to_pybytes()
    return packed


def compressed_as_in_arrow_0_17() -> bytes:
    data = struct.pack("<q", WIDE_BYTES) + pa.Codec("zstd").compress(zeros(WIDE_BYTES), asbytes=True)
    array = pa.array(data, pa.uint8())
    return stream(array, {"ARROW:experimental_compression": "zstd"}, metadata_version=pa.ipc.MetadataVersion.V4)


def in_the_other_byte_order() -> bytes:
    packed = bytearray(pack_batch(pa.record_batch({"n": pa.array(range(1 << 18))})))
    message = _inner(bytes(packed), 8)
    schema = _inner(bytes(packed), _field(bytes(packed), message, 2))
    offsets = schema - struct.unpack_from("<i", packed, schema)[0]
    packed[offsets + 4 : offsets + 6] = packed[offsets + 6 : offsets + 8]  # any number but 0, which is little-endian
    return bytes(packed)


@pytest.mark.parametrize(
    "make",
    [
        lambda: stream(wide(), compression="zstd"),
        lambda: stream(wide(), compression="lz4"),
        lambda: stream(pa.DictionaryArray.from_arrays(pa.array([0]), wide()), compression="zstd"),
        compressed_as_in_arrow_0_17,
        in_the_other_byte_order,
    ],
)
def test_a_record_batch_that_would_grow_is_refused_and_takes_no_memory(make: Any) -> None:
    data = make()
    pool, before = pa.proxy_memory_pool(pa.system_memory_pool()), pa.default_memory_pool()
    pa.set_memory_pool(pool)
    try:
        with pytest.raises(CorruptData, match=r"^an Arrow stream that is compressed, or in another machine's byte ord"):
            Packed(WIDE_ROWS, data, ARROW).unpack(ATTEMPT, PLAIN)
    finally:
        pa.set_memory_pool(before)
    assert pool.max_memory() < 1 << 20


@pytest.mark.parametrize("options", [{}, {"metadata_version": pa.ipc.MetadataVersion.V4}, {"use_legacy_format": True}])
@pytest.mark.parametrize("array", [pa.array([1, 2]), pa.array(["a", "b", "a"]).dictionary_encode(), pa.array([], "i4")])
def test_a_stream_of_any_version_that_is_not_compressed_can_be_read(array: Any, options: dict[str, Any]) -> None:
    assert unpack_batch(stream(array, **options)).column(0).equals(array)


@pytest.mark.parametrize(
    "data",
    [b"", b"\0", b"\0" * 4, b"\xff" * 4, b"\xff" * 8, b"\xff" * 4 + b"\0" * 4, b"\1\0\0\0" * 6, b"\1\0\0\0\0\0\0\0"],
)
def test_bytes_that_are_no_arrow_stream_are_corrupt(data: bytes) -> None:
    with pytest.raises(CorruptData, match="bytes that are no Arrow stream: "):
        unpack_batch(data)


def test_a_stream_without_a_record_batch_is_corrupt() -> None:
    sink = pa.BufferOutputStream()
    pa.ipc.new_stream(sink, pa.schema([("n", "i4")])).close()
    with pytest.raises(CorruptData, match=r"^an Arrow stream without its record batch$"):
        unpack_batch(sink.getvalue().to_pybytes())


def test_a_number_of_rows_that_take_no_bytes_is_capped() -> None:
    message = rf"rows without a value, expected a number up to {BARE_ROWS_MAX}$"
    for rows in (BARE_ROWS_MAX + 1, -1, "9", None, 2**63):
        with pytest.raises(CorruptData, match=message):
            Packed(1, PLAIN.pack([rows])).unpack(ATTEMPT, PLAIN)
    nothing = pack_batch(pa.record_batch({"z": pa.nulls(BARE_ROWS_MAX + 1)}))
    with pytest.raises(CorruptData, match=message):
        Packed(1, nothing, ARROW).unpack(ATTEMPT, PLAIN)
    assert len(Packed(3, PLAIN.pack([3])).unpack(ATTEMPT, PLAIN)) == 3


def deep() -> Any:
    """Return a list that can be read, and not be shown."""
    value: Any = []
    for _ in range(1010):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("what", "shown"),
    [(deep(), r"(whose repr raises \w+Error|.*\[{40})"), (1 << 20_000, r"whose repr raises \w+Error")],  # 3.13 shows it
    ids=["deep", "long"],
)
def test_what_cannot_be_shown_is_named_all_the_same(what: Any, shown: str) -> None:
    for rows in ([what], [what, [1]]):
        with pytest.raises(CorruptData, match=shown):
            Packed(1, PLAIN.pack(rows)).unpack(ATTEMPT, PLAIN)
    for owner in (what, {"epoch": what, "token": "", "writes": 0}):
        with pytest.raises(StateCorrupt, match=rf"^/t/owner holds {shown}"):
            Owner.unseal(seal(owner, PLAIN), "/t/owner")


@pytest.mark.parametrize("at", range(8))
def test_a_block_that_is_nested_deeply_is_corrupt(at: int) -> None:
    values: list[Any] = [blocks.VERSION, 1, 1, 0, 0, b"one", [], None]
    values[at] = deep()
    with pytest.raises(CorruptData):
        blocks.decode(b"\1" + msgpack.packb(values), ORIGIN)
    with pytest.raises(CorruptData, match="bytes that are no block: "):
        blocks.decode(b"\1" + b"\x91" * 1025 + b"\xc0", ORIGIN)


@pytest.mark.parametrize("value", [5, None, [], "ab", {}, [1, 2], [1, "a"], [1, None], [2, [1, 2], {}]])
def test_rows_that_are_none_are_corrupt(value: Any) -> None:
    with pytest.raises(CorruptData, match=r"expected their number and a list for each field$"):
        Packed(1, PLAIN.pack(value)).unpack(ATTEMPT, PLAIN)


def test_a_column_of_values_that_python_has_not_cannot_travel() -> None:
    with pytest.raises(ColumnCannotTravel, match=r"^type timestamp\[s\] holds what no value of Python can: "):
        values_of(pa.array([1 << 60], pa.timestamp("s")))
    assert values_of(pa.array([0], pa.timestamp("s"))) == [dt.datetime(1970, 1, 1)]


@pytest.mark.parametrize(
    ("segments", "closing", "message"),
    [
        ([[0, "1", 2, 3, 1, b"", 0]], None, "whose attempts, edges, tasks or counts are no whole numbers"),
        ([[-1, 1, 2, 3, 1, b"", 0]], None, "whose attempts, edges, tasks or counts are no whole numbers"),
        ([[0, 1, 2, 3, 1.5, b"", 0]], None, "whose attempts, edges, tasks or counts are no whole numbers"),
        ([], [[[0, 1, 2, 3, None]], []], "whose attempts, edges, tasks or counts are no whole numbers"),
        ([], [[], [True]], "whose attempts, edges, tasks or counts are no whole numbers"),
        ([[0, 1, 2, 3, 1, "text", 0]], None, "whose tuples are no bytes, or of a kind that is not known"),
        ([[0, 1, 2, 3, 1, b"", 2]], None, "whose tuples are no bytes, or of a kind that is not known"),
        (5, None, "bytes that are no block: "),
        ([[0, 1]], None, "bytes that are no block: "),
    ],
)
def test_a_block_of_other_values_is_corrupt(segments: Any, closing: Any, message: str) -> None:
    data = b"\1" + msgpack.packb([blocks.VERSION, 1, 1, 0, 0, b"one", segments, closing])
    with pytest.raises(CorruptData, match=message):
        blocks.decode(data, ORIGIN)


@pytest.mark.parametrize(
    "change",
    [{"rows": -1}, {"group_max": "2"}, {"rows": True}, {"fixed": 1}, {"partitions": None},
     {"partitions": [[0, None, "3", 0, True]]}, {"partitions": [[0, None, 3, 0, None]]},
     {"partitions": [[0, None, 3, 0, True], [0, None, 3, 0, True]]}],
)  # fmt: skip
def test_a_stored_batch_of_other_values_halts(change: dict[str, Any]) -> None:
    value = {"metadata": 1, "fixed": True, "rows": 3, "partitions": [[0, None, 3, 0, True]], "commit_id": 7}
    value["group_max"] = 2
    assert _from_value(1, value).rows == 3
    with pytest.raises(StateCorrupt, match=r"^the stored batch of transaction 1 is \{.*; nothing was changed$"):
        _from_value(1, {**value, **change})


def test_a_txid_in_other_digits_halts() -> None:
    class Store:
        def children(self, path: str) -> list[str]:
            return ["٠" * 11 + "١"]

    with pytest.raises(StateCorrupt, match=r"is not named after a transaction \(12 digits\)"):
        RotatingState(Store(), "batches").txids()  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["..", "a\nb", "é", "batches/٠", "a b", ""])
def test_a_znode_with_a_name_of_somebody_elses_halts(name: str) -> None:
    with pytest.raises(
        StateCorrupt, match=r"^'/t/state/.* is no name that Stormline gives to a znode; nothing was chang"
    ):
        StateTree(PLAIN, "/t/state").load(name, seal(1, PLAIN), 0)


@pytest.mark.parametrize(
    "change", [{"epoch": 0}, {"epoch": 2**31}, {"epoch": -(2**200)}, {"writes": -1}, {"writes": 2**63}]
)
def test_an_owner_out_of_range_halts(change: dict[str, Any]) -> None:
    stored = {"epoch": 1, "token": "", "writes": 0}
    with pytest.raises(
        StateCorrupt, match=r"^/t/owner holds .*; epochs go from 1 to 2147483647, and writes are counted"
    ):
        Owner.unseal(seal({**stored, **change}, PLAIN), "/t/owner")


@pytest.mark.parametrize(
    "change", [{"pid": 0}, {"pid": 2**40}, {"session_timeout_ms": 2**200}, {"session_timeout_ms": -1}]
)
def test_a_holder_out_of_range_is_none(change: dict[str, Any]) -> None:
    data = DriverIdentity.this_process(REAL, 1000, "x").to_data()
    with pytest.raises(TypeError, match=r"^a process id and a time-out expected$"):
        DriverIdentity.from_data({**data, **change})


def test_a_value_nested_too_deeply_on_the_command_line_is_refused() -> None:
    with pytest.raises(BadParameter, match=r"^mine: the value is nested too deeply$"):
        parse_conf((f"mine={'[' * 100_000}",))


def test_a_value_whose_repr_raises_can_be_shown() -> None:
    class Bad:
        def __repr__(self) -> str:
            raise ZeroDivisionError

    assert shown(Bad()) == "whose repr raises ZeroDivisionError"
    assert shown("x" * 100) == "'" + "x" * 79


class TestFiles:
    @pytest.fixture
    def run(self, tmp_path: Path) -> Run:
        (tmp_path / "a.csv").write_text("a,b\n1,2\n3,4\n5,6\n")
        return Run(FileTransactionalSpout([tmp_path / "a.csv"], rows_per_batch=2))

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"columns": ["x"]}, "has the columns "),
            ({"columns": ["x", [1]]}, "has the columns "),
            ({"files": [["relative", 3]]}, "has the files "),
            ({"files": [["/a\0b", 3]]}, "has the files "),
            ({"files": [["/a", -3]]}, "has the files "),
            ({"files": [["/\udc80", 3]]}, "has the files "),
            ({"pieces": [[1, 0, 4, 2, 1, 0, 0]]}, "has the pieces "),
            ({"pieces": [[0, 4, 0, 2, 1, 0, 0]]}, "has the pieces "),
            ({"pieces": [[0, 0, 4]]}, "has the pieces "),
            ({"at": ["/a", 3, 0, -1, 1, 0]}, "ends at "),
            ({"at": 3}, "ends at "),
            ({"read": "text"}, "has the files read "),
        ],
    )
    def test_stored_pieces_of_other_values_are_corrupt(self, run: Run, change: dict[str, Any], message: str) -> None:
        metadata = run.plan()
        Progress.from_metadata(metadata, "csv")
        with pytest.raises(
            CorruptData, match=rf"^the stored batch of a FileTransactionalSpout {message}.*; restore the"
        ):
            Progress.from_metadata({**metadata, **change}, "csv")
        with pytest.raises(CorruptData, match="of FileTransactionalSpout, version 1"):
            Progress.from_metadata({key: value for key, value in metadata.items() if key not in change}, "csv")

    def test_what_is_no_file_to_read_is_refused(self, run: Run, tmp_path: Path) -> None:
        metadata = run.plan()
        os.mkfifo(tmp_path / "fifo")
        for path, message in (
            (tmp_path, "is no regular file; a batch must be readable again, so pipes and devices will not do"),
            (tmp_path / "fifo", "is no regular file"),
            (Path(os.devnull), "is no regular file"),
            (
                tmp_path / "a.csv" / "b",
                r"cannot be opened on .* \(Not a directory\); the driver and every executor must",
            ),
            (tmp_path / ("x" * 300), r"cannot be opened on .* \(File name too long\)"),
        ):
            metadata["files"][0][0] = str(path)
            with pytest.raises(UnusableFile, match=message):
                run.emit(metadata)
            metadata["at"][0] = str(path)
            with pytest.raises(UnusableFile, match=message):
                Run(run.spout, 1, [metadata])

    def test_a_wrong_number_of_rows_is_corrupt(self, run: Run) -> None:
        metadata = run.plan()
        metadata["pieces"][0][4] = 7
        with pytest.raises(
            CorruptData, match=r"a\.csv:2: the stored batch has 7 rows from here on, and the file, which"
        ):
            run.emit(metadata)

    def test_text_that_is_none_in_a_parquet_file_is_refused(self, tmp_path: Path) -> None:
        path = tmp_path / "a.parquet"
        pq.write_table(
            pa.table({"word": ["aaaa"]}), path, use_dictionary=False, compression="none", write_statistics=False
        )
        sound = path.read_bytes()
        path.write_bytes(sound.replace(b"aaaa", b"a\xff\xffa"))
        with pytest.raises(UnusableFile, match=r"row group 0, cannot be read: .*UTF"):
            Run(FileTransactionalSpout([path], ["word"], "parquet")).rows()
        path.write_bytes(sound.replace(b"word", b"w\xff\xffd"))
        with pytest.raises(UnusableFile, match=r"cannot be read as Parquet: .*utf-8"):
            Run(FileTransactionalSpout([path], None, "parquet")).rows()

    def test_a_time_that_python_has_not_in_a_parquet_file_is_refused(self, tmp_path: Path) -> None:
        path = tmp_path / "a.parquet"
        pq.write_table(pa.table({"t": pa.array([1 << 60], pa.timestamp("ms"))}), path)
        with pytest.raises(
            UnusableFile, match=r"column 't', holds what no value of Python's can .*; leave it out of fields"
        ):
            Run(FileTransactionalSpout([path], ["t"], "parquet")).rows()
