"""What users give: files, configurations, secrets and command lines; and what is stored of their files."""

from __future__ import annotations

import contextlib
from pathlib import Path
from random import Random
from typing import Any, cast

import click
import pyarrow as pa
import pyarrow.parquet as pq
from click.testing import CliRunner

from stormline import Config, FileTransactionalSpout, TransactionAttempt
from stormline.cli.compile import conf_text
from stormline.cli.conf import parse_conf
from stormline.cli.main import main
from stormline.runtime.cluster.local_cluster import zookeeper_hosts
from stormline.runtime.tuples.columns import Columns
from stormline.runtime.zookeeper.security import ZooKeeperSecurity
from stormline.spouts.file.metadata import Progress, columns_of, pieces_of
from stormline.spouts.memory import _Memory
from stormline.topology.compiler import compile_topology
from stormline.topology.config import KNOWN_KEYS, check_config
from stormline.topology.grouping import DEFAULT_STREAM
from stormline.topology.secrets import resolve_secret
from tests.fuzz.expected import EXPECTED, read_by_all
from tests.fuzz.mutations import STRANGE, mutated, restructured
from tests.kits.components import Store, line, numbers
from tests.kits.file_spout import Gathered, Run, context
from tests.kits.serialized import REGISTRY

ATTEMPT = TransactionAttempt(3, 2)


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
        read_by_all(
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
