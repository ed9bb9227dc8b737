"""Law 10 (stop or replay): corrupt state halts, FailedException replays, another exception stops. See docs/laws.md."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from stormline import TransactionAttempt
from stormline.runtime.errors import StateCorrupt, TopologyFailed
from stormline.runtime.state.memory_store import MemoryStateServer
from tests.laws.kit import ID, drain, fail_once, numbers, topology_of, txid_recorded


def test_a_value_of_which_one_bit_differs_halts_with_its_path_and_nothing_is_changed() -> None:
    server = MemoryStateServer()
    drain(topology_of(numbers(20), ignore), server)
    nodes = server.topologies[ID].nodes
    assert len(nodes) >= 2
    for path, sealed in copy.copy(nodes).items():
        for i in range(len(sealed)):
            nodes[path] = sealed[:i] + bytes([sealed[i] ^ 1]) + sealed[i + 1 :]
            before = dict(nodes)
            with pytest.raises(StateCorrupt, match=f"{path} holds .*; nothing was changed"):
                drain(topology_of(numbers(20), ignore), server)
            assert nodes == before
        nodes[path] = sealed
    drain(topology_of(numbers(25), ignore), server)
    assert txid_recorded(server) == 5, "as it was, it goes on"


def test_failed_exception_replays_the_batch_until_it_passes() -> None:
    seen: list[int] = []
    strike = fail_once(1, 2, 3)

    def commit(attempt: TransactionAttempt, rows: list[Any]) -> None:
        seen.append(attempt.transaction_id)
        strike(attempt)

    drain(topology_of(numbers(20), commit))
    assert seen == [1, 1, 2, 2, 3, 3, 4]


def test_any_other_exception_stops_with_the_users_traceback_and_the_next_run_goes_on() -> None:
    server = MemoryStateServer()
    committed: list[int] = []

    def commit(attempt: TransactionAttempt, rows: list[Any]) -> None:
        if attempt.transaction_id == 3:
            raise KeyError("a bug of the user's")
        committed.append(attempt.transaction_id)

    with pytest.raises(TopologyFailed) as stopped:
        drain(topology_of(numbers(25), commit), server)
    text = str(stopped.value)
    assert "a bug of the user's" in text
    assert "in commit\n" in text, "the line of the user's code"
    assert "commits" in text, "the component"
    assert "3:" in text, "the transaction"
    assert committed == [1, 2]
    assert txid_recorded(server) == 2

    drain(topology_of(numbers(25), lambda attempt, rows: committed.append(attempt.transaction_id)), server)
    assert committed == [1, 2, 3, 4, 5]


def ignore(attempt: TransactionAttempt, rows: list[Any]) -> None:
    """Commit nothing."""
