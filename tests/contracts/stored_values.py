"""What keys and values keep to in every store. A test module subclasses this beside `StoreContract`."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest

from stormline.errors import RefusedValue
from stormline.state import OpaqueMap, Store, TransactionalMap
from stormline.topology.registration import Registration
from stormline.topology.serialization import Registry
from tests.contracts.store import got, put, words
from tests.kits.stores import Process


@dataclass(frozen=True)
class Point:
    x: int
    y: int


class StoredValuesContract:
    VALUES: tuple[tuple[type, list[Any]], ...] = (
        (int, [0, 1, -1, 2**63 - 1, -(2**63) + 1]),
        (float, [0.0, -1.5, 1e300, 0.1]),
        (str, ["", "cat", "Zürich ₿ 𝄞", "A", "a", "ä", "' \" ; -- \\ %s ? $1 {x}", " trailing ", "\n\t\r"]),
        (bytes, [b"", b"\x00\xff", bytes(range(256))]),
        (bool, [True, False]),
        (
            datetime,
            [
                datetime(2024, 2, 29, 23, 59, 59, 999999, tzinfo=UTC),
                datetime(2024, 1, 1, 12, tzinfo=timezone(timedelta(hours=5, minutes=30))),
                datetime(1970, 1, 1, tzinfo=UTC),
            ],
        ),
        (date, [date(2024, 2, 29), date(1, 1, 1), date(9999, 12, 31)]),
        (Decimal, [Decimal("0.10"), Decimal("-12345678901234567890.123456789"), Decimal(0)]),
        (object, [{"a": [1, (2, 3)]}, "text", 2**100, {1, 2}, Decimal("1.5"), date(2024, 1, 1)]),
    )

    @pytest.mark.parametrize(("python", "values"), VALUES, ids=[python.__name__ for python, _ in VALUES])
    def test_a_value_comes_back_equal_and_of_its_type(
        self, store: Store, process: Process, successor: Process, python: type, values: list[Any]
    ) -> None:
        kept = OpaqueMap(store, "kept", key={"n": int}, value={"x": python})
        process.commit(1, put(kept, dict(enumerate(values))))
        process.commit(2, put(kept, dict(enumerate(reversed(values)))))
        held = successor.commit(3, got(kept, list(range(len(values)))))
        assert held == values[::-1]
        assert [type(value) for value in held] == [type(value) for value in values[::-1]]
        before = successor.commit(
            4, lambda context, attempt: kept.begin_commit(context, attempt).multi_get_before(range(len(values)))
        )
        assert before == held
        assert kept.items() == dict(enumerate(held))

    @pytest.mark.parametrize("python", [int, str, bytes, bool, datetime, date])
    def test_a_key_is_found_by_its_value_alone(
        self, store: Store, process: Process, successor: Process, python: type
    ) -> None:
        keys = dict(self.VALUES)[python]
        kept = TransactionalMap(store, "kept", key={"k": python, "n": int}, value={"x": int, "y": str})
        process.commit(1, put(kept, {(key, 0): (i, str(i)) for i, key in enumerate(keys)}))
        held = successor.commit(2, got(kept, [(key, n) for key in keys for n in (0, 1)]))
        assert held == [value for i in range(len(keys)) for value in ((i, str(i)), None)]
        assert kept.items() == {(key, 0): (i, str(i)) for i, key in enumerate(keys)}

    def test_a_column_of_several_may_hold_none(self, store: Store, process: Process) -> None:
        kept = OpaqueMap(store, "kept", key={"n": int}, value={"x": int, "y": object, "z": str})
        process.commit(1, put(kept, {1: (None, None, "a"), 2: (1, [2], None)}))
        process.commit(2, put(kept, {1: (5, None, None)}))
        assert kept.items() == {1: (5, None, None), 2: (1, [2], None)}

    def test_registered_classes_are_stored_and_what_is_got_may_be_changed(
        self, store: Store, successor: Process
    ) -> None:
        registered = Process(registry=Registry([Registration.of(Point)]))
        kept = OpaqueMap(store, "kept", key={"n": int}, value={"x": object}, cache=10)

        def work(context: Any, attempt: Any) -> Any:
            opened = kept.begin_commit(context, attempt)
            opened.get(1)["list"].append(1)
            return opened.get(1)

        registered.commit(1, put(kept, {1: {"list": [], "point": Point(1, 2)}}))
        for txid in (2, 3):
            assert registered.commit(txid, work) == {"list": [], "point": Point(1, 2)}
        with pytest.raises(Exception, match=r"table 'kept' .* key \(1,\) .* cannot read: .*Point', .* not registered"):
            successor.commit(4, got(kept, [1]))
        with pytest.raises(RefusedValue, match=r"'kept' cannot hold the value of key \(2,\): class .*Point is not"):
            successor.commit(4, put(kept, {2: Point(1, 2)}))
        registered.end()

    @pytest.mark.parametrize(
        ("python", "value", "why"),
        [
            (int, True, r"'x' does not take True, which is a bool, expected exactly int"),
            (int, 2**63, r"is not within 64 bits; declare the column as object or Decimal"),
            (int, "1", r"is a str, expected exactly int"),
            (int, None, r"does not take None, which is no int; leave it out, or call"),
            (float, 1, r"is a int, expected exactly float"),
            (float, float("nan"), r"is not finite, which not every database holds"),
            (str, "a\0b", r"holds the character NUL, .* declare the column as bytes"),
            (str, "\ud800", r"is no valid Unicode"),
            (datetime, datetime(2024, 1, 1), r"has no time zone; give it one: datetime.now\(timezone.utc\)"),
            (Decimal, Decimal("NaN"), r"is not finite"),
            (object, None, r"cannot store None as a value; call remove\(\)"),
        ],
    )
    def test_a_value_that_no_column_takes_is_refused_and_nothing_is_stored(
        self, store: Store, process: Process, python: type, value: Any, why: str
    ) -> None:
        kept = TransactionalMap(store, "kept", key={"n": int}, value={"x": python})
        with pytest.raises(RefusedValue, match=rf"table 'kept'.*{why}"):
            process.commit(1, put(kept, {1: value}))
        assert kept.items() == {}

    def test_a_key_of_another_type_or_width_is_refused(self, store: Store, process: Process) -> None:
        with pytest.raises(RefusedValue, match=r"key of table 'words': column 'word' does not take 5, which is a int"):
            process.commit(1, got(words(store), [5]))
        pairs = TransactionalMap(store, "pairs", key={"a": int, "b": int}, value={"x": int, "y": int})
        with pytest.raises(RefusedValue, match=r"'pairs' is given 5, expected a tuple of 2: transactional map"):
            process.commit(1, got(pairs, [5]))
        with pytest.raises(RefusedValue, match=r"'pairs' is given \(1, 2, 3\), expected a tuple of 2"):
            process.commit(1, put(pairs, {(1, 2): (1, 2, 3)}))

    def test_a_refused_value_that_is_caught_does_no_harm(self, store: Store, process: Process) -> None:
        counts = words(store)

        def work(context: Any, attempt: Any) -> None:
            opened = counts.begin_commit(context, attempt)
            opened.increment({"cat": 1})
            with pytest.raises(RefusedValue):
                opened.multi_put({"cat": 9, "dog": "many"})

        process.commit(1, work)
        assert counts.items() == {"cat": 1}
