"""The spouts over data sources and DataFrames on Spark: each row once, though attempts fail and a commit crashes."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark import SparkContext

from stormline import LocalCluster
from stormline.errors import TopologyFailed
from stormline.spark import DataSourceTransactionalSpout
from tests.kits.sources import new_sink, topology
from tests.topologies.readers import LogSource

TIMEOUT_SECS = 120


@pytest.mark.parametrize("columnar", ["true", "false"])
def test_a_data_source_is_read_on_the_executors(spark: SparkContext, tmp_path: Path, columnar: str) -> None:
    sink, log = new_sink(), tmp_path / "log"
    log.write_text("\n".join(map(str, range(40))))
    spout = DataSourceTransactionalSpout(LogSource, {"path": str(log), "columnar": columnar})
    sink.crash_at = {2}
    with pytest.raises(TopologyFailed, match="Crash"), LocalCluster(state_dir=tmp_path / "state") as cluster:
        cluster.submit(topology(spout, 2, fails=False), {}).await_drained(TIMEOUT_SECS)
    with LocalCluster(state_dir=tmp_path / "state") as cluster:
        cluster.submit(topology(spout, 2, fails=False), {}).await_drained(TIMEOUT_SECS)
    assert sink.rows == [(number, f"line {number}") for number in range(40)]
