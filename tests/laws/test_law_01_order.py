"""Law 1 (order): no effect of a commit before the transaction before it is durably recorded. See docs/laws.md."""

from __future__ import annotations

from typing import Any

import pytest

from stormline import TransactionAttempt
from stormline.runtime.state.memory_store import MemoryStateServer, MemoryStateStore
from stormline.runtime.state.state_store import Op
from tests.laws.kit import TIMEOUT_SECS, drain, fail_once, numbers, running, topology_of, txid_recorded


def test_at_each_commit_the_transaction_before_is_on_record_and_this_one_is_not() -> None:
    server = MemoryStateServer()
    seen: list[tuple[int, int]] = []
    strike = fail_once(2, 5)

    def commit(attempt: TransactionAttempt, rows: list[Any]) -> None:
        seen.append((attempt.transaction_id, txid_recorded(server)))
        strike(attempt)

    drain(topology_of(numbers(40), commit), server)
    assert [txid for txid, _ in seen] == [1, 2, 2, 3, 4, 5, 5, 6, 7, 8]
    assert [recorded for _, recorded in seen] == [txid - 1 for txid, _ in seen]
    assert txid_recorded(server) == 8


def test_a_record_that_cannot_be_written_lets_no_later_commit_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    server = MemoryStateServer()
    committed: list[int] = []
    write = MemoryStateStore.write

    def refuse_the_second_record(store: Any, ops: Any) -> None:
        if any(record_of_second(op) for op in ops):
            raise OSError("no record today")
        write(store, ops)

    def record_of_second(op: Op) -> bool:
        return op.path == "committed" and getattr(op, "value", {}).get("txid") == 2

    monkeypatch.setattr(MemoryStateStore, "write", refuse_the_second_record)
    with (
        running(
            topology_of(numbers(40), lambda attempt, rows: committed.append(attempt.transaction_id)), server
        ) as run,
        pytest.raises(OSError, match="no record today"),
    ):
        run.await_drained(TIMEOUT_SECS)
    assert committed == [1, 2]
    assert txid_recorded(server) == 1
