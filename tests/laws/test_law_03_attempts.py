"""Law 3 (attempts): no attempt id is used twice, and what is not of the current attempt changes nothing."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from stormline import TransactionAttempt
from stormline.runtime.coordination import coordinator
from stormline.runtime.coordination.coordinator import Committed, Failed, Initialized, Process, Processed
from stormline.runtime.errors import TopologyFailed
from stormline.runtime.messages.wave import AttemptResult
from stormline.runtime.state.memory_store import MemoryStateServer
from tests.laws.kit import drain, fail_once, numbers, topology_of


def test_no_attempt_id_comes_twice_not_even_after_a_restart() -> None:
    server = MemoryStateServer()
    seen: list[TransactionAttempt] = []
    strike = fail_once(2, 3)

    def commit_until_the_driver_ends(attempt: TransactionAttempt, rows: list[Any]) -> None:
        seen.append(attempt)
        strike(attempt)
        if attempt.transaction_id == 4:
            raise ZeroDivisionError("the driver ends here, and nothing of this attempt is recorded")

    with pytest.raises(TopologyFailed, match="the driver ends here"):
        drain(topology_of(numbers(30), commit_until_the_driver_ends), server)
    drain(topology_of(numbers(30), lambda attempt, rows: seen.append(attempt)), server)
    assert Counter(attempt.transaction_id for attempt in seen) == {1: 1, 2: 2, 3: 2, 4: 2, 5: 1, 6: 1}
    assert len(set(seen)) == len(seen)
    assert [a for a in seen if a.transaction_id == 4] == sorted(
        (a for a in seen if a.transaction_id == 4), key=lambda attempt: attempt.attempt_id
    )


def test_news_of_an_attempt_that_is_over_changes_nothing() -> None:
    state, _ = coordinator.start(0, {}, 4, 1)
    attempts = []
    for metadata in "abc":
        state, (process,) = coordinator.step(state, Initialized(metadata))
        assert isinstance(process, Process)
        attempts.append(process.attempt)
    state, _ = coordinator.step(state, Failed(attempts[0]))
    for over in attempts:
        for news in (Processed(AttemptResult(over)), Failed(over), Committed(over)):
            assert coordinator.step(state, news) == (state, [])
    current = state.active[1].attempt
    assert coordinator.step(state, Processed(AttemptResult(current)))[0] != state, "what is current does change it"


def test_attempt_ids_of_a_later_epoch_are_greater_than_all_that_an_earlier_one_can_have_used() -> None:
    epoch_2, (process,) = coordinator.start(0, {1: "a"}, 4, 2)
    assert isinstance(process, Process)
    assert process.attempt.attempt_id > coordinator.ATTEMPTS_PER_EPOCH
    assert epoch_2.active[1].attempt == process.attempt
