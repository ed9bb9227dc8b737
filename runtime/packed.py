"""How tuples become bytes: rows as msgpack, columns as an Arrow stream of one record batch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from stormline.runtime.columns import Columns, Row, Tuples
from stormline.topology.arrow import pyarrow_for
from stormline.topology.attempt import TransactionAttempt
from stormline.topology.errors import CorruptData, UnregisteredClass
from stormline.topology.serialization import Registry
from stormline.topology.tuples import TupleSource

ROWS = 0
ARROW = 1
SEGMENT_BYTES_MAX = 1 << 26
BARE_ROWS_MAX = 1 << 22
"""Rows of no field but the attempt take no bytes, so their number alone could fill the memory."""


@dataclass(frozen=True, slots=True)
class Packed:
    """Tuples as bytes. `kind` is ROWS or ARROW; `rows` says how many there must be: whoever unpacks them compares."""

    rows: int
    data: bytes
    kind: int = ROWS

    def __reduce__(self) -> tuple[type[Packed], tuple[int, bytes, int]]:
        return Packed, (self.rows, self.data, self.kind)

    @classmethod
    def of(cls, tuples: Tuples, source: TupleSource, registry: Registry) -> Packed:
        """Pack tuples; an `UnregisteredClass` names component, stream and field."""
        if isinstance(tuples, Columns):
            return cls(len(tuples), pack_batch(tuples.batch), ARROW)
        return cls(len(tuples), _pack_rows(tuples, source, registry))

    def unpack(self, attempt: TransactionAttempt, registry: Registry) -> Tuples:
        """Return the tuples, those of `attempt`.

        Raises:
            CorruptData: they are none.
        """
        if self.kind == ARROW:
            return Columns(attempt, unpack_batch(self.data))
        return _unpack_rows(self.data, attempt, registry)

    def unpack_whole(self, attempt: TransactionAttempt, registry: Registry) -> Tuples:
        """Return the tuples, as many as were packed (law 5).

        Raises:
            CorruptData: they are not all there.
        """
        tuples = self.unpack(attempt, registry)
        if len(tuples) != self.rows:
            raise CorruptData(f"{self.rows} tuples were packed, and {len(tuples)} came out")
        return tuples


def _pack_rows(rows: list[Row], source: TupleSource, registry: Registry) -> bytes:
    """Return rows as bytes, column by column: [number of rows, a list of values for each field after the first]."""
    columns = [[row[i] for row in rows] for i in range(1, len(source.fields))]
    try:
        return registry.pack([len(rows), *columns])
    except UnregisteredClass:
        for name, column in zip(source.fields[1:], columns, strict=True):
            for value in column:
                try:
                    registry.pack(value)
                except UnregisteredClass as error:
                    raise UnregisteredClass(
                        f"{source.component!r} emitted to stream {source.stream!r}, field {name!r}: {error}"
                    ) from None
        raise


def _unpack_rows(packed: bytes, attempt: TransactionAttempt, registry: Registry) -> list[Row]:
    unpacked = registry.unpack(packed)
    if type(unpacked) is not list or not unpacked or any(type(column) is not list for column in unpacked[1:]):
        raise CorruptData(f"{len(packed)} bytes that are no rows; expected their number and a list for each field")
    rows, *columns = unpacked
    if not columns:
        _check_bare(rows)
        return [[attempt] for _ in range(rows)]
    if any(len(column) != rows for column in columns):
        raise CorruptData(f"columns of {[len(column) for column in columns]} values, expected {rows} in each")
    if len(columns) == 1:
        return [[attempt, value] for value in columns[0]]
    return [[attempt, *values] for values in zip(*columns, strict=True)]


def pack_batch(batch: Any) -> bytes:
    """Return a record batch as an Arrow stream; of dictionaries no more than its rows need."""
    pa = pyarrow_for("a record batch on its way")
    if any(map(pa.types.is_dictionary, batch.schema.types)):
        columns = [_trimmed(pa, column) for column in batch.columns]
        batch = pa.RecordBatch.from_arrays(columns, schema=batch.schema)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    packed: bytes = sink.getvalue().to_pybytes()
    return packed


def _trimmed(pa: Any, column: Any) -> Any:
    kind = column.type
    if not pa.types.is_dictionary(kind) or kind.ordered or len(column.dictionary) <= len(column):
        return column
    try:
        again = column.dictionary_decode().dictionary_encode()
    except pa.ArrowNotImplementedError:  # of lists and the like
        return column
    return pa.DictionaryArray.from_arrays(again.indices.cast(kind.index_type), again.dictionary)


def unpack_batch(packed: bytes) -> Any:
    """Return the record batch of an Arrow stream; raise `CorruptData` where there is none.

    Arrow follows offsets and indices wherever they lead, out of memory too, so all of them are checked here.
    """
    pa = pyarrow_for("a record batch on its way")
    try:
        batch = pa.ipc.open_stream(packed).read_next_batch()
        batch.validate(full=True)
        _ = batch.schema.names  # which are text
        if batch.num_rows > 8 * len(packed):  # what else takes at least a bit a row
            _check_bare(batch.num_rows)
        return batch
    except StopIteration:  # a stream that is cut between two messages reads as complete
        raise CorruptData("an Arrow stream without its record batch") from None
    except (pa.ArrowException, OSError, ValueError, TypeError, OverflowError) as error:
        if isinstance(error, CorruptData):
            raise
        raise CorruptData(f"{len(packed)} bytes that are no Arrow stream: {error}") from None


def _check_bare(rows: Any) -> None:
    """Check the number of rows that take no bytes."""
    if type(rows) is not int or not 0 <= rows <= BARE_ROWS_MAX:
        raise CorruptData(f"{rows!r:.40} rows without a value, expected a number up to {BARE_ROWS_MAX}")


def in_segments(columns: Columns) -> Iterator[Columns]:
    """Give a record batch in parts, each of which is small enough for a message of Spark's."""
    parts = max(1, -(-columns.batch.nbytes // SEGMENT_BYTES_MAX))
    rows = -(-len(columns) // parts)
    for start in range(0, len(columns), rows):
        yield columns.slice(start, rows)


def reduced_array(obj: Any) -> Any:
    """Return how to pickle an array of which others hold more than it does itself; `NotImplemented` for all else."""
    pa = pyarrow_for("the state of a bolt")
    if not isinstance(obj, pa.Array) or 2 * obj.nbytes > obj.get_total_buffer_size():
        return NotImplemented
    return unpack_array, (pack_batch(pa.RecordBatch.from_arrays([obj], names=[""])),)


def unpack_array(packed: bytes) -> Any:
    """Return the array that `reduced_array` packed."""
    return unpack_batch(packed).column(0)
