"""What `stormline` exports, and what importing it costs."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

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
    "BaseTransactionalSpout",
    "BasePartitionedTransactionalSpout",
    "BaseOpaquePartitionedTransactionalSpout",
    "IArrowBatchBolt",
    "IBatchBolt",
    "IBasicBolt",
    "ICommitterEmitter",
    "Grouping",
    "GlobalStreamId",
    "CustomStreamGrouping",
    "TopologyHandle",
    "Plan",
    "BatchSubtopologyBuilder",
    "BaseTaskHook",
    "Counter",
    "CountMetric",
    "DRPCExecutionException",
    "LinearDRPCTopologyBuilder",
    "LocalDRPC",
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


def test_storms_other_name_of_submit_topology_is_the_same() -> None:
    from stormline import StormSubmitter

    assert StormSubmitter.submit_topology_with_progress_bar is StormSubmitter.submit_topology


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


DEEPER = (
    "errors",
    "testing",
    "state",
    "state.kafka",
    "state.starrocks",
    "state.xa",
    "spark",
    "spouts.kafka",
    "spouts.redis",
)
ROOT = Path(__file__).resolve().parents[3]


def imported(code: str) -> set[str]:
    """Return the modules of stormline that a program imports."""
    found = set()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            found |= {node.module} | {f"{node.module}.{name.name}" for name in node.names if node.module == "stormline"}
        elif isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
    return {name for name in found if name.split(".")[0] == "stormline"}


def is_deep(module: str) -> bool:
    name = module.partition(".")[2]
    return bool(name) and name not in (*DEEPER, *stormline.__all__)


PROGRAMS = {
    **{str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in (ROOT / "examples").glob("*.py")},
    **{
        f"{page.relative_to(ROOT)}, block {i}": block
        for page in (*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"))
        for i, block in enumerate(re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL))
    },
}


@pytest.mark.parametrize("program", sorted(PROGRAMS))
def test_no_example_of_the_code_or_of_the_docs_imports_a_deep_module(program: str) -> None:
    assert not [module for module in imported(PROGRAMS[program]) if is_deep(module)]


def test_a_deep_import_is_found_however_it_is_written() -> None:
    for code in (
        "import stormline.topology.errors",
        "from stormline.topology.errors import StormlineError",
        "def f():\n    from stormline import topology",
    ):
        assert [module for module in imported(code) if is_deep(module)], code
    assert {"examples/words.py", "README.md, block 0"} <= PROGRAMS.keys()
    assert imported(PROGRAMS["examples/words.py"]) >= {"stormline", "stormline.Tuple"}


def test_no_page_names_a_deep_module() -> None:
    rooms = "topology|bolts|spouts|runtime|cli"
    for page in (ROOT / "README.md", ROOT / "docs" / "porting.md"):
        assert not re.findall(rf"\bstormline\.(?:{rooms})\.(?!kafka|redis)\w+", page.read_text(encoding="utf-8")), (
            page.name
        )


def test_the_nested_interfaces_are_the_ones_with_names_of_their_own() -> None:
    assert stormline.ITransactionalSpout.Coordinator is stormline.ITransactionalCoordinator
    assert stormline.ITransactionalSpout.Emitter is stormline.ITransactionalEmitter
    assert stormline.IPartitionedTransactionalSpout.Coordinator is stormline.IPartitionedCoordinator
    assert stormline.IPartitionedTransactionalSpout.Emitter is stormline.IPartitionedEmitter
    assert stormline.IOpaquePartitionedTransactionalSpout.Coordinator is stormline.IOpaqueCoordinator
    assert stormline.IOpaquePartitionedTransactionalSpout.Emitter is stormline.IOpaqueEmitter
    assert getattr(stormline.ICommitterTransactionalSpout, "Emitter") is stormline.ICommitterEmitter  # noqa: B009
