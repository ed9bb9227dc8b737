"""compile_topology: which settings hold, of the topology, of a component and of what is given to compile."""

from __future__ import annotations

import threading
from typing import Any, cast

import pytest

from stormline import Config, compile_topology
from stormline.topology.config import COMMIT_PLACEMENT, MAX_SPOUT_PENDING, MAX_TASK_PARALLELISM, TASKS
from stormline.topology.errors import InvalidConfig, NotShippable, UnknownConfigKey
from stormline.topology.plan import Placement
from tests.kits.declaring import Batch, Commits, builder, plan, topology
from tests.kits.spouts import CommitterSpout, Ranges


@pytest.mark.parametrize(
    ("config", "own", "expected"),
    [
        ({}, {}, 3),
        ({MAX_TASK_PARALLELISM: 2}, {}, 2),
        ({MAX_TASK_PARALLELISM: 9}, {}, 3),
        ({MAX_TASK_PARALLELISM: 1}, {MAX_TASK_PARALLELISM: 2}, 2),
        ({MAX_TASK_PARALLELISM: 1}, {MAX_TASK_PARALLELISM: None}, 3),
        ({MAX_TASK_PARALLELISM: 2}, {MAX_TASK_PARALLELISM: 1}, 1),
        ({TASKS: 5}, {}, 5),
        ({TASKS: 5}, {TASKS: 4}, 4),
        ({TASKS: 5}, {MAX_TASK_PARALLELISM: 4}, 4),
        ({TASKS: 5, MAX_TASK_PARALLELISM: 2}, {}, 2),
        ({TASKS: None, MAX_TASK_PARALLELISM: None}, {}, 3),
    ],
)
def test_settings_of_a_component_win_over_those_of_the_topology(config: Any, own: Any, expected: int) -> None:
    b = builder()
    b.set_bolt("a", Batch(), 3).shuffle_grouping("words").add_configurations(own)
    assert len(compile_topology(b.build_topology(), config).components["a"].tasks) == expected


def test_max_spout_pending_of_the_spout_wins_over_the_topologys() -> None:
    b = builder()
    b.get_spout_declarer().set_max_spout_pending(3)
    built = b.build_topology()
    assert compile_topology(built, {MAX_SPOUT_PENDING: 9}).config[MAX_SPOUT_PENDING] == 3
    assert compile_topology(built).config[MAX_SPOUT_PENDING] == 3
    assert MAX_SPOUT_PENDING not in plan({}).config


@pytest.mark.parametrize(
    ("config", "bolts", "declared", "expected"),
    [
        (None, None, None, "driver"),
        ("executors", None, None, "executors"),
        ("executors", "driver", None, "driver"),
        ("driver", "executors", None, "executors"),
        ("executors", "executors", "driver", "driver"),
        (None, "driver", "executors", "executors"),
    ],
)
def test_a_placement_of_commits_holds_by_the_precedence_of_every_key(
    config: Any, bolts: Any, declared: Any, expected: str
) -> None:
    def key(placement: str | None) -> dict[str, str]:
        return {} if placement is None else {COMMIT_PLACEMENT: placement}

    b = builder()
    b.set_bolt("store", Commits(config=key(bolts))).shuffle_grouping("words").add_configurations(key(declared))
    b.set_bolt("after", Batch()).shuffle_grouping("store")
    compiled = compile_topology(b.build_topology(), key(config))
    assert {name: planned.commit_placement for name, planned in compiled.components.items()} == {
        "words": None,
        "store": Placement(expected),
        "after": Placement(config or "driver"),
    }
    assert compiled.describe() == compile_topology(b.build_topology()).describe(), "durable state fits any placement"


def test_a_placement_of_what_does_not_finish_in_the_commit_phase_is_an_error() -> None:
    b = builder()
    bolt = b.set_bolt("a", Batch()).shuffle_grouping("words")
    bolt.add_configuration(COMMIT_PLACEMENT, "executors")
    message = (
        r"^batch bolt 'a' sets topology.commit.placement to 'executors', and finishes no batch in the commit phase: it "
        r"is no committer, nor downstream of one; leave the key out here, or set it for the topology$"
    )
    with pytest.raises(InvalidConfig, match=message):
        compile_topology(b.build_topology())
    b = builder(CommitterSpout(Ranges("counts", 1)))
    b.get_spout_declarer().add_configuration(COMMIT_PLACEMENT, "executors")
    with pytest.raises(InvalidConfig, match=r"'words' sets .* and the emitters of a committer spout commit on the dri"):
        compile_topology(b.build_topology())
    with pytest.raises(InvalidConfig, match=r"topology.commit.placement is 'executor', expected 'driver' or 'executor"):
        plan({}, **cast(Any, {COMMIT_PLACEMENT: "executor"}))


def test_compiling_leaves_the_given_configuration_alone() -> None:
    config = Config(mine=1)
    compiled = compile_topology(topology({}), config)
    config["mine"] = 2
    assert compiled.config == {"mine": 1}


def test_the_configuration_is_checked() -> None:
    with pytest.raises(
        UnknownConfigKey, match=r"configuration of topology 'counts': unknown key 'topology.debgu'; did"
    ):
        compile_topology(topology({}), {"topology.debgu": True})
    with pytest.raises(InvalidConfig, match=r"of topology 'counts': topology.workers is 0, expected a whole"):
        compile_topology(topology({}), {"topology.workers": 0})
    with pytest.raises(InvalidConfig, match=r"of topology 'counts' is 'debug', expected a dict such as Config$"):
        compile_topology(topology({}), "debug")  # type: ignore[arg-type]
    with pytest.raises(
        NotShippable, match=r"configuration of topology 'counts' cannot be sent .*'mine' is a _thread.lock"
    ):
        compile_topology(topology({}), {"mine": threading.Lock()})
