"""What the engine writes for itself, and reads again: contents of znodes, and blocks between stages."""

from __future__ import annotations

import mmap
from random import Random
from typing import Any

import pyarrow as pa

from stormline import TransactionAttempt
from stormline.runtime.coordination.batch_store import Batches
from stormline.runtime.state.driver_identity import DriverIdentity
from stormline.runtime.state.graph_changes import check_description
from stormline.runtime.state.memory_store import MemoryStateServer, MemoryStateStore
from stormline.runtime.state.state_store import Put
from stormline.runtime.state.state_tree import FOLDER, StateTree
from stormline.runtime.state.stored_value import seal, unseal
from stormline.runtime.tuples import blocks
from stormline.runtime.tuples.blocks import Origin
from stormline.runtime.tuples.columns import Columns
from stormline.runtime.tuples.packing import ARROW, ROWS, Packed
from stormline.runtime.world.world import REAL
from stormline.runtime.zookeeper import claim
from stormline.runtime.zookeeper.claim import Owner
from stormline.topology.compiler import compile_topology
from stormline.topology.packing import msgpack
from stormline.topology.serialization import PLAIN
from tests.fuzz.expected import read_by_all
from tests.fuzz.mutations import mutated, restructured
from tests.kits.components import Store, line, numbers
from tests.kits.serialized import EXAMPLES, REGISTRY

ATTEMPT = TransactionAttempt(3, 2)
ORIGIN = Origin(2, 7)


class _Stat:
    ephemeralOwner = 1


class Zookeeper:
    """Contents of znodes: as bytes, with a sound checksum, and as values that a newer or foreign writer might write."""

    def __init__(self) -> None:
        topology = line("t", numbers(4), 2, lambda b: b.set_bolt("s", Store("l")).shuffle_grouping("spout"))
        self.description = compile_topology(topology).describe()
        self.batch = {
            "metadata": [1, 2],
            "fixed": True,
            "rows": 6,
            "partitions": [[0, [0, 3], 3, 0, True], [1, {"a": b"x"}, 3, 77, False]],
            "commit_id": 7,
        }
        self.values: list[Any] = [
            {"epoch": 3, "token": "ab" * 16, "writes": 17},
            DriverIdentity("host", 4242, "2026-01-01T00:00:00+00:00", "machine", "777", 20_000, "ab" * 16).to_data(),
            self.description,
            {"txid": 7, "attempt": 2_000_000_001},
            self.batch,
            *EXAMPLES,
        ]
        self.sealed = [seal(value, REGISTRY) for value in self.values]
        self.bodies = [REGISTRY.pack(value) for value in self.values]

    def read(self, data: bytes) -> None:
        """Read one znode as each kind of znode."""
        read_by_all(
            lambda: Owner.unseal(data, "/t/owner"),
            lambda: claim._holder(data, _Stat, "/t/live").alive(REAL.machine),
            lambda: check_description(unseal(data, PLAIN, "/t/topology"), self.description, "t", "/t"),
            lambda: self._load(data),
        )

    def _load(self, data: bytes) -> None:
        tree = StateTree(REGISTRY, "/t/state")
        tree.load("batches", FOLDER, 0)
        tree.load("batches/000000000001", data, 0)
        if data != FOLDER:
            tree.get("batches/000000000001")

    def as_bytes(self, rng: Random) -> None:
        self.read(mutated(rng, rng.choice(self.sealed), self.sealed))

    def with_checksum(self, rng: Random) -> None:
        body = mutated(rng, rng.choice(self.bodies), self.bodies)
        self.read(seal(None, _Raw(body)))  # type: ignore[arg-type]

    def as_values(self, rng: Random) -> None:
        value = restructured(rng, rng.choice(self.values[:5]))
        self.read(seal(value, REGISTRY))

    def as_state(self, rng: Random) -> None:
        server = MemoryStateServer()
        store = MemoryStateStore.open(server, "t", REGISTRY)
        txids = [str(n).zfill(12) for n in (7, 8, 9)]
        puts = [Put("committed", {"txid": 7, "attempt": 1}), *(Put(f"batches/{n}", self.batch) for n in txids)]
        store.write(puts)
        store.close()
        nodes = server.topologies["t"].nodes
        path = rng.choice([path for path in nodes if nodes[path] != FOLDER])
        value = unseal(nodes[path], REGISTRY, path)
        nodes[path] = seal(restructured(rng, value), REGISTRY)
        if rng.random() < 0.1:
            nodes[rng.choice(("batches/x", "batches/٠٠٠٠٠٠٠٠٠٠١٠", "a\nb", "..", "batches/000000000010"))] = nodes[path]
        batches = Batches(MemoryStateStore.open(server, "t", REGISTRY))
        for batch in batches.after(batches.found_committed).values():
            assert isinstance(batch.positions, dict)


class _Raw:
    """Packs what it was made with, so that an envelope is sound and its content is not."""

    def __init__(self, body: bytes) -> None:
        self._body = body

    def pack(self, value: Any) -> bytes:
        return self._body


class Blocks:
    """What travels between stages."""

    def __init__(self) -> None:
        rows = [[ATTEMPT, n, f"word {n}", EXAMPLES[n % len(EXAMPLES)]] for n in range(9)]
        columns = [[row[i] for row in rows] for i in range(1, 4)]
        self.rows = [REGISTRY.pack([9, *columns]), REGISTRY.pack([9, columns[0]]), REGISTRY.pack([9])]
        batches = [
            pa.record_batch({"n": list(range(9)), "s": [f"é{n}" for n in range(8)] + [None]}),
            pa.record_batch({"l": [[n] * n for n in range(9)], "d": [{"a": n, "b": "x"} for n in range(9)]}),
            pa.record_batch({"d": pa.array(["a", "b", "a"] * 3).dictionary_encode(), "z": pa.nulls(9)}),
            pa.record_batch({"t": pa.array(range(9), pa.timestamp("us", "UTC")), "c": pa.array(range(9), pa.date32())}),
        ]
        self.arrow = [Packed.of(Columns(ATTEMPT, batch), None, REGISTRY).data for batch in batches]  # type: ignore[arg-type]
        self.arrow.append(_inflating(5 << 28))
        packed = [*(Packed(9, data) for data in self.rows), Packed(9, self.arrow[0], ARROW)]
        segments = [[0, 1, 2, 3, p.rows, p.data, p.kind] for p in packed]
        closing = [[[0, 1, 2, 3, 9 * len(packed)]], [1]]
        self.blocks = [blocks.encode(1, ORIGIN, (0, 1, b"one"), segments, end) for end in (None, closing)]
        self.values = [[blocks.VERSION, 2, 7, 0, 1, b"one", segments, end] for end in (None, closing)]

    def as_bytes(self, rng: Random) -> None:
        self._read(mutated(rng, rng.choice(self.blocks), self.blocks))

    def as_values(self, rng: Random) -> None:
        self._read(b"\1" + msgpack.packb(_packable(restructured(rng, rng.choice(self.values)))))

    def _read(self, data: bytes) -> None:
        for _, delivery in blocks.decode(data, ORIGIN).segments:
            assert isinstance(delivery.tuples, Packed)
            _use(delivery.tuples)

    def as_rows(self, rng: Random) -> None:
        _use(Packed(9, mutated(rng, rng.choice(self.rows), self.rows), ROWS))

    def as_arrow(self, rng: Random) -> None:
        _use(Packed(9, mutated(rng, rng.choice(self.arrow), self.arrow), ARROW))


def _inflating(size: int) -> bytes:
    """Return an Arrow stream of some kilobytes that says it is `size` bytes, compressed: more than may be used."""
    zeros = pa.py_buffer(mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))
    width = 1 << 20
    batch = pa.record_batch({"n": pa.Array.from_buffers(pa.binary(width), size // width, [None, zeros])})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_batch(batch)
    packed: bytes = sink.getvalue().to_pybytes()
    return packed


def _use(packed: Packed) -> None:
    tuples = packed.unpack(ATTEMPT, REGISTRY)
    if isinstance(tuples, Columns):
        for rows in tuples.rows_in_parts():
            assert all(row[0] is ATTEMPT for row in rows)
    else:
        assert all(row[0] is ATTEMPT for row in tuples)


def _packable(value: Any) -> Any:
    """Return a value that msgpack packs by itself."""
    if isinstance(value, dict):
        return {key: _packable(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_packable(item) for item in value]
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        return value.to_bytes(200, "big", signed=True)
    return value.encode("utf-8", "replace") if isinstance(value, str) and not value.isprintable() else value
