"""Ports that a server is told before it starts: free, and not such as the kernel gives to connections."""

from __future__ import annotations

import random
import socket
from pathlib import Path

import pytest

from tests.services import free_port as free_port_module
from tests.services.free_port import LOWEST, TRIES, free_port


def give_connections_those_from(first: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = tmp_path / "range"
    told.write_text(f"{first}\t60999\n")
    monkeypatch.setattr(free_port_module, "RANGE_OF_CONNECTIONS", told)


def test_it_is_none_that_a_connection_gets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    give_connections_those_from(LOWEST + TRIES + 1, tmp_path, monkeypatch)
    assert {LOWEST <= free_port() <= LOWEST + TRIES for _ in range(50)} == {True}


def test_where_the_kernel_does_not_tell_linuxs_own_range_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(free_port_module, "RANGE_OF_CONNECTIONS", tmp_path / "gone")
    assert {LOWEST <= free_port() < 32_768 for _ in range(50)} == {True}


def test_one_on_which_somebody_listens_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    taken, free = free_port(), free_port()
    drawn = iter([taken, free])
    monkeypatch.setattr(random.SystemRandom, "randint", lambda self, low, high: next(drawn))
    with socket.create_server(("127.0.0.1", taken)):
        assert free_port() == free


def test_where_none_is_free_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = free_port()
    monkeypatch.setattr(random.SystemRandom, "randint", lambda self, low, high: taken)
    with (
        socket.create_server(("127.0.0.1", taken)),
        pytest.raises(RuntimeError, match=r"of 1000 ports from 15000 to \d+ none was free"),
    ):
        free_port()
