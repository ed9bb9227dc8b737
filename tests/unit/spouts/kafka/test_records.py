"""Records become the same rows, whichever way their fields are taken, and those that cannot be read fall out singly."""

from __future__ import annotations

from typing import Any

import pytest

kafka = pytest.importorskip("confluent_kafka", reason="stormline[kafka] is optional")

from stormline import TransactionAttempt  # noqa: E402
from stormline.spouts.kafka import Json, KafkaTransactionalSpout  # noqa: E402
from stormline.spouts.kafka.partitions import Place  # noqa: E402
from stormline.spouts.kafka.records import RecordEmitter  # noqa: E402
from tests.kafka.by_hand import Context, Rows  # noqa: E402

TYPES = {"n": int, "word": str | None, "paid": bool}
GOOD = b'{"word": "a", "paid": true, "n": 1, "more": []}'
ALL, IN_ANOTHER_ORDER, SOME = [*TYPES], ["word", "n", "paid"], ["n", "word"]


def emitted(fields: list[str], *values: bytes | None) -> tuple[list[list[Any]], list[list[Any]]]:
    """Return the rows, and what could not be read: offset and problem."""
    spout = KafkaTransactionalSpout("host:9092", "t", fields, value=Json(TYPES), on_unreadable="emit")
    collector = Rows()
    messages = [kafka.Message(topic="t", partition=0, offset=i, value=value) for i, value in enumerate(values)]
    emitter = RecordEmitter(spout._settings, Context(columnar=False))  # type: ignore[arg-type]
    share = emitter.share(TransactionAttempt(1, 1), collector, Place("t", 0))  # type: ignore[arg-type]
    share.take(messages)
    share.end()
    assert share.records == len(messages)
    return collector.rows, [[letter[2], letter[-1]] for letter in collector.others.get("unreadable", [])]


@pytest.mark.parametrize("fields", [ALL, IN_ANOTHER_ORDER, SOME])
def test_rows_hold_the_fields_in_the_order_in_which_they_are_named(fields: list[str]) -> None:
    second = b'{"paid": false, "n": 2}'
    rows, _ = emitted(fields, GOOD, second, GOOD)
    one, two = {"n": 1, "word": "a", "paid": True}, {"n": 2, "word": None, "paid": False}
    assert rows == [[row[name] for name in fields] for row in (one, two, one)]


@pytest.mark.parametrize("fields", [ALL, SOME])
@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (None, "it has no value, so no field 'n'"),
        (b'{"n": "1"}', "ValidationError: Expected `int`, got `str` - at `$.n`"),
    ],
)
def test_a_record_that_cannot_be_read_costs_no_other(fields: list[str], value: bytes | None, problem: str) -> None:
    rows, unreadable = emitted(fields, GOOD, value, GOOD)
    assert rows == [[1, "a", True][: len(fields)]] * 2
    assert unreadable == [[1, problem]]
