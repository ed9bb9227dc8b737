"""Storm's names: what is spelt otherwise here says how, and costs nothing that exists."""

from __future__ import annotations

import pydoc
import re
from typing import Any

import pytest

from stormline import (
    AssignableMetric,
    BaseTransactionalBolt,
    BaseTransactionalSpout,
    BatchSubtopologyBuilder,
    Config,
    CountMetric,
    Fields,
    GlobalStreamId,
    InProcessCluster,
    ITransactionalSpout,
    LinearDRPCTopologyBuilder,
    LocalCluster,
    MemoryTransactionalSpout,
    OutputFieldsDeclarer,
    TopologyHandle,
    TransactionalTopologyBuilder,
    TransactionAttempt,
    Tuple,
)
from stormline.errors import InvalidComponent
from stormline.runtime.tasks.batch_recorder import Recorder
from stormline.runtime.tasks.collector import TaskCollector
from stormline.runtime.tasks.task_context import TaskContext
from stormline.topology.bolt_declarer import BoltDeclarer
from stormline.topology.declarers import SpoutDeclarer
from stormline.topology.storm_names import camel_case, snake_case

STORMS = [
    (Tuple, "getInteger", "get_integer"),
    (Tuple, "getStringByField", "get_string_by_field"),
    (Tuple, "getSourceGlobalStreamId", "get_source_global_stream_id"),
    (Tuple, "getSourceGlobalStreamid", "get_source_global_stream_id"),
    (Tuple, "sourceComponent", "source_component"),
    (Fields, "fieldIndex", "field_index"),
    (Fields, "toList", "to_list"),
    (TransactionAttempt, "getTransactionId", "get_transaction_id"),
    (TransactionAttempt, "transactionId", "transaction_id"),
    (TaskCollector, "emitDirect", "emit_direct"),
    (TaskCollector, "reportError", "report_error"),
    (Recorder, "emitDirect", "emit_direct"),
    (TaskContext, "getThisTaskId", "get_this_task_id"),
    (TaskContext, "getStormId", "get_storm_id"),
    (TaskContext, "getComponentOutputFields", "get_component_output_fields"),
    (TaskContext, "setTaskData", "set_task_data"),
    (TaskContext, "getExecutorData", "get_task_data"),
    (TaskContext, "get_executor_data", "get_task_data"),
    (OutputFieldsDeclarer, "declareStream", "declare_stream"),
    (TransactionalTopologyBuilder, "setBolt", "set_bolt"),
    (BatchSubtopologyBuilder, "extendTopology", "extend_topology"),
    (LinearDRPCTopologyBuilder, "addBolt", "add_bolt"),
    (LinearDRPCTopologyBuilder, "createLocalTopology", "create_local_topology"),
    (CountMetric, "incrBy", "incr_by"),
    (AssignableMetric, "setValue", "set_value"),
    (TransactionalTopologyBuilder, "setCommitterBolt", "set_committer_bolt"),
    (TransactionalTopologyBuilder, "buildTopology", "build_topology"),
    (TransactionalTopologyBuilder, "set_spout", "the spout of the constructor"),
    (TransactionalTopologyBuilder, "setSpout", "the spout of the constructor"),
    (BoltDeclarer, "shuffleGrouping", "shuffle_grouping"),
    (BoltDeclarer, "setNumTasks", "set_num_tasks"),
    (SpoutDeclarer, "setMaxSpoutPending", "set_max_spout_pending"),
    (SpoutDeclarer, "addConfiguration", "add_configuration"),
    (Config, "setMaxSpoutPending", "set_max_spout_pending"),
    (Config, "registerSerialization", "register_serialization"),
    (Config, "put", "config[key] = value"),
    (GlobalStreamId, "get_componentId", "component"),
    (GlobalStreamId, "getStreamId", "get_stream_id"),
    (InProcessCluster, "submitTopology", "submit_topology"),
    (LocalCluster, "submitTopology", "submit_topology"),
    (TopologyHandle, "awaitDrained", "await_drained"),
]


@pytest.mark.parametrize(("owner", "storm", "here"), STORMS)
def test_an_attribute_by_storms_name_says_its_name_here(owner: type, storm: str, here: str) -> None:
    with pytest.raises(AttributeError) as caught:
        getattr(owner, storm)
    assert str(caught.value) == f"{owner.__name__!r} has no attribute {storm!r}: it is {here} here"
    if here.isidentifier():
        assert hasattr(owner, here)


def test_an_object_says_it_as_its_class_does_and_names_the_users_own_class() -> None:
    class Mine(Tuple):
        pass

    with pytest.raises(AttributeError, match=r"^'Tuple' has no attribute 'getInteger': it is get_integer here$"):
        Tuple.of([1], ["a"]).getInteger(0)  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match=r"^'Mine' has no attribute 'getInteger'"):
        Mine.of([1], ["a"]).getInteger(0)  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match=r"^'Tuple' object has no attribute 'getColour'"):
        Tuple.of([1], ["a"]).getColour()  # type: ignore[attr-defined]


def test_a_name_of_storms_is_no_attribute_but_help_shows_it() -> None:
    tup = Tuple.of([1], ["a"])
    assert not hasattr(tup, "getInteger")
    assert getattr(tup, "getInteger", "nothing") == "nothing"
    assert "get_integer" in dir(tup)
    assert "getInteger" not in dir(tup)
    assert re.search(
        r"getInteger\W+It is get_integer here\.", pydoc.render_doc(Tuple, renderer=vars(pydoc)["plaintext"])
    )


def test_what_a_subclass_defines_itself_is_its_own() -> None:
    class Mine(Config):
        def put(self, key: str, value: Any) -> None:
            self[key] = value

    mine = Mine()
    mine.put("a", 1)
    assert mine == {"a": 1}


def test_no_public_class_looks_up_all_its_attributes_by_a_function() -> None:
    assert not [owner for owner, _, _ in STORMS if "__getattr__" in dir(owner) or "__getattribute__" in vars(owner)]


@pytest.mark.parametrize(
    ("python", "java"), [("get_string", "getString"), ("emit", "emit"), ("get_this_task_id", "getThisTaskId")]
)
def test_each_language_spells_a_name_in_its_way(python: str, java: str) -> None:
    assert camel_case(python) == java
    assert snake_case(java) == snake_case(python) == python


@pytest.mark.parametrize(
    ("base", "storm", "here"),
    [
        (ITransactionalSpout.Coordinator, "isReady", "is_ready"),
        (ITransactionalSpout.Emitter, "cleanupBefore", "cleanup_before"),
        (BaseTransactionalSpout, "getComponentConfiguration", "get_component_configuration"),
        (BaseTransactionalBolt, "declareOutputFields", "declare_output_fields"),
        (MemoryTransactionalSpout, "getEmitter", "get_emitter"),
    ],
)
def test_a_method_in_javas_spelling_which_nothing_would_call_is_refused(base: type, storm: str, here: str) -> None:
    with pytest.raises(
        InvalidComponent, match=f"^class Ported defines {storm}, which nothing calls: it is {here} here$"
    ):
        type("Ported", (base,), {storm: lambda self: None})


def test_an_adapter_that_defines_both_spellings_and_any_other_name_are_taken() -> None:
    class Ported(ITransactionalSpout.Coordinator):
        def initialize_transaction(self, txid: int, prev_metadata: Any) -> Any:
            return self.initializeTransaction(txid, prev_metadata)

        def initializeTransaction(self, txid: int, previous: Any) -> Any:
            return (previous or 0) + txid

        def nextOffset(self) -> None:
            pass

    assert Ported().initialize_transaction(2, 3) == 5
