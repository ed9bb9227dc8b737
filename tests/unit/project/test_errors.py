"""`stormline.errors`: every error that a topology may raise can be imported from there."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

from stormline import errors
from tests.unit.project.test_public_names import loaded_after

ROOT = Path(__file__).resolve().parents[3]
ROOMS = ("topology", "bolts", "spouts", "runtime", "state")


def errors_in(path: Path) -> set[str]:
    """Return the classes of a module that derive from an error of ours; not the engine's own FailedExceptions."""
    ours = set(errors.__all__) - {"FailedException"}
    return {
        node.name
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ClassDef) and ours & {base.id for base in node.bases if isinstance(base, ast.Name)}
    }


def test_every_error_of_every_room_is_there() -> None:
    found = {name for room in ROOMS for path in (ROOT / room).rglob("*.py") for name in errors_in(path)}
    assert {"WrongArity", "Fenced", "BadLine", "RowsVanished"} <= found
    assert found - set(errors.__all__) == set(), "list them in stormline/errors.py"


def test_all_that_is_there_is_an_error_of_ours_and_there_once() -> None:
    found = [getattr(errors, name) for name in errors.__all__]
    assert all(
        inspect.isclass(error) and issubclass(error, (errors.StormlineError, errors.FailedException)) for error in found
    )
    assert len(set(found)) == len(found)


def test_errors_are_imported_without_zookeeper_spark_and_msgpack() -> None:
    assert loaded_after("import stormline.errors") & {"pyspark", "py4j", "kazoo", "networkx", "msgpack"} == set()


def test_what_tests_of_topologies_need_is_imported_without_zookeeper_and_spark() -> None:
    code = "from stormline.testing import InProcessCluster, MemoryStateServer; InProcessCluster(MemoryStateServer())"
    assert loaded_after(code) & {"pyspark", "py4j", "kazoo"} == set()
