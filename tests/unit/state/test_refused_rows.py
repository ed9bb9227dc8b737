"""Which of many rows a database refuses is found by halving."""

from __future__ import annotations

import pytest

from stormline.state.refused_rows import first_refused


@pytest.mark.parametrize("count", [1, 2, 3, 7, 100])
def test_the_first_row_that_is_refused_is_found_wherever_it_is(count: int) -> None:
    for refused in range(count):
        asked: list[tuple[int, int]] = []

        def takes(first: int, end: int, refused: int = refused, asked: list[tuple[int, int]] = asked) -> bool:
            asked.append((first, end))
            return not first <= refused < end

        assert first_refused(count, takes) == refused
        assert len(asked) <= count.bit_length()


def test_of_several_the_first_is_named() -> None:
    assert first_refused(50, lambda first, end: not {20, 21, 40} & set(range(first, end))) == 20
