"""topology.debug shows tuples in a plain script, and obeys the user's own logging."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = """
import logging
from stormline import Config, InProcessCluster
from tests.kits.components import Batch, line

config = Config()
config.set_debug({debug})
{logging}
topology = line("shown", {{0: ["seen"]}}, 1, lambda b: b.set_bolt("s", Batch()).shuffle_grouping("spout"))
for _ in range(2):
    with InProcessCluster() as cluster:
        cluster.submit_topology("shown", config, topology).await_drained(60)
"""


def lines_of(debug: bool = True, logging: str = "") -> list[str]:
    shown = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(debug=debug, logging=logging)],
        cwd=Path(__file__).resolve().parents[4],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert shown.stdout == ""
    return shown.stderr.splitlines()


def test_a_plain_script_shows_each_tuple_once_and_nothing_else() -> None:
    lines = lines_of()
    assert len([line for line in lines if "INFO stormline.debug: s, task 2 emits to default: [" in line]) == 2
    assert [line for line in lines if "INFO stormline.debug: " not in line] == []


def test_without_debug_nothing_is_shown() -> None:
    assert lines_of(debug=False) == []


def test_the_users_own_logging_says_what_is_shown() -> None:
    assert lines_of(logging="logging.basicConfig(level=logging.WARNING)") == []
    assert lines_of(logging="logging.getLogger('stormline').setLevel(logging.WARNING)") == []
    handler = "logging.getLogger('stormline').addHandler(logging.StreamHandler())"  # as `stormline run` has one
    assert sum(line.startswith("s, task 2 emits to") for line in lines_of(logging=handler)) == 2
    lines = lines_of(logging="logging.basicConfig(level=logging.INFO, format='%(message)s')")
    assert any(line.startswith("s, task 2 emits to default: [") for line in lines)
