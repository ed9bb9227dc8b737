"""What `stormline` exports, and what importing it costs."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

import stormline

PROMISED = [
    "TransactionalTopologyBuilder",
    "Config",
    "Fields",
    "Values",
    "Tuple",
    "TransactionAttempt",
    "FailedException",
    "BaseBasicBolt",
    "BaseBatchBolt",
    "BaseTransactionalBolt",
    "ICommitter",
    "ITransactionalSpout",
    "IPartitionedTransactionalSpout",
    "IOpaquePartitionedTransactionalSpout",
    "ICommitterTransactionalSpout",
    "MemoryTransactionalSpout",
    "OpaqueMemoryTransactionalSpout",
    "FileTransactionalSpout",
    "TopologyContext",
    "LocalCluster",
    "StormlineError",
]


def loaded_after(code: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", f"import sys\n{code}\nprint(*sys.modules)"], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return {name.split(".")[0] for name in done.stdout.split()}


@pytest.mark.parametrize("name", PROMISED)
def test_a_promised_name_can_be_imported(name: str) -> None:
    assert name in stormline.__all__
    assert isinstance(getattr(stormline, name), type)


def test_every_exported_name_exists_once() -> None:
    assert len(set(stormline.__all__)) == len(stormline.__all__)
    assert all(hasattr(stormline, name) for name in stormline.__all__)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'stormline' has no attribute 'LocalClutser'"):
        stormline.LocalClutser  # noqa: B018


def test_the_version_is_that_of_the_package() -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+", stormline.__version__)


def test_importing_stormline_imports_nothing_large() -> None:
    large = {"pyspark", "py4j", "kazoo", "networkx", "cloudpickle", "pandas", "numpy", "pyarrow"}
    assert loaded_after("import stormline") & large == set()


def test_building_and_compiling_a_topology_need_neither_spark_nor_zookeeper() -> None:
    code = """
from stormline import MemoryTransactionalSpout, TransactionalTopologyBuilder, compile_topology
compile_topology(TransactionalTopologyBuilder("t", "s", MemoryTransactionalSpout({}, ["w"], 1)).build_topology())
"""
    assert loaded_after(code) & {"pyspark", "py4j", "kazoo"} == set()
