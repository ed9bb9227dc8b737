"""Which setting of Spark counts where the module, `stormline submit` and spark-submit give different ones."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

MODULE = """
import json
import os
from pathlib import Path

from pyspark import SparkContext
from stormline import BaseBatchBolt, MemoryTransactionalSpout, TransactionalTopologyBuilder

config = {"spark.whose.first": "module", "spark.whose.second": "module", "spark.app.name": "module"}


class Telling(MemoryTransactionalSpout):
    def get_coordinator(self, conf, context):
        settings = dict(SparkContext._active_spark_context.getConf().getAll())
        Path(os.environ["TOLD"]).write_text(json.dumps({key: settings[key] for key in config}))
        return super().get_coordinator(conf, context)


class Nothing(BaseBatchBolt):
    def prepare(self, conf, context, collector, batch_id):
        pass

    def execute(self, tup):
        pass

    def finish_batch(self):
        pass

    def declare_output_fields(self, declarer):
        pass


def topology():
    builder = TransactionalTopologyBuilder("telling", "spout", Telling({0: [1]}, ["number"], 1), 1)
    builder.set_bolt("nothing", Nothing()).global_grouping("spout")
    return builder
"""


@pytest.mark.parametrize(
    ("name", "told"), [(["--name", "nightly"], "nightly"), pytest.param([], "module", marks=pytest.mark.proof)]
)
def test_the_command_line_goes_before_the_module(tmp_path: Path, name: list[str], told: str) -> None:
    (tmp_path / "telling.py").write_text(MODULE)
    settings = ["--conf", "spark.whose.first=command line", "--properties-file", "given.conf", *name]
    (tmp_path / "given.conf").write_text("spark.whose.second file\n")
    submit = [sys.executable, "-m", "stormline.cli.main", "submit", "telling", "--master", "local[1]", *settings]
    done = subprocess.run(
        [*submit, "--state-dir", "state", "--progress", "none"],
        cwd=tmp_path,
        env={**os.environ, "TOLD": str(tmp_path / "told")},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads((tmp_path / "told").read_text()) == {
        "spark.whose.first": "command line", "spark.whose.second": "module", "spark.app.name": told,
    }  # fmt: skip
