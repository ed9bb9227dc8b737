"""How tuples become bytes: rows as msgpack, columns as an Arrow stream of one record batch."""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

from stormline.runtime.tuples.columns import Columns, Row, Tuples
from stormline.topology.arrow import pyarrow_for
from stormline.topology.attempt import TransactionAttempt
from stormline.topology.errors import CorruptData, UnregisteredClass, shown
from stormline.topology.serialization import Registry
from stormline.topology.tuples import TupleSource

ROWS = 0
ARROW = 1
KINDS = (ROWS, ARROW)
SEGMENT_BYTES_MAX = 1 << 26
BARE_ROWS_MAX = 1 << 22
"""Rows of no field but the attempt take no bytes, so their number alone could fill the memory."""


class Packed(NamedTuple):
    """Tuples as bytes. `kind` is ROWS or ARROW; `rows` says how many there must be: whoever unpacks them compares.

    A named tuple, as `Delivery`: one is made for each few tuples of a small batch, and a frozen dataclass takes longer.
    """

    rows: int
    data: bytes
    kind: int = ROWS

    def __reduce__(self) -> tuple[type[Packed], tuple[Any, ...]]:
        return Packed, tuple(self)  # a named tuple's own way takes thrice as long

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
        """Return the tuples, as many as were packed (law 5, complete input).

        Raises:
            CorruptData: they are not all there.
        """
        tuples = self.unpack(attempt, registry)
        if len(tuples) != self.rows:
            raise CorruptData(f"{self.rows} tuples were packed, and {len(tuples)} came out")
        return tuples


_UNCHANGED = frozenset({str, bytes, int, float, bool, type(None), TransactionAttempt})


def as_unpacked(tuples: Tuples) -> bool:
    """Return whether to pack and unpack them would change nothing: they hold nothing that anybody can change."""
    return not isinstance(tuples, Columns) and _UNCHANGED.issuperset(map(type, chain.from_iterable(tuples)))


def _pack_rows(rows: list[Row], source: TupleSource, registry: Registry) -> bytes:
    """Return rows as bytes, column by column: [number of rows, a list of values for each field after the first]."""
    columns = [[row[i] for row in rows] for i in range(1, len(source.fields))]
    try:
        return registry.pack([len(rows), *columns])
    except UnregisteredClass as error:
        names = dict(enumerate(source.fields[1:], 1))
        raise unregistered_field(error, rows, names, registry.pack, (source.component, source.stream)) from None


def _unpack_rows(packed: bytes, attempt: TransactionAttempt, registry: Registry) -> list[Row]:
    unpacked = registry.unpack(packed)
    if type(unpacked) is not list or not unpacked or any(type(column) is not list for column in unpacked[1:]):
        raise CorruptData(f"{len(packed)} bytes that are no rows; expected their number and a list for each field")
    rows, *columns = unpacked
    if not columns:
        _check_bare(rows)
        return [[attempt] for _ in range(rows)]
    if any(len(column) != rows for column in columns):
        raise CorruptData(f"columns of {[len(column) for column in columns]} values, expected {shown(rows)} in each")
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
        _check_views(packed)
        batch = pa.ipc.open_stream(packed).read_next_batch()
        batch.validate(full=True)
        _ = batch.schema.names  # which are text
        if batch.num_rows > 8 * len(packed):  # what else takes at least a bit a row
            _check_bare(batch.num_rows)
        return batch
    except StopIteration:  # a stream that is cut between two messages reads as complete
        raise CorruptData("an Arrow stream without its record batch") from None
    except (pa.ArrowException, OSError, ValueError, TypeError, OverflowError, IndexError, struct.error) as error:
        if isinstance(error, CorruptData):
            raise
        raise CorruptData(f"{len(packed)} bytes that are no Arrow stream: {error}") from None


_INT = struct.Struct("<i").unpack_from
_LONG = struct.Struct("<q").unpack_from
_SHORT = struct.Struct("<H").unpack_from
_SCHEMA, _DICTIONARY, _RECORDS = 1, 2, 3  # MessageHeader of Arrow's Message.fbs


def _check_views(packed: bytes) -> None:
    """Check that a stream is read as views of its bytes, up to the record batch; what is cut or broken Arrow notices.

    Compressed buffers, and those in another machine's byte order, take memory of their own: kilobytes can become
    gigabytes. `pack_batch` writes neither. Numbers of fields are those of Arrow's Message.fbs and Schema.fbs.

    Raises:
        CorruptData: it is not.
        struct.error, IndexError: it is no stream.
    """
    at = kind = 0
    while at < len(packed) and kind != _RECORDS:
        (size,) = _INT(packed, at)
        at += 4
        if size == -1:  # what all but the oldest streams have before the size
            (size,) = _INT(packed, at)
            at += 4
        if size <= 0:
            return
        message = _inner(packed, at)
        kind = packed[_field(packed, message, 1)]
        header = _inner(packed, _field(packed, message, 2))
        if kind == _SCHEMA:
            order = _field(packed, header, 0)
            views = bool(order and _SHORT(packed, order)[0]) == (sys.byteorder == "big")
        else:
            records = _inner(packed, _field(packed, header, 1)) if kind == _DICTIONARY else header
            # The field for it, and metadata, in which Arrow 0.17 said so.
            views = not _field(packed, records, 3) and not _field(packed, message, 4)
        if not views:
            raise CorruptData(
                "an Arrow stream that is compressed, or in another machine's byte order; Stormline writes neither"
            )
        body = _field(packed, message, 3)
        at += size + max(0, _LONG(packed, body)[0] if body else 0)


def _inner(packed: bytes, at: int) -> int:
    """Return where the table begins that a flatbuffer refers to at `at`."""
    return at + int(_INT(packed, at)[0])


def _field(packed: bytes, table: int, number: int) -> int:
    """Return where a field of a flatbuffer's table is; 0: absent."""
    offsets = table - _INT(packed, table)[0]
    at = 4 + 2 * number
    offset = int(_SHORT(packed, offsets + at)[0]) if at < _SHORT(packed, offsets)[0] else 0
    return offset and table + offset


def _check_bare(rows: Any) -> None:
    """Check the number of rows that take no bytes."""
    if type(rows) is not int or not 0 <= rows <= BARE_ROWS_MAX:
        raise CorruptData(f"{shown(rows, 40)} rows without a value, expected a number up to {BARE_ROWS_MAX}")


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


def unregistered_field(
    error: UnregisteredClass,
    rows: Sequence[Sequence[Any]],
    names: Mapping[int, str],
    pack: Callable[[Any], object],
    where: tuple[str, str],
) -> UnregisteredClass:
    """Return `error`, which is slow, with the names of component and stream, which are `where`, and of the field.

    Args:
        names: names of the fields that are looked at, by position.
        pack: what has raised `error` with one of the values.
    """
    component, stream = where
    for i, name in names.items():
        for row in rows:
            try:
                pack(row[i])
            except UnregisteredClass as found:
                return UnregisteredClass(f"{component!r} emitted to stream {stream!r}, field {name!r}: {found}")
    return error
