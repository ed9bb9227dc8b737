"""A program with a main of its own, as porters have it: started by Python, and by spark-submit."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from stormline.cli.submit import spark_submit
from tests.spark.test_cli_run import SECS_MAX, SUMS, Numbers

MAIN = """
import sys

from stormline import Config, StormSubmitter
from tests.topologies.numbers import topology


def main():
    conf = Config()
    conf.set_max_spout_pending(4)
    conf.update(SETTINGS)
    StormSubmitter.submit_topology("my-numbers", conf, topology().build_topology())


if __name__ == "__main__":
    main()
"""


@pytest.fixture
def numbers(tmp_path: Path) -> Numbers:
    return Numbers(tmp_path)


def started(numbers: Numbers, *command: str, conf: dict[str, Any], **settings: Any) -> subprocess.Popen[str]:
    script = numbers.directory / "main.py"
    script.write_text(MAIN.replace("SETTINGS", repr(conf)))
    environment = {**numbers.environment(**settings), "PYSPARK_PYTHON": sys.executable}
    return subprocess.Popen(
        [*command, str(script)], cwd=numbers.directory, env=environment, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("number", "exit_code"), [(signal.SIGINT, 130), pytest.param(signal.SIGTERM, 143, marks=pytest.mark.proof)]
)
def test_a_program_runs_until_it_is_stopped_after_a_commit_and_goes_on_when_it_is_started_again(
    numbers: Numbers, number: signal.Signals, exit_code: int
) -> None:
    with started(numbers, sys.executable, conf={"spark.master": "local[2]"}, commit_secs=0.2) as process:
        numbers.await_sums(process, 2)
        process.send_signal(number)
        output, _ = process.communicate(timeout=SECS_MAX)
    assert process.returncode in (exit_code, -number), output
    stopped = len(numbers.sums())
    assert 2 <= stopped < 20
    done = numbers.run("--progress", "json")
    assert done.returncode == 0, done.stderr
    end = json.loads(done.stdout.splitlines()[-2])
    assert (end["transactions"], end["txid_committed"]) == (20 - stopped, 20)
    assert numbers.sums() == SUMS


def test_a_program_that_spark_submit_starts_runs_on_the_master_that_it_names(numbers: Numbers) -> None:
    submit = [str(spark_submit()), "--master", "local[2]"]
    with started(numbers, *submit, conf={"spark.master": "spark://nowhere:1"}, fail_at=13) as process:
        output, _ = process.communicate(timeout=SECS_MAX)
    assert process.returncode == 1, output
    assert "ZeroDivisionError: cannot add 13" in output
    assert "topology 'numbers' stopped: ZeroDivisionError in execute of 'add', task " in output
    assert numbers.sums() == SUMS[:6]
    assert (numbers.directory / ".stormline" / "numbers").is_dir()


@pytest.mark.parametrize(
    ("conf", "said"),
    [
        ({"spark.master": "loacl[2]"}, "InvalidConfig: Spark's master is 'loacl[2]', expected local, local[N]"),
        ({"spark.master": "yarn"}, "NoZooKeeper: Spark runs on yarn, and there is no ZooKeeper to keep the state in"),
        ({"topology.max.spout.pendig": 4}, "did you mean 'topology.max.spout.pending'?"),
    ],
)
def test_a_configuration_that_cannot_work_is_refused_before_spark_starts(
    numbers: Numbers, conf: dict[str, Any], said: str
) -> None:
    with started(numbers, sys.executable, conf=conf) as process:
        output, _ = process.communicate(timeout=SECS_MAX)
    assert process.returncode == 1
    assert said in output
    assert not (numbers.directory / ".stormline").exists()
