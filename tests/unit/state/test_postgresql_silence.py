"""A wait for PostgreSQL ends where nothing comes for too long, and goes on for as long as something does."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from stormline.state.postgresql_silence import ServerSilent, _bounded

NOTHING, READY = 0, 1


def reads(pieces: int) -> Generator[str, int, str]:
    """Wait for so many pieces, as psycopg's generators do."""
    for _ in range(pieces):
        while not (yield "readable"):
            pass
    return "all"


def test_what_is_waited_for_comes_through() -> None:
    bounded = _bounded(reads(3), 1000)
    assert [next(bounded), bounded.send(READY), bounded.send(NOTHING), bounded.send(READY)] == ["readable"] * 4
    with pytest.raises(StopIteration) as ended:
        bounded.send(READY)
    assert ended.value.value == "all"


def test_a_wait_without_an_answer_ends_and_says_after_how_long() -> None:
    bounded = _bounded(reads(1), 0.0)
    assert next(bounded) == "readable"
    with pytest.raises(ServerSilent, match=r"^the server has said nothing for 0 s$"):
        all(bounded.send(NOTHING) for _ in range(10**9))


def test_each_answer_begins_the_wait_anew() -> None:
    bounded = _bounded(reads(1000), 0.0)
    next(bounded)
    for _ in range(999):  # one look that finds nothing is no silence: it begins one
        assert bounded.send(NOTHING) == "readable"
        assert bounded.send(READY) == "readable"


def test_what_the_call_itself_raises_comes_through() -> None:
    def fails() -> Generator[str, int, None]:
        yield "readable"
        raise KeyError("x")

    bounded = _bounded(fails(), 1000)
    next(bounded)
    with pytest.raises(KeyError):
        bounded.send(READY)
