"""kazoo's thread waits for its sockets as `select.select` does."""

from __future__ import annotations

import select
import socket
from collections.abc import Iterator

import pytest

from stormline.runtime.zookeeper.polling import PollingHandler

Pair = tuple[socket.socket, socket.socket]


@pytest.fixture
def pair() -> Iterator[Pair]:
    one, other = socket.socketpair()
    with one, other:
        yield one, other


def test_only_sockets_are_given_that_can_be_read_or_written(pair: Pair) -> None:
    one, other = pair
    handler = PollingHandler()
    assert handler.select([one, other], [], [], 0) == ([], [], [])
    assert handler.select([], [one], [], 30) == ([], [one], [])
    other.send(b"x")
    assert handler.select([one, other], [], [], 30) == ([one], [], [])
    assert handler.select([one], [], []) == ([one], [], [])


def test_one_that_the_other_side_has_closed_can_be_read(pair: Pair) -> None:
    one, other = pair
    other.close()
    assert PollingHandler().select([one], [], [], 30) == ([one], [], [])
    assert one.recv(1) == b""


@pytest.mark.parametrize("of", [PollingHandler, PollingHandler.__base__])
def test_one_that_is_closed_here_is_refused_as_by_kazoo(pair: Pair, of: type[PollingHandler]) -> None:
    one, _ = pair
    one.close()
    with pytest.raises((ValueError, TypeError), match="file descriptor"):
        of().select([one], [], [], 0)


def test_a_number_that_is_no_open_file_any_more_is_refused(pair: Pair) -> None:
    class Left:
        def __init__(self, number: int) -> None:
            self._number = number

        def fileno(self) -> int:
            return self._number

    left = Left(pair[0].detach())
    socket.socket(fileno=left.fileno()).close()
    with pytest.raises(ValueError, match="closed that is waited for"):
        PollingHandler().select([left], [], [], 0)


def test_what_it_cannot_do_better_is_kazoos_own(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = pair
    other.send(b"x")
    read, written, _ = PollingHandler().select([one], [other], [], 30)
    assert (read, written) == ([one], [other])
    monkeypatch.delattr(select, "poll")
    assert PollingHandler().select([one], [], [], 30) == ([one], [], [])
