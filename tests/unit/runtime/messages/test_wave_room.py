"""WaveRoom: which attempts of a wave find room in what goes through Spark's memory."""

from __future__ import annotations

import pytest

from stormline.runtime.coordination.wave_size import CAREFUL_WAVES, WaveSize
from stormline.runtime.messages.wave_room import WaveRoom, bytes_for_each

GB = 1 << 30


def test_the_last_attempts_go_until_the_others_fit_whoever_asks() -> None:
    room = WaveRoom(100)
    assert [room.take(index, 30) for index in (0, 2, 1)] == [[], [], []]
    assert room.take(0, 20) == [2]
    assert room.take(1, 30) == [1]
    assert room.take(0, 50) == []
    assert room.take(0, 1) == [0]


@pytest.mark.parametrize(
    ("memory", "slots", "limit", "each"),
    [(GB, 1, 0, GB // 4), (GB, 2, 0, GB // 8), (GB, 64, 0, GB // 16), (GB, 2, 1000, 500), (GB, 2, 2 * GB, GB // 8)],
)
def test_a_slot_may_take_its_share_of_the_drivers_memory_and_of_what_a_result_may_have(
    memory: int, slots: int, limit: int, each: int
) -> None:
    assert bytes_for_each(memory, slots, limit) == each


def test_waves_are_as_large_as_what_found_room_for_a_while() -> None:
    size = WaveSize(64)
    size.too_large(3)
    for _ in range(CAREFUL_WAVES):
        assert size.attempts_max == 3
        size.processed(3, 0.1)
    size.processed(3, 0.1)
    assert size.attempts_max == 6
    size.too_large(0)
    assert size.attempts_max == 1
