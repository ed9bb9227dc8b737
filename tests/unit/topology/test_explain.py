"""The text of a plan says what runs where, and always says it in the same way."""

from typing import Any

from stormline import Config, MemoryTransactionalSpout, TransactionalTopologyBuilder, compile_topology
from stormline.topology.explain import explain
from stormline.topology.topology import Topology
from tests.kits.components import Basic, Batch, Store
from tests.kits.spouts import CommitterSpout, Ranges


def seed(d: str | None = None) -> Topology:
    """Declare A → B → C → D, of which B and D commit; `d` places the commits of D."""
    builder = TransactionalTopologyBuilder("seed", "spout", MemoryTransactionalSpout({0: [1]}, ["value"], 1), 2)
    builder.set_bolt("a", Batch(), 2).local_or_shuffle_grouping("spout")
    builder.set_bolt("b", Store("seed")).global_grouping("a")
    builder.set_bolt("c", Batch(), 3).fields_grouping("b", "value").all_grouping("a")
    declarer = builder.set_bolt("d", Store("seed")).global_grouping("c")
    if d is not None:
        declarer.add_configuration(Config.TOPOLOGY_COMMIT_PLACEMENT, d)
    return builder.build_topology()


def test_every_phase_stage_turn_stream_and_edge_is_there() -> None:
    plan = compile_topology(seed(), {Config.TOPOLOGY_MAX_SPOUT_PENDING: 7})
    assert (
        explain(plan)
        == """\
topology seed

Processing phase: up to 7 transactions at once
  stage 0, in the driver process
    spout  partitioned transactional spout  2 tasks (1 to 2)  emits
  stage 1, on the executors
    a  batch bolt  2 tasks (3 to 4)  executes and finishes
  stage 2, on the executors
    b  batch bolt, committer  1 task (5)  executes

Commit phase: one transaction at a time, in txid order, in the driver process
  each by itself: bolt 'b' does not say by effects_in that all its effects are in one store
  turn 0
    b  batch bolt, committer  1 task (5)  finishes
  turn 1
    c  batch bolt  3 tasks (6 to 8)  executes and finishes
  turn 2
    d  batch bolt, committer  1 task (9)  executes and finishes

Streams
  spout  [tx, value]
  a      [tx, value]
  b      [tx, value]
  c      [tx, value]
  d      [tx, value]

Tuples
  spout → a  local or shuffle  exchange
  a → b      global            exchange
  b → c      fields(value)     in the commit phase
  a → c      all               in the commit phase
  c → d      global            in the commit phase

Deferred to the commit phase
  b  is a committer                       executes on the executors, as it says what it gathers: values
  c  gets what committer b emits (b → c)  executes at the commit; with gathers = (…) in its class it would execute on \
the executors
  d  is a committer                       executes at the commit, as only deferred bolts reach it
"""
    )


def test_the_same_declaration_gives_the_same_text() -> None:
    assert explain(compile_topology(seed())) == explain(compile_topology(seed()))


def test_without_a_committer_it_says_that_no_bolt_takes_part_in_the_commit() -> None:
    builder = TransactionalTopologyBuilder("plain", "spout", MemoryTransactionalSpout({0: [1]}, ["value"], 1))
    builder.set_bolt("a", Basic()).shuffle_grouping("spout")
    text = explain(compile_topology(builder.build_topology()))
    assert "  a  basic bolt  1 task (2)  executes\n" in text
    assert "  no bolt takes part: a transaction is committed once it is processed\n" in text
    assert "Deferred" not in text


def test_a_committer_spout_commits_before_all_bolts() -> None:
    builder = TransactionalTopologyBuilder("spout-commits", "spout", CommitterSpout(Ranges("x", 1)))
    builder.set_bolt("a", Store("x")).shuffle_grouping("spout")
    text = explain(compile_topology(builder.build_topology()))
    assert "  before all bolts\n    spout  transactional spout, committer  1 task (1)  commits\n  turn 0\n" in text


def test_commits_on_the_executors_are_said_where_they_are() -> None:
    text = explain(compile_topology(seed(), {Config.TOPOLOGY_COMMIT_PLACEMENT: "executors"}))
    head, _, tail = text.partition("Commit phase: one transaction at a time, in txid order, on the executors\n")
    driver = explain(compile_topology(seed()))
    assert head + "Commit phase: one transaction at a time, in txid order, in the driver process\n" + tail == driver


def test_a_committer_of_another_placement_than_the_rest_is_marked() -> None:
    text = explain(compile_topology(seed(d="executors")))
    assert "in txid order, in the driver process where nothing else is said\n" in text
    assert "  turn 0\n    b  batch bolt, committer  1 task (5)  finishes\n" in text
    assert "  turn 2\n    d  batch bolt, committer  1 task (9)  executes and finishes, on the executors\n" in text


def test_the_emitters_of_a_committer_spout_commit_on_the_driver_wherever_the_bolts_do() -> None:
    builder = TransactionalTopologyBuilder("spout-commits", "spout", CommitterSpout(Ranges("x", 1)))
    builder.set_bolt("a", Store("x")).shuffle_grouping("spout")
    text = explain(compile_topology(builder.build_topology(), {Config.TOPOLOGY_COMMIT_PLACEMENT: "executors"}))
    assert "in txid order, in the driver process where nothing else is said\n" in text
    assert "  before all bolts\n    spout  transactional spout, committer  1 task (1)  commits\n" in text
    assert "    a  batch bolt, committer  1 task (2)  finishes, on the executors\n" in text


class _Everywhere:
    def prepare(self, context: Any, stream: Any, target_tasks: Any) -> None:
        self.tasks = target_tasks

    def choose_tasks(self, task_id: int, values: Any) -> Any:
        return self.tasks


class _TwoStreams(Batch):
    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare_stream("late", ["tx", "why"])
        declarer.declare_stream("named", ["tx", "why"], direct=True)


def test_streams_direct_ones_and_custom_groupings_have_their_names() -> None:
    builder = TransactionalTopologyBuilder("streams", "spout", MemoryTransactionalSpout({0: [1]}, ["value"], 1))
    builder.set_bolt("a", _TwoStreams()).shuffle_grouping("spout")
    builder.set_bolt("b", Batch()).custom_grouping("a", _Everywhere(), "late").direct_grouping("a", "named")
    text = explain(compile_topology(builder.build_topology()))
    assert "  a.named  [tx, why]  direct\n" in text
    assert "  a.late → b   custom (_Everywhere)  plain call\n" in text
    assert "  a.named → b  direct                plain call\n" in text
