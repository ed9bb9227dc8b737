"""The envelope of every stored value: whose it is, that it is whole, and which schema it has.

Nothing is unpickled (law 8, no unpickling), and what is not whole halts (law 10, stop or replay).

Layout, the same in every schema version: b"STLN", CRC-32 of all that follows, version (2 bytes), msgpack.
"""

from __future__ import annotations

import struct
import zlib
from typing import Any

from stormline.runtime.errors import NewerState, StateCorrupt
from stormline.runtime.state.state_store import VALUE_BYTES_MAX
from stormline.topology.errors import CorruptData
from stormline.topology.serialization import Registry

SCHEMA_VERSION = 1
_MAGIC = b"STLN"
_HEADER = struct.Struct(">4sIH")


def seal(value: Any, registry: Registry, version: int = SCHEMA_VERSION) -> bytes:
    """Return the bytes to store for `value`.

    Raises:
        UnregisteredClass: it holds an object of a class that was not registered.
    """
    body = struct.pack(">H", version) + registry.pack(value)
    return _MAGIC + struct.pack(">I", zlib.crc32(body)) + body


def unseal(data: bytes, registry: Registry, where: str) -> Any:
    """Return the value that `seal` gave `data` for; `where` is the full path for the message.

    Raises:
        StateCorrupt: `seal` did not give these bytes, or not all of them, or some were changed since.
        NewerState: a newer Stormline wrote them.
    """
    if len(data) > VALUE_BYTES_MAX:
        what = f"{len(data):,} bytes, more than the {VALUE_BYTES_MAX:,} that Stormline writes"
        raise StateCorrupt(_corrupt(where, what))
    if len(data) < _HEADER.size or data[:4] != _MAGIC:
        raise StateCorrupt(_corrupt(where, f"{len(data)} bytes that Stormline did not write: {data[:40]!r}"))
    _, checksum, version = _HEADER.unpack_from(data)
    if zlib.crc32(memoryview(data)[8:]) != checksum:
        what = f"{len(data)} bytes with a wrong checksum: changed or cut since they were written"
        raise StateCorrupt(_corrupt(where, what))
    if version > SCHEMA_VERSION:
        raise NewerState(
            f"{where} has schema version {version}, this Stormline reads up to {SCHEMA_VERSION}; run the "
            "topology with the Stormline that wrote it, or a newer one"
        )
    try:
        return registry.unpack(data[_HEADER.size :])
    except CorruptData as error:
        raise StateCorrupt(_corrupt(where, str(error))) from error


def _corrupt(where: str, what: str) -> str:
    return (
        f"{where} holds {what}; nothing was changed. Restore it from a backup, or give the topology another "
        "id or root; only if its whole state may be forgotten, delete the topology's node"
    )
