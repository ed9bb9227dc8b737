from __future__ import annotations

import inspect
from typing import Any

import pytest

from stormline.cli.run import run_command
from stormline.cli.submit import submit_command
from stormline.runtime.cluster.local_cluster import LocalCluster
from stormline.runtime.cluster.storm_submitter import StormSubmitter
from stormline.runtime.errors import TopologyChanged
from stormline.runtime.state.graph_changes import check_description, differences
from stormline.topology.two_phase_bolt import TWO_PHASES


@pytest.mark.parametrize(
    ("stored", "declared", "lines"),
    [
        ({"a": 1}, {"a": 1}, []),
        ({"a": 1, "b": [2]}, {"b": [2], "a": 1}, []),
        ({"a": 1}, {"a": True}, ["a 1 → True"]),
        ({"version": "1"}, {"version": "2"}, ["version '1' → '2'"]),
        ({"bolts": {"count": {"parallelism": 2}}}, {"bolts": {"count": {"parallelism": 3}}},
         ["bolt 'count': parallelism 2 → 3"]),
        ({"bolts": {}}, {"bolts": {"x": {"parallelism": 3}}}, ["bolt 'x' added"]),
        ({"bolts": {"x": {"parallelism": 3}}}, {"bolts": {}}, ["bolt 'x' removed"]),
        ({"bolts": {"x": {"inputs": {"words": ["shuffle"]}}}}, {"bolts": {"x": {"inputs": {"words": ["all"]}}}},
         ["bolt 'x': inputs.words ['shuffle'] → ['all']"]),
        ({"spout": "a"}, {"spout": {"id": "a"}}, ["spout 'a' → {'id': 'a'}"]),
        (1, 2, ["the description 1 → 2"]),
    ],
)  # fmt: skip
def test_differences_read_as_text(stored: Any, declared: Any, lines: list[str]) -> None:
    assert differences(stored, declared) == lines


def test_what_allows_a_change_is_named_as_it_is_written() -> None:
    check_description({"a": 1}, {"a": 1}, "words", "/words")
    with pytest.raises(TopologyChanged) as caught:
        check_description({"a": 1}, {"a": 2}, "words", "/words")
    assert str(caught.value) == (
        "the state of topology 'words' (/words) belongs to another topology than the one submitted: a 1 → 2. Submit "
        "the topology as it was, or under another id, which begins at transaction 1 and needs stores of its own; or "
        "allow the change, if the state kept so far fits the new topology: --allow-changed-topology for `stormline "
        "run` and `stormline submit`, allow_changed_topology=True in submit() and submit_topology()"
    )
    for command in (run_command, submit_command):
        assert "--allow-changed-topology" in [option for parameter in command.params for option in parameter.opts]
    for call in (LocalCluster.submit, LocalCluster.submit_topology, StormSubmitter.submit_topology):
        assert "allow_changed_topology" in inspect.signature(call).parameters


@pytest.mark.parametrize("declared", [{}, {"bolt 'load'": {"kind": "batch bolt"}}])
def test_a_bolt_that_writes_into_a_sink_is_not_gone_before_it_is_said_what_it_leaves_there(declared: Any) -> None:
    stored = {"bolt 'load'": {TWO_PHASES: True, "kind": "batch bolt"}}
    with pytest.raises(TopologyChanged) as caught:
        check_description(stored, declared, "orders", "/orders")
    assert str(caught.value).endswith(
        "in submit() and submit_topology(). What bolt 'load' has prepared in its sink and not committed stays there, "
        "with its locks: before you allow this, let the topology as it was commit all that it has, and stop it in good "
        "order; `stormline transactions list` with its module as it was tells what is left"
    )
    with pytest.raises(TopologyChanged, match=r"submit_topology\(\)$"):
        check_description({}, stored, "orders", "/orders")
