"""What goes to Redis, as bytes: rows, and commands of very many arguments."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat
from typing import Any

from redis.connection import PythonRespSerializer
from redis.utils import HIREDIS_AVAILABLE

from stormline.state.columns import ColumnType
from stormline.state.table import Kind, RowColumns, Table
from stormline.topology.packing import msgpack
from stormline.topology.serialization import PLAIN

ARGUMENTS_MIN = 100
PIECE_BYTES = 6000
"""Of fewer arguments: what redis-py sends in one piece."""
_OF_MSGPACK = frozenset(
    {ColumnType.INTEGER, ColumnType.REAL, ColumnType.TEXT, ColumnType.BYTES, ColumnType.BOOLEAN, ColumnType.PACKED}
)
"""Values of which msgpack makes the same as our own serialization, which looks at each."""


class ManyArguments(PythonRespSerializer):
    """Packs a command of many arguments in one piece: redis-py takes them one by one, for three times as long."""

    def pack(self, *args: Any) -> Any:
        """Return what goes over the wire."""
        if len(args) < ARGUMENTS_MIN:
            return super().pack(*args)  # type: ignore[no-untyped-call]
        encode = self.encode
        parts = [arg if type(arg) is bytes else encode(arg) for arg in args]
        return [b"*%d\r\n" % len(parts) + b"".join([b"$%d\r\n%b\r\n" % (len(part), part) for part in parts])]


def pack_many_arguments(client: Any) -> None:
    """Let a client that has no connection yet pack as above; where hiredis is installed, that packs faster still."""
    if not HIREDIS_AVAILABLE:
        packer = ManyArguments(PIECE_BYTES, client.get_encoder().encode)
        client.connection_pool.connection_kwargs["command_packer"] = packer


def fields(table: Table, keys: Sequence[tuple[Any, ...]]) -> list[bytes]:
    """Return keys as the fields of a hash: one text as it is, all else as msgpack."""
    if len(table.key) == 1 and table.key[0].type is ColumnType.TEXT:
        return [key[0].encode() for key in keys]
    return [PLAIN.pack(list(key)) for key in keys]


def packed_rows(table: Table, columns: RowColumns) -> list[bytes]:
    """Return of each row what its field holds: [values, txid, values before or None, their txid or None]."""
    begin, width = len(table.key), len(table.value)
    values = zip(*columns[begin : begin + width], strict=True)
    txids = repeat(None) if table.kind is Kind.NON_TRANSACTIONAL else columns[begin + width]
    if table.kind is Kind.OPAQUE:
        prev_txids = columns[-1]
        prevs = zip(*columns[begin + width + 1 : -1], strict=True)
        before = [None if txid is None else prev for txid, prev in zip(prev_txids, prevs, strict=True)]
        rows = zip(values, txids, before, prev_txids, strict=True)
    else:
        rows = zip(values, txids, repeat(None), repeat(None))
    if all(column.type in _OF_MSGPACK for column in table.value):
        return list(map(msgpack.Packer().pack, rows))
    return [PLAIN.pack([list(part) if isinstance(part, tuple) else part for part in row]) for row in rows]
