"""Versions are replaced, never counted past what ZooKeeper can compare."""

from __future__ import annotations

import pytest

from stormline.runtime.state.state_tree import next_version, used_up


@pytest.mark.parametrize(
    ("version", "after"),
    [(0, 1), (1, 2), (2**31 - 2, 2**31 - 1), (2**31 - 1, 0), (-(2**31), 0), (-3, 0), (-2, 0), (-1, 0)],
)
def test_the_next_version_is_one_that_fits_32_bits_and_is_compared(version: int, after: int) -> None:
    assert next_version(version) == after
    assert used_up(version) == (after == 0)
