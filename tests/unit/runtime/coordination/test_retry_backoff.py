"""Backoff: waits that grow, and the ends of patience."""

import pytest

from stormline.runtime.coordination.retry_backoff import (
    ENGINE_FAILURES_MAX,
    REPLAYS_AT_ONCE,
    UNCOUNTED_FAILURES_MAX,
    Backoff,
)
from stormline.runtime.errors import EngineStopped
from stormline.runtime.messages.engine import EngineFailure
from stormline.runtime.messages.wave import Failure
from stormline.topology.attempt import TransactionAttempt

COMPONENTS = 3
ATTEMPT = TransactionAttempt(7, 2)
CUT = Failure("count", 4, "its input was cut", counts=False)


@pytest.fixture
def backoff() -> Backoff:
    return Backoff("counts", COMPONENTS)


def test_replays_of_a_batch_come_at_once_then_wait_longer_up_to_a_second(backoff: Backoff) -> None:
    waits = [backoff.batch_failed(failures) for failures in range(1, REPLAYS_AT_ONCE + 12)]
    assert waits[:REPLAYS_AT_ONCE] == [0.0] * REPLAYS_AT_ONCE
    assert waits[REPLAYS_AT_ONCE] == 0.02
    assert waits == sorted(waits)
    assert waits[-1] == 1.0


def test_waves_that_come_to_nothing_wait_twice_as_long_each_up_to_five_seconds(backoff: Backoff) -> None:
    waits = [backoff.wave_failed("wave 1", EngineFailure("gone")) for _ in range(ENGINE_FAILURES_MAX - 1)]
    assert waits == [0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0]
    with pytest.raises(EngineStopped, match=r"'counts' stopped: wave 1 came to nothing, 8 time\(s\) in a row: gone"):
        backoff.wave_failed("wave 1", EngineFailure("gone"))


def test_a_wave_that_gave_results_ends_the_row_of_those_that_did_not(backoff: Backoff) -> None:
    backoff.wave_failed("wave 1", EngineFailure("gone"))
    backoff.wave_processed()
    assert backoff.wave_failed("wave 3", EngineFailure("gone")) == 0.2


def test_a_reason_that_lasts_stops_at_once(backoff: Backoff) -> None:
    with pytest.raises(EngineStopped, match="wave 1 came to nothing, 1 time"):
        backoff.wave_failed("wave 1", EngineFailure("no JVM", lasting=True))


def test_failures_that_are_no_batchs_own_wait_and_stop_in_the_end_unless_something_commits(backoff: Backoff) -> None:
    patience = UNCOUNTED_FAILURES_MAX + COMPONENTS
    waits = [backoff.uncounted(ATTEMPT, CUT) for _ in range(patience)]
    assert waits == [0.0] * (REPLAYS_AT_ONCE + COMPONENTS) + [0.2] * (UNCOUNTED_FAILURES_MAX - REPLAYS_AT_ONCE)
    backoff.committed()
    for _ in range(patience):
        backoff.uncounted(ATTEMPT, CUT)
    with pytest.raises(EngineStopped, match=r"transaction 7:2 failed 24 times in a row .* its input was cut"):
        backoff.uncounted(ATTEMPT, CUT)
