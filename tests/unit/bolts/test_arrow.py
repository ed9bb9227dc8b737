"""ArrowBatchBolt: what it is given, and what happens where pyarrow is missing, or nobody needs it."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pyarrow as pa
import pytest

from stormline import (
    ArrowBatchBolt,
    ArrowTransactionalBolt,
    BaseBatchBolt,
    Fields,
    IBatchBolt,
    MemoryTransactionalSpout,
    TransactionalTopologyBuilder,
    compile_topology,
)
from stormline.bolts.arrow import BatchSource, source_of
from stormline.runtime.tasks.task_context import TaskContext
from stormline.runtime.tuples.columns import Columns, columns_of, delivered
from stormline.topology.errors import InvalidComponent, MissingExtra
from stormline.topology.explain import explain
from stormline.topology.tuples import TupleSource
from tests.kits.columnar import ArrowPass, ArrowStore
from tests.kits.components import Batch
from tests.unit.runtime.tasks.test_collector import ATTEMPT, collector


class Bare(ArrowTransactionalBolt):
    """Leaves `prepare` out."""

    def execute_batch(self, batch: Any) -> None: ...
    def finish_batch(self) -> None: ...


def builder() -> TransactionalTopologyBuilder:
    return TransactionalTopologyBuilder("t", "s", MemoryTransactionalSpout({}, ["value"], 1))


def test_prepare_may_be_left_out_of_a_transactional_one_only() -> None:
    Bare().prepare({}, None, None, ATTEMPT)  # type: ignore[arg-type]
    assert {"prepare", "execute_batch", "finish_batch"} == set(ArrowBatchBolt.__abstractmethods__)


def test_a_bolt_that_takes_record_batches_is_none_that_takes_tuples() -> None:
    assert not issubclass(ArrowBatchBolt, IBatchBolt)
    assert not hasattr(Bare(), "execute")


class Both(Bare, BaseBatchBolt):
    """Does not say how it wants to be called."""

    def execute(self, tup: Any) -> None: ...


def test_a_bolt_takes_record_batches_or_tuples_and_not_both() -> None:
    message = "bolt 'b' is a Both, expected an object of exactly one of IBasicBolt, IBatchBolt, IArrowBatchBolt"
    with pytest.raises(InvalidComponent, match=message):
        builder().set_bolt("b", Both())


def test_a_batch_says_who_emitted_it_beside_the_users_own_metadata() -> None:
    batch = pa.record_batch({"n": [1]}).replace_schema_metadata({"mine": "kept"})
    source = TupleSource("wörds", "default", 7, Fields("tx", "n"))
    given = delivered(columns_of([[ATTEMPT, 1]], source), source)
    assert source_of(given) == BatchSource("wörds", "default", 7)
    again = TupleSource("other", "side", 8, Fields("tx", "n"))
    metadata = {**given.schema.metadata, **batch.schema.metadata}
    passed_on = delivered(Columns(ATTEMPT, given.replace_schema_metadata(metadata)), again)
    assert source_of(passed_on) == BatchSource("other", "side", 8)
    assert passed_on.schema.metadata[b"mine"] == b"kept"


def test_a_component_can_tell_whether_only_columnar_bolts_listen() -> None:
    made = builder()
    made.set_bolt("both", ArrowPass()).shuffle_grouping("s")
    made.set_bolt("a", ArrowPass()).shuffle_grouping("both").shuffle_grouping("both", "rows")
    made.set_bolt("b", Batch()).shuffle_grouping("both", "rows")
    plan = compile_topology(made.build_topology())
    assert TaskContext(plan, 1, "s", 1).targets_are_columnar()
    assert TaskContext(plan, 1, "both", 2).targets_are_columnar()
    assert not TaskContext(plan, 1, "both", 2).targets_are_columnar("rows")
    assert not TaskContext(plan, 1, "a", 3).targets_are_columnar(), "nobody listens"


def test_a_columnar_bolt_shows_in_the_plan_and_not_in_what_state_depends_on() -> None:
    rows, columns = builder(), builder()
    rows.set_committer_bolt("x", Batch()).shuffle_grouping("s")
    columns.set_bolt("x", ArrowStore("t")).shuffle_grouping("s")
    plans = [compile_topology(made.build_topology()) for made in (rows, columns)]
    assert plans[0].describe() == plans[1].describe(), "rows may become columns under the same topology id"
    assert "batch bolt, columnar, committer" in explain(plans[1])
    assert "columnar" not in explain(plans[0])


# ---------------------------------------------------------------------------------------- pyarrow


def test_a_columnar_bolt_without_pyarrow_is_refused_when_declared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    message = (
        r"bolt 'x' \(Bare\), which takes record batches, needs the package pyarrow, which is not installed: "
        r"pip install 'stormline\[arrow\]'"
    )
    with pytest.raises(MissingExtra, match=message):
        builder().set_bolt("x", Bare())


def test_rows_on_their_way_to_a_columnar_bolt_miss_pyarrow_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(
        ImportError, match=r"a record batch of the tuples of 'words', stream 'default', needs .* pyarrow"
    ):
        columns_of([[ATTEMPT, 1]], TupleSource("words", "default", 7, Fields("tx", "n")))


ROWS_ONLY = """
import sys
{missing}
from stormline import InProcessCluster, TransactionalTopologyBuilder, MemoryTransactionalSpout
from tests.kits.components import Basic, Batch, Store, StoreWithLock, LEDGERS, line, numbers
topology = line("t", numbers(20), 5,
    lambda b: b.set_bolt("a", Basic(), 2).shuffle_grouping("spout"),
    lambda b: b.set_bolt("b", Batch(), 2).fields_grouping("a", ["value"]),
    lambda b: b.set_bolt("c", StoreWithLock("t"), 2).partial_key_grouping("b", ["value"]),
    lambda b: b.set_bolt("d", Store("t2"), 2).all_grouping("c"))
with InProcessCluster() as cluster:
    handle = cluster.submit_topology("t", {{}}, topology)
    handle.await_drained(20)
    handle.kill()
assert sorted(LEDGERS["t"].all()) == list(range(20))
assert sys.modules.get("pyarrow") is None
"""


@pytest.mark.parametrize("missing", ["", "sys.modules['pyarrow'] = None"])
def test_a_topology_of_rows_neither_imports_nor_needs_pyarrow(missing: str) -> None:
    code = ROWS_ONLY.format(missing=missing)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_emitting_a_batch_without_pyarrow_names_who_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(
        MissingExtra, match=r"bolt 'words', task 7, to stream 'default', emits a record batch: this needs the package"
    ):
        collector().emit_batch(object())


def test_a_topology_with_a_columnar_bolt_is_declared_and_compiled_without_importing_pyarrow() -> None:
    code = """
import sys
from stormline import *
class Bare(ArrowTransactionalBolt):
    def execute_batch(self, batch): ...
    def finish_batch(self): ...
builder = TransactionalTopologyBuilder("t", "s", MemoryTransactionalSpout({}, ["w"], 1))
builder.set_bolt("x", Bare()).shuffle_grouping("s")
compile_topology(builder.build_topology())
assert "pyarrow" not in sys.modules
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
