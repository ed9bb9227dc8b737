"""Environments: what each peer needs to run, and how it is installed, once."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HOME = ROOT / ".venv-bench-peers"
STORM = Path(__file__).resolve().parent / "storm"
INSTALL_SECS_MAX = 900.0
READY = "ready.txt"
TAIL = 1_500

Runner = Callable[[Sequence[str]], None]
"""Runs a command to its end, which may take minutes."""


class UnknownPeer(ValueError):
    """There is no peer of this name."""

    @classmethod
    def of(cls, peer: str) -> UnknownPeer:
        """Name the peer, and those that there are."""
        return cls(f"there is no peer {peer!r}; there are {', '.join(PEERS)}")


class NotPrepared(Exception):
    """A peer's environment could not be made. The message holds the command and the end of what it said."""


@dataclass(frozen=True, slots=True)
class Peer:
    """One engine. `packages`: installed into a virtual environment of its own; none: it runs in the harness's own.

    `jars`: of Maven's repository, for Spark, which fetches them with all that they need.
    """

    module: str
    packages: tuple[str, ...] = ()
    maven: bool = False
    jars: tuple[str, ...] = ()

    def python(self, home: Path) -> str:
        """Return the interpreter that runs the peer's command; `home` is the peer's own folder."""
        return str(home / "bin" / "python") if self.packages else sys.executable

    def recipe(self) -> str:
        """Return what the environment is made of: where it is the same, there is nothing to install."""
        if self.maven:
            digest = hashlib.sha256()
            for path in sorted(STORM.rglob("*")):
                if path.is_file():
                    digest.update(path.read_bytes())
            return digest.hexdigest()
        return f"{sys.version_info.major}.{sys.version_info.minor} {' '.join((*self.packages, *self.jars))}"

    def commands(self, home: Path) -> list[list[str]]:
        """Return the commands that make the environment in `home`."""
        if self.maven:
            maven = shutil.which("mvn") or "mvn"
            return [[maven, "-q", "-B", "-f", str(STORM / "pom.xml"), f"-Dbench.dir={home}", "compile"]]
        if self.jars:
            return [[sys.executable, "-c", FETCH, str(home), ",".join(self.jars)]]
        if not self.packages:
            return []
        pip = [self.python(home), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        return [[sys.executable, "-m", "venv", str(home)], [*pip, *self.packages]]


FETCH = """
import sys
from pyspark.sql import SparkSession

_, home, jars = sys.argv
builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
builder = builder.config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1")
builder.config("spark.jars.ivy", home).config("spark.jars.packages", jars).getOrCreate().stop()
"""
"""Lets Spark's Ivy put jars into a folder, HOME/jars."""

PEERS: Mapping[str, Peer] = {
    "structured_streaming": Peer("benchmarks.peers.structured_streaming"),
    "bytewax": Peer("benchmarks.peers.bytewax_counts", ("bytewax==0.21.1",)),
    # apache-beam, which it needs, is built by way of pkg_resources, which setuptools 81 has not any more.
    "pyflink": Peer("benchmarks.peers.pyflink_counts", ("setuptools<81", "apache-flink==2.3.0")),
    "storm": Peer("benchmarks.peers.storm_counts", maven=True),
    # The newest there is; it runs on pyspark 4.3.0.
    "kafka_streaming": Peer(
        "benchmarks.peers.kafka_streaming", jars=("org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0",)
    ),
}


def known(peer: str) -> Peer:
    """Return a peer by its name.

    Raises:
        UnknownPeer: there is none.
    """
    if peer not in PEERS:
        raise UnknownPeer.of(peer)
    return PEERS[peer]


def install(command: Sequence[str]) -> None:
    """Run one command of an installation.

    Raises:
        NotPrepared: it is not there, ended badly or took too long.
    """
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=INSTALL_SECS_MAX, check=False
        )
    except FileNotFoundError as error:
        raise NotPrepared(f"{command[0]} was not found: install it, and put it on the PATH") from error
    except subprocess.TimeoutExpired as error:
        raise NotPrepared(f"{' '.join(command)} did not end within {INSTALL_SECS_MAX:g} s") from error
    if done.returncode:
        said = (done.stdout + done.stderr).strip()[-TAIL:]
        raise NotPrepared(f"{' '.join(command)} ended with status {done.returncode}: {said}")


def prepare(peer: str, *, home: Path | None = None, run: Runner = install) -> None:
    """Make a peer's environment; nothing is done where it is there already, of the same recipe.

    One that was broken off, or is of another recipe, is removed and made anew.

    Args:
        peer: its name.
        home: where all peers' environments are.
        run: runs the commands.

    Raises:
        UnknownPeer: there is no such peer.
        NotPrepared: it cannot be made.
    """
    wanted, folder = known(peer), (home or HOME) / peer
    commands, ready = wanted.commands(folder), folder / READY
    if not commands or (ready.is_file() and ready.read_text("utf-8") == wanted.recipe()):
        return
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for command in commands:
        run(command)
    ready.write_text(wanted.recipe(), "utf-8")
