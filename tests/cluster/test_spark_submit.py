"""Compiled topologies on a real Spark standalone cluster: a master and two workers, a real ZooKeeper, client mode.

Driver and executors run a Python that has nothing installed, so that the zip has to suffice.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import sqlite3
import subprocess
import sys
import time
import urllib.request
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest
from kazoo.client import KazooClient

from stormline.runtime.state.stored_value import unseal
from stormline.topology.serialization import PLAIN
from tests.services.jvm import quoted
from tests.services.spark_standalone import HOME, SparkStandalone
from tests.services.zookeeper_server import ZooKeeperServer

ROOT = Path(__file__).resolve().parents[2]
MODULE = "tests.topologies.cluster_sum"
STORMLINE = (sys.executable, "-m", "stormline.cli.main")
EXECUTORS = ("--conf", f"spark.executor.extraJavaOptions={quoted('spark')}")
RUN_SECS = 120.0
ENVIRONMENT = ("PATH", "HOME", "JAVA_HOME", "LANG", "SPARK_SUBMIT_OPTS", "SPARK_LAUNCHER_OPTS")

T = TypeVar("T")


@pytest.fixture(scope="module")
def standalone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkStandalone]:
    with SparkStandalone(tmp_path_factory.mktemp("standalone")) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def bare_python(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A Python without any package."""
    folder = tmp_path_factory.mktemp("bare")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True, timeout=60)
    python = str(folder / "bin" / "python")
    for package in ("stormline", "msgpack", "kazoo", "pyspark"):
        found = subprocess.run([python, "-c", f"import {package}"], capture_output=True, cwd=folder, timeout=60)
        assert found.returncode != 0, f"{package} is installed in the bare Python"
    return python


class Bench:
    """One topology's place: a ZooKeeper root and a database of its own."""

    def __init__(self, folder: Path, zookeeper: ZooKeeperServer, python: str) -> None:
        self.folder = folder
        self.database = folder / "sum.sqlite"
        self.root = f"/test-{uuid.uuid4().hex}"
        self.zookeeper = zookeeper
        self.python = python
        self.arguments = [
            "--zookeeper", zookeeper.hosts, "--conf", f"transactional.zookeeper.root={self.root}",
            "--conf", f"sum.database={self.database}",
        ]  # fmt: skip

    def environment(self, rows: int) -> dict[str, str]:
        kept = {key: os.environ[key] for key in ENVIRONMENT if key in os.environ}
        return kept | {
            "PYSPARK_PYTHON": self.python,
            "PYSPARK_DRIVER_PYTHON": self.python,
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SUM_ROWS": str(rows),
        }

    def run(self, *command: str, rows: int, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command, env=self.environment(rows), cwd=cwd or self.folder, capture_output=True, text=True,
            timeout=RUN_SECS,
        )  # fmt: skip

    @contextmanager
    def start(self, *command: str, rows: int, cwd: Path | None = None) -> Iterator[subprocess.Popen[bytes]]:
        """Start a command, its output in `out` and `err`; what is left of it ends with the block."""
        with (self.folder / "out").open("wb") as out, (self.folder / "err").open("wb") as err:
            process = subprocess.Popen(
                command, env=self.environment(rows), cwd=cwd or self.folder, stdin=subprocess.DEVNULL, stdout=out,
                stderr=err,
            )  # fmt: skip
        try:
            yield process
        finally:
            if process.poll() is None:
                process.terminate()
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def output(self) -> str:
        return (self.folder / "out").read_text() + (self.folder / "err").read_text()

    def compile(self) -> list[str]:
        """Compile, and return the spark-submit line that was printed, from `--py-files` on."""
        done = self.run(*STORMLINE, "compile", MODULE, "-o", str(self.folder / "bundle"), rows=0, cwd=ROOT)
        assert done.returncode == 0, done.stderr
        line = shlex.split(done.stdout)
        assert line[:3] == ["spark-submit", "--master", "MASTER"]
        assert line[-2:] == ["--zookeeper", "HOST:PORT"]
        return line[3:-2]

    def stored(self) -> tuple[int, int]:
        """Return the total and its txid."""
        with closing(sqlite3.connect(self.database)) as database:
            value, txid = database.execute("select value, txid from total").fetchone()
        return value, txid

    def executors(self) -> set[str]:
        """Return the workers whose executors took part."""
        with closing(sqlite3.connect(self.database)) as database:
            rows = database.execute("select directory from executors").fetchall()
        return {found[1] for (directory,) in rows if (found := re.search(r"/work-([\d.]+)/", directory))}

    def in_zookeeper(self) -> tuple[int, bool]:
        """Return the committed txid, and whether a driver lives."""
        client = KazooClient(self.zookeeper.hosts)
        client.start()
        try:
            node = f"{self.root}/cluster-sum"
            committed = unseal(client.get(f"{node}/state/committed")[0], PLAIN, node)
            return committed["txid"], client.exists(f"{node}/live") is not None
        finally:
            client.stop()
            client.close()


@pytest.fixture
def bench(tmp_path: Path, zookeeper: ZooKeeperServer, bare_python: str) -> Bench:
    return Bench(tmp_path, zookeeper, bare_python)


def eventually(look: Callable[[], T | None], what: str, process: subprocess.Popen[bytes] | None = None) -> T:
    deadline = time.monotonic() + RUN_SECS
    while (seen := look()) is None:
        assert time.monotonic() < deadline, f"not in time: {what}"
        assert process is None or process.poll() is None, f"ended before: {what}"
        time.sleep(0.1)
    return seen


def total(rows: int) -> int:
    return 2 * sum(range(rows))


def rest(port: str, what: str) -> Any:
    def get(path: str) -> Any:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/applications{path}", timeout=30) as answer:
            return json.load(answer)

    return get(f"/{get('')[0]['id']}/{what}")


def waves_in_ui(port: str) -> list[tuple[dict[str, Any], list[str]]] | None:
    """Return the jobs of waves, each with the names of its stages; None while the UI, which hears later, lacks some."""
    jobs, stages = rest(port, "jobs"), rest(port, "stages")
    waves = [job for job in jobs if "wave" in job["description"]]
    named = [sorted(stage["name"] for stage in stages if stage["stageId"] in job["stageIds"]) for job in waves]
    heard = all(len(names) == len(job["stageIds"]) for job, names in zip(waves, named, strict=True))
    return list(zip(waves, named, strict=True)) if waves and heard else None


def test_a_compiled_topology_runs_on_two_workers_and_goes_on_when_submitted_again(
    standalone: SparkStandalone, bench: Bench
) -> None:
    submit = [str(HOME / "bin" / "spark-submit"), "--master", standalone.master_url, *EXECUTORS, *bench.compile()]
    first = bench.run(*submit, *bench.arguments, rows=60)
    assert first.returncode == 0, first.stdout + first.stderr
    assert "6 transactions, 60 tuples" in first.stdout
    assert bench.stored() == (total(60), 6)
    assert bench.in_zookeeper() == (6, False)
    assert bench.executors() == set(standalone.hosts)

    again = [*STORMLINE, "submit", MODULE, "--master", standalone.master_url, "--conf", "spark.ui.port=0"]
    again += ["--conf", "spark.log.level=INFO", "--keep-running", *EXECUTORS, *bench.arguments]
    with bench.start(*again, rows=90, cwd=ROOT) as process:
        eventually(lambda: bench.stored() if bench.stored()[1] == 9 else None, "nine transactions", process)
        port = re.findall(r"'SparkUI' on port (\d+)", bench.output())[-1]
        waves = eventually(lambda: waves_in_ui(port), "Spark's UI to have heard of all stages", process)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 143, bench.output()
    assert bench.stored() == (total(90), 9)
    assert bench.in_zookeeper() == (9, False)

    assert "stopped at transaction 9; run again to go on" in bench.output()
    # Spark's own UI can be read: what runs, for which transactions, in which component.
    for job, stages in waves:
        assert re.fullmatch(r"cluster-sum/\d+/[0-9a-f]{32}", job["jobGroup"])
        assert re.fullmatch(r"cluster-sum: wave \d+, txids? \d+(–\d+)?", job["description"])
        names = [f"{job['description']}: {component}" for component in ("double", "total")]
        # A later wave may leave a stage of few tuples to the commit, or be one stage in one task.
        assert stages in (names, names[:1], [f"{names[0]}, total"])
        assert job["name"] == stages[-1]
    assert any(len(stages) == 2 for _, stages in waves)


@pytest.mark.proof
def test_a_failing_bolt_ends_with_the_users_traceback_and_an_exit_code(
    standalone: SparkStandalone, bench: Bench
) -> None:
    submit = [*STORMLINE, "submit", MODULE, "--master", standalone.master_url, "--progress", "none", *EXECUTORS]
    password = bench.folder / "password"
    password.write_text("canary-41f7'canary-a90c\\canary-5d1e\n")
    secret = ["--conf", f"sum.password=file:{password}"]
    done = bench.run(*submit, "--conf", "sum.poison=33", *secret, *bench.arguments, rows=60, cwd=ROOT)
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert re.fullmatch(r'  File ".*/cluster_sum\.py", line \d+, in execute', lines[1])
    assert "ValueError: the row 33 is poisoned" in lines
    assert 'KeyError: "*****"' in lines
    password.unlink()
    (bench.folder / "printed").write_text(done.stdout + done.stderr)
    files = [file for top in (standalone.directory, bench.folder) for file in top.rglob("*") if file.is_file()]
    assert [file for file in files if b"told of row 33: *****" in file.read_bytes()], (
        "executors log in the cluster's files"
    )
    assert [file for file in files if b"canary-" in file.read_bytes()] == []
    assert bench.stored()[1] == bench.in_zookeeper()[0] == 3
    assert bench.in_zookeeper()[1] is False


@pytest.mark.proof
def test_a_driver_whose_spark_submit_is_killed_gives_the_topology_up(bench: Bench) -> None:
    submit = [str(HOME / "bin" / "spark-submit"), "--master", "local[1]", *bench.compile(), *bench.arguments]
    with bench.start(*submit, "--keep-running", rows=20) as process:
        eventually(lambda: bench.database.exists() or None, "a first commit", process)
        eventually(lambda: True if bench.stored()[1] == 2 else None, "two transactions", process)
        assert bench.in_zookeeper() == (2, True)
        process.kill()
        process.wait()
        eventually(lambda: True if bench.in_zookeeper() == (2, False) else None, "the topology to be free")


@pytest.mark.proof
def test_a_spark_that_could_run_a_task_twice_is_refused(bench: Bench) -> None:
    unsafe = ["--conf", "spark.task.maxFailures=4"]
    submit = [str(HOME / "bin" / "spark-submit"), "--master", "spark://127.0.0.1:1", *bench.compile()]
    entry = submit.index("--py-files")
    done = bench.run(*submit[:entry], *unsafe, *submit[entry:], *bench.arguments, "--progress", "none", rows=20)
    assert done.returncode == 1
    assert done.stdout.startswith("error: spark.task.maxFailures is 4, expected 1: replays belong to Stormline's")
    assert "--conf spark.task.maxFailures=1" in done.stdout
