"""How many transactions a wave holds."""

from __future__ import annotations

from stormline.runtime.coordination.wave_size import CAREFUL_WAVES, FIRST_ATTEMPTS, WAVE_SECS, WaveSize


def test_a_wave_that_takes_long_is_followed_by_one_that_should_not() -> None:
    size = WaveSize(64)
    assert size.attempts_max == 64
    size.processed(64, 4 * WAVE_SECS)
    assert size.attempts_max == 16
    size.processed(16, WAVE_SECS)
    assert size.attempts_max == 16
    size.processed(16, 100 * WAVE_SECS)
    assert size.attempts_max == 1
    size.processed(1, 100 * WAVE_SECS)
    assert size.attempts_max == 1


def test_waves_that_take_little_grow_up_to_pending() -> None:
    size = WaveSize(64)
    size.processed(64, 3 * WAVE_SECS)
    assert size.attempts_max == 21
    for attempts_max in (42, 64, 64):
        size.processed(3, WAVE_SECS / 2)
        assert size.attempts_max == attempts_max


def test_after_a_wave_that_came_to_nothing_many_are_smaller_before_one_is_larger_again() -> None:
    size = WaveSize(64)
    size.failed(40)
    for _ in range(CAREFUL_WAVES):
        assert size.attempts_max == 20
        size.processed(20, WAVE_SECS / 2)
    for attempts_max in (20, 40, 64):
        assert size.attempts_max == attempts_max
        size.processed(20, WAVE_SECS / 2)
    size.failed(1)
    assert size.attempts_max == 1


def test_a_wave_begins_beside_waiting_commits_where_half_of_pending_or_all_that_it_may_hold_finds_place() -> None:
    size = WaveSize(5)
    assert [size.enough(room) for room in range(6)] == [False, False, False, True, True, True]
    size.failed(2)
    assert [size.enough(room) for room in range(6)] == [False, True, True, True, True, True]


def test_a_wave_that_no_commit_waits_beside_is_small_and_later_ones_are_twice_as_large_each() -> None:
    first, size = FIRST_ATTEMPTS, WaveSize(5 * FIRST_ATTEMPTS)
    waits = (False, True, True, True, False, False, True)
    sizes = [size.begins(commits_wait) for commits_wait in waits]
    assert sizes == [first, 2 * first, 4 * first, 5 * first, first, first, 2 * first]


def test_neither_is_more_than_pending_or_what_fits() -> None:
    size = WaveSize(FIRST_ATTEMPTS // 2)
    assert [size.begins(False), size.begins(True)] == [FIRST_ATTEMPTS // 2] * 2
    size.too_large(3)
    assert [size.begins(False), size.begins(True)] == [3, 3]
