"""What Kafka's client library logs: one line of many that say the same, from whichever client."""

from __future__ import annotations

import logging

import pytest
from confluent_kafka import Consumer

from stormline.spouts.kafka import client_log
from stormline.spouts.kafka.client_log import CLIENT_LOG, FewRepeats
from tests.kits.components import eventually


def record(text: str, client: str = "rdkafka#consumer-1", facility: str = "FAIL") -> logging.LogRecord:
    return logging.LogRecord("x", logging.ERROR, __file__, 1, "%s [%s] %s", (facility, client, text), None)


def refused(port: int, ms: int) -> str:
    return f"[thrd:h:{port}/1]: h:{port}/1: Connect to ipv4#127.0.0.1:{port} failed: Connection refused (after {ms}ms in state CONNECT)"  # noqa: E501


def test_what_differs_in_client_and_time_alone_is_said_once() -> None:
    few = FewRepeats()
    assert few.filter(record(refused(1, 3)))
    assert not few.filter(record(refused(1, 0)))
    assert not few.filter(record(refused(1, 17), "rdkafka#consumer-2"))
    assert few.filter(record(refused(2, 3))), "another broker is another thing"
    assert few.filter(record(refused(1, 3), facility="DISCONNECTED"))


def test_after_a_while_a_line_says_how_many_it_stands_for() -> None:
    now = 0.0
    few = FewRepeats(lambda: now)
    for _ in range(5):
        few.filter(record(refused(1, 3)))
    now = client_log.QUIET_SECS
    again = record(refused(1, 3))
    assert few.filter(again)
    assert again.getMessage().endswith("in state CONNECT) (4 more lines like this since the last)")
    now *= 2
    alone = record(refused(1, 3))
    assert few.filter(alone)
    assert "more lines" not in alone.getMessage()


def test_it_forgets_where_lines_are_of_ever_new_kinds() -> None:
    few = FewRepeats()
    for number in range(3 * client_log.KINDS_MAX):
        assert few.filter(record(f"nothing like number {number}"))
    assert len(few._last) <= client_log.KINDS_MAX


def test_a_line_of_another_shape_passes_by_its_text() -> None:
    few = FewRepeats()
    line = logging.LogRecord("x", logging.ERROR, __file__, 1, "%s", ("own",), None)
    assert few.filter(line)
    assert not few.filter(line)


def test_clients_of_a_broker_that_is_away_fill_no_log(caplog: pytest.LogCaptureFixture) -> None:
    CLIENT_LOG.filters[0]._last.clear()  # type: ignore[union-attr]
    heard: list[object] = []
    settings = {"bootstrap.servers": "localhost:1", "group.id": "g", "logger": CLIENT_LOG, "error_cb": heard.append}
    clients = [Consumer(settings) for _ in range(3)]
    try:

        def tries() -> int:
            for client in clients:
                client.poll(0.05)
            return len(heard)

        eventually(lambda: tries() > 20)
    finally:
        for client in clients:
            client.close()
    lines = {(line.levelno, line.getMessage().split("]: ")[-1].split(" (after")[0]) for line in caplog.records}
    assert 0 < len(caplog.records) == len(lines), [line.getMessage() for line in caplog.records]
