"""What takes in bytes from outside: each target makes one bad input from a generator, and gives it to the real code."""

from __future__ import annotations

import contextlib
import logging
import mmap
import os
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any, NamedTuple, cast

import click
import pyarrow as pa
import pyarrow.parquet as pq
from click.testing import CliRunner

from stormline import Config, FileTransactionalSpout, TransactionAttempt
from stormline.cli.compile import conf_text
from stormline.cli.conf import parse_conf
from stormline.cli.main import main
from stormline.runtime.cluster.local_cluster import zookeeper_hosts
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
from stormline.runtime.zookeeper.security import ZooKeeperSecurity
from stormline.spouts.file.metadata import Progress, columns_of, pieces_of
from stormline.spouts.memory import _Memory
from stormline.topology.compiler import compile_topology
from stormline.topology.config import KNOWN_KEYS, check_config
from stormline.topology.errors import FailedException, StormlineError
from stormline.topology.grouping import DEFAULT_STREAM
from stormline.topology.packing import msgpack
from stormline.topology.secrets import resolve_secret
from stormline.topology.serialization import PLAIN
from tests.fuzz.mutations import STRANGE, mutated, restructured
from tests.kits.components import Store, line, numbers
from tests.kits.file_spout import Gathered, Run, context
from tests.kits.serialized import EXAMPLES, REGISTRY

ATTEMPT = TransactionAttempt(3, 2)
ORIGIN = Origin(2, 7)
EXPECTED = (StormlineError, FailedException, click.ClickException)
"""What bad input may raise: our own errors, "ask again later" of a coordinator, and the command line's."""


class Target(NamedTuple):
    """`run` makes an input and gives it to the code; of a hundred inputs `share` are its."""

    name: str
    share: int
    run: Callable[[Random], None]


class _Stat:
    ephemeralOwner = 1


def _all(*readers: Callable[[], object]) -> None:
    """Give an input to several readers; raise what one of them had against it."""
    found: Exception | None = None
    for read in readers:
        try:
            read()
        except EXPECTED as error:
            found = error
    if found is not None:
        raise found


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
        _all(
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


class Files:
    """Files of every format, and what is stored of their batches."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        lines = [f'{n},"w ""{n}""",{n / 4}\n' for n in range(40)]
        self.csv = [
            ("a,b,c\n" + "".join(lines)).encode(),
            b"\xef\xbb\xbfa,b,c\r\n1,2,3\r\n\r\n4,,\n",
            b'a,b,c\n1,"x\ny",2\n',
        ]
        self.jsonl = [b'{"a": 1, "b": [1, {"c": null}], "c": "\\ud83d"}\n' * 20, b'{"b":1,"a":2}\n\n{"a":NaN,"b":1e9}']
        self.text = [b"one\ntwo\r\n\nthree", "wörter\n".encode() * 30]
        self.parquet: list[bytes] = []
        table = pa.table({"a": list(range(60)), "b": [f"w{n}" for n in range(60)], "c": [[n, None] for n in range(60)]})
        for options in ({"row_group_size": 25}, {"compression": "none", "use_dictionary": False}):
            sink = pa.BufferOutputStream()
            pq.write_table(table, sink, **options)
            self.parquet.append(sink.getvalue().to_pybytes())
        self.sound = directory / "sound.csv"
        self.sound.write_bytes(self.csv[0])
        self.spout = FileTransactionalSpout([str(self.sound)], rows_per_batch=8)
        self.metadata = Run(self.spout, tasks=2).plan_all()

    def _given(self, name: str, data: bytes) -> str:
        path = self.directory / name
        path.write_bytes(data)
        return str(path)

    def as_csv(self, rng: Random) -> None:
        path = self._given("x.csv", mutated(rng, rng.choice(self.csv), self.csv))
        kinds: list[dict[str, Any]] = [{}, {"fields": ["a", "c"]}, {"types": {"a": int}}, {"encoding": "latin-1"}]
        self._read(rng, path, format="csv", **rng.choice(kinds))

    def as_jsonl(self, rng: Random) -> None:
        path = self._given("x.jsonl", mutated(rng, rng.choice(self.jsonl), self.jsonl))
        self._read(rng, path, format="jsonl", fields=["a", "b"], defaults=rng.choice(({}, {"b": 0})))

    def as_text(self, rng: Random) -> None:
        path = self._given("x.txt", mutated(rng, rng.choice(self.text), [*self.text, *self.parquet]))
        self._read(rng, path, format="text")

    def as_parquet(self, rng: Random) -> None:
        path = self._given("x.parquet", mutated(rng, rng.choice(self.parquet), self.parquet))
        self._read(rng, path, format="parquet")

    def _read(self, rng: Random, path: str, **options: Any) -> None:
        on_bad_line = rng.choice(("error", "skip", "skip"))
        spout = FileTransactionalSpout(
            [path], rows_per_batch=rng.choice((1, 7, 1000)), on_bad_line=on_bad_line, **options
        )
        columnar = rng.random() < 0.4
        run = Run(spout)
        for metadata in run.plan_all()[:20]:
            gathered: Any = _Columnar()
            spout.get_emitter({}, context(1, 0, columnar)).emit_batch(ATTEMPT, metadata, gathered)

    def as_metadata(self, rng: Random) -> None:
        metadata = REGISTRY.unpack(REGISTRY.pack(restructured(rng, rng.choice(self.metadata))))
        emitter = self.spout.get_emitter({}, context(1, 0, rng.random() < 0.5))
        _all(
            lambda: Progress.from_metadata(metadata, "csv"),
            lambda: (pieces_of(metadata, "csv", 0, 1), columns_of(metadata)),
            lambda: _Memory({0: [1]}, ["a"], 1).end_of(metadata),
            lambda: Run(self.spout, 2, [metadata]).plan_all(),
            lambda: emitter.emit_batch(ATTEMPT, metadata, cast(Any, _Columnar())),
        )


class _Columnar(Gathered):
    def emit_batch(self, batch: Any, stream: str = DEFAULT_STREAM) -> None:
        for part in batch.to_batches():
            Columns(ATTEMPT, part).rows()


class Settings:
    """Configurations, what they refer to, and command lines."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.topology = line("t", numbers(4), 2, lambda b: b.set_bolt("s", Store("l")).shuffle_grouping("spout"))
        self.keys = [
            *KNOWN_KEYS,
            "storm.zookeeper.x",
            "topology.x",
            "my.password",
            "mine",
            "spark.x",
            "",
            "\0",
            "a\nb",
            "é",
        ]
        self.texts = [
            "1",
            "true",
            "null",
            '["a:1","b"]',
            "a,b",
            "digest",
            "env:X",
            "file:/x",
            "driver",
            "/r/s",
            '{"a":[1]}',
        ]
        self.pairs = [f"{key}={text}".encode() for key in KNOWN_KEYS for text in self.texts[:4]]
        self.words = [
            "run", "explain", "visualize", "compile", "submit", "--conf", "--format", "svg", "--state-dir",
            "--fresh", "-o", "--master", "--until", "--timeout", "--progress", "json", "--zookeeper", "a:1,b",
            "--dry-run", "--help", "--", "examples.words", "examples.words:topology", "examples.nothing", "no.such:x",
            "examples/words.py", "3", "-1", "topology.workers=3", "spark.x=y", "",
        ]  # fmt: skip
        self.runner = CliRunner()

    def as_values(self, rng: Random) -> None:
        values = [*STRANGE, ["a:1"], ["a", "b:2"], "env:X", "file:x", "digest", "sasl", "/a/b", ("a/b",), [3], "driver"]
        config: dict[Any, Any] = {rng.choice(self.keys): rng.choice(values) for _ in range(rng.choice((1, 2, 5)))}
        if rng.random() < 0.05:
            config[rng.choice((3, None, b"x", (1,)))] = 1
        self._use(config)

    def _use(self, config: dict[Any, Any]) -> None:
        repr(Config(config))
        check_config(config, "here")
        zookeeper_hosts(config)
        security = ZooKeeperSecurity.of(config)
        compile_topology(self.topology, config)
        security.credentials()

    def as_pairs(self, rng: Random) -> None:
        if rng.random() < 0.5:
            pair = mutated(rng, rng.choice(self.pairs), self.pairs).decode("utf-8", "surrogateescape")
        else:
            text = mutated(rng, rng.choice(self.texts).encode(), self.pairs).decode("utf-8", "surrogateescape")
            pair = f"{rng.choice(self.keys)}={text}"
        conf = parse_conf((pair,))
        (key, value) = next(iter(conf.items()))
        if not key.startswith("spark."):
            assert repr(parse_conf((conf_text(key, value),))[key]) == repr(value)
        self._use(conf)

    def as_secrets(self, rng: Random) -> None:
        path = self.directory / "secret"
        corpus = [b"user:password\n", "ü:é".encode(), b"x" * 70_000]
        path.write_bytes(mutated(rng, rng.choice(corpus), corpus))
        reference = f"file:{path}"
        if rng.random() < 0.5:
            reference = mutated(rng, reference.encode(), corpus).decode("utf-8", "surrogateescape")
        scheme, payload = {"storm.zookeeper.auth.scheme": "digest"}, {"storm.zookeeper.auth.payload": reference}
        with contextlib.suppress(*EXPECTED):
            resolve_secret(reference)
        self._use({**scheme, **payload})

    def as_command_line(self, rng: Random) -> None:
        words = [rng.choice(self.words) for _ in range(rng.randrange(6))]
        for at in range(len(words)):
            if rng.random() < 0.3:
                bad = mutated(rng, words[at].encode(), self.pairs).decode("utf-8", "surrogateescape")
                words[at] = bad.replace("\0", "")[:4000]
        command = rng.choice(("run", "submit", "compile", "explain", "visualize", ""))
        if command in ("run", "submit", "compile"):  # they would start Spark, or write: parse what they are given
            with contextlib.suppress(click.exceptions.Exit), contextlib.redirect_stdout(None):
                main.commands[command].make_context(command, words, ignore_unknown_options=command == "submit")
            return
        words = [word for word in words if not word.startswith("-o") and "--ou" not in word]
        words = [word for word in words if word not in ("run", "submit", "compile")]
        done = self.runner.invoke(main, [*([command] if command else []), *words])
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        assert done.exit_code in (0, 1, 2), done.exit_code


def targets(directory: Path) -> list[Target]:
    """Make all targets; those that need files write them into `directory`, which is the current one."""
    logging.getLogger("stormline").setLevel(logging.CRITICAL)
    os.environ.pop("X", None)
    znodes, travelling, files, settings = Zookeeper(), Blocks(), Files(directory), Settings(directory)
    return [
        Target("znode", 18, znodes.as_bytes),
        Target("znode with a sound checksum", 14, znodes.with_checksum),
        Target("znode of other values", 10, znodes.as_values),
        Target("stored batches", 6, znodes.as_state),
        Target("block", 10, travelling.as_bytes),
        Target("block of other values", 4, travelling.as_values),
        Target("rows", 10, travelling.as_rows),
        Target("record batch", 6, travelling.as_arrow),
        Target("stored pieces of files", 4, files.as_metadata),
        Target("csv file", 3, files.as_csv),
        Target("jsonl file", 2, files.as_jsonl),
        Target("text file", 2, files.as_text),
        Target("parquet file", 2, files.as_parquet),
        Target("configuration", 3, settings.as_values),
        Target("--conf", 3, settings.as_pairs),
        Target("file of a secret", 2, settings.as_secrets),
        Target("command line", 1, settings.as_command_line),
    ]
