"""The checker of the chaos runs says no: to each violation that is planted in good evidence."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.chaos.checker import check
from tests.chaos.evidence import Entry, Evidence, Stored, Taken
from tests.chaos.ledger import Token
from tests.chaos.numbers import KEYS, MODULUS, Sums, key_of, sums_by_key, sums_of_range

PARTITIONS, ROWS, TASKS, TRANSACTIONS = 3, 40, 2, 4
ROWS_A_TRANSACTION = ROWS // TRANSACTIONS


def sums_of(numbers: list[int]) -> Sums:
    return Sums(len(numbers), sum(numbers), sum(n * n for n in numbers) % MODULUS)


def good() -> Evidence:
    """Return what a right run leaves: transaction n takes the same rows of each partition, task 0 has even keys."""
    entries, taken = [], []
    state: dict[int, Stored] = {}
    for txid in range(1, TRANSACTIONS + 1):
        first, end = (txid - 1) * ROWS_A_TRANSACTION, txid * ROWS_A_TRANSACTION
        taken += [Taken(txid, partition, first, end, end - first) for partition in range(PARTITIONS)]
        numbers = list(range(first * PARTITIONS, end * PARTITIONS))
        for task in range(TASKS):
            mine = [n for n in numbers if key_of(n) % TASKS == task]
            entries.append(Entry(txid, task, 1 + txid // 3, txid, sums_of(mine)))
            for key in {key_of(n) for n in mine}:
                before = state[key].sums if key in state else Sums()
                state[key] = Stored(task, before.plus(sums_of([n for n in mine if key_of(n) == key])), txid)
    fence = {task: Token(2, TRANSACTIONS, TRANSACTIONS) for task in range(TASKS)}
    source = sums_by_key(ROWS * PARTITIONS)
    return Evidence(PARTITIONS, ROWS, TASKS, source, entries, taken, state, fence, TRANSACTIONS, {"a map": source})


def with_entry(evidence: Evidence, position: int, **changes: Any) -> Evidence:
    entries = list(evidence.entries)
    entries[position] = entries[position]._replace(**changes)
    return replace(evidence, entries=entries)


def with_sums(evidence: Evidence, position: int, more: Sums) -> Evidence:
    return with_entry(evidence, position, sums=evidence.entries[position].sums.plus(more))


def with_state(evidence: Evidence, key: int, more: Sums) -> Evidence:
    stored = evidence.state[key]
    return replace(evidence, state={**evidence.state, key: stored._replace(sums=stored.sums.plus(more))})


def without_tuple(evidence: Evidence, number: int) -> Evidence:
    """Let one tuple be lost on its way to the committers: ledger and state agree, the source does not."""
    less = Sums(-1, -number, -number * number % MODULUS)
    position = next(i for i, one in enumerate(evidence.entries) if one.task == key_of(number) % TASKS)
    return with_state(with_sums(evidence, position, less), key_of(number), less)


def kinds(evidence: Evidence) -> set[str]:
    return {violation.partition(":")[0] for violation in check(evidence)}


def test_good_evidence_passes() -> None:
    assert check(good()) == []


def test_sums_by_key_are_those_of_each_number_and_ranges_those_of_each_row() -> None:
    numbers = range(1_000_000, 1_000_900)
    for key, sums in sums_by_key(900).items():
        assert sums == sums_of([n for n in range(900) if key_of(n) == key])
    assert len(sums_by_key(100_000)) == KEYS
    rows = list(range(3 * 10**8, 3 * 10**8 + 50))
    assert sums_of_range(rows[0], rows[-1] + 1, 2, 5) == sums_of([n * 5 + 2 for n in rows])
    assert sums_of_range(7, 7, 0, 1) == Sums()
    assert len({key_of(n) for n in numbers}) == KEYS


def test_a_missing_tuple_is_found() -> None:
    violations = check(without_tuple(good(), 33))
    assert any(v.startswith(f"missing: key {key_of(33)} counts") for v in violations)
    assert any(v.startswith("wrong sum: transaction 1 has") for v in violations)


def test_a_missing_tuple_is_found_where_another_one_counts_twice_in_its_place() -> None:
    """The count is right, also that of the key."""
    other = next(n for n in range(34, ROWS * PARTITIONS) if key_of(n) == key_of(33))
    lost = without_tuple(good(), 33)
    found = with_state(lost, key_of(33), Sums(1, other, other * other))
    assert f"wrong sum: key {key_of(33)} has" in "\n".join(check(found))


def test_a_tuple_that_counts_twice_in_the_state_is_found() -> None:
    violations = check(with_state(good(), key_of(33), Sums(1, 33, 33 * 33)))
    assert any(v.startswith(f"double: key {key_of(33)} counts") for v in violations)
    assert any(v.startswith(f"wrong sum: task {key_of(33) % TASKS}: its keys hold") for v in violations)


def test_a_transaction_that_was_applied_twice_is_found() -> None:
    evidence = good()
    doubled = replace(evidence, entries=[*evidence.entries[:4], evidence.entries[3], *evidence.entries[4:]])
    assert "double: task 1 has applied transaction 2 2 times" in check(doubled)


def test_a_transaction_that_a_task_never_applied_is_found() -> None:
    evidence = good()
    lost = replace(evidence, entries=[one for one in evidence.entries if (one.txid, one.task) != (3, 0)])
    assert "missing: task 0 has not applied transaction 3" in check(lost)


@pytest.mark.parametrize("more", [Sums(0, 1, 0), Sums(0, 0, 1), Sums(1, 0, 0)])
def test_a_wrong_sum_in_ledger_or_state_is_found(more: Sums) -> None:
    assert "wrong sum: transaction 2 has" in "\n".join(check(with_sums(good(), 2, more)))
    assert check(with_state(good(), key_of(5), more)) != []


@pytest.mark.parametrize(
    ("more", "kind"),
    [(Sums(-1), "missing"), (Sums(1), "double"), (Sums(0, 1), "wrong sum"), (Sums(0, 0, 1), "wrong sum")],
)
def test_what_a_map_of_a_store_holds_wrongly_is_found(more: Sums, kind: str) -> None:
    evidence = good()
    key = key_of(5)
    wrong = {**evidence.source, key: evidence.source[key].plus(more)}
    (told,) = check(replace(evidence, stores={"a map": wrong, "another": evidence.source}))
    assert told.startswith(f"{kind}: key {key} of a map ")
    (lost,) = check(replace(evidence, stores={"a map": {k: v for k, v in evidence.source.items() if k != key}}))
    assert lost.startswith(f"missing: key {key} of a map counts 0 tuples")


def test_a_txid_out_of_order_is_found() -> None:
    evidence = good()
    first, second, third, *rest = evidence.entries
    swapped = replace(evidence, entries=[first, third, second, *rest])
    assert "out of order: task 1 applied transaction 1 after 2" in check(swapped)


def test_a_commit_of_an_older_epoch_is_found() -> None:
    assert "out of order: epoch 1 applied transaction 4 after epoch 2" in check(with_entry(good(), 6, epoch=1))


def test_rows_that_were_left_out_or_taken_twice_are_found() -> None:
    evidence = good()
    for change, kind in ((1, "missing"), (-1, "double")):
        taken = list(evidence.taken)
        position = next(i for i, one in enumerate(taken) if (one.txid, one.partition) == (2, 1))
        taken[position] = taken[position]._replace(first=taken[position].first + change, count=ROWS_A_TRANSACTION)
        assert {kind, "wrong rows", "wrong sum"} <= kinds(replace(evidence, taken=taken))


def test_an_end_of_the_source_that_was_not_reached_is_found() -> None:
    assert "missing: partition 0 has 41 rows, the last row taken is 39" in check(replace(good(), rows=41))
    assert "stray: partition 0 has 39 rows, the last row taken is 39" in check(replace(good(), rows=39))
    more = sums_by_key(ROWS * PARTITIONS + 1)
    assert kinds(replace(good(), source=more)) == {"missing"}


def test_a_record_in_zookeeper_or_a_fence_that_differs_from_the_ledger_is_found() -> None:
    evidence = good()
    assert check(replace(evidence, committed=3)) == [
        "not the end: ZooKeeper holds 3 as committed, the ledger ends at 4"
    ]
    late = {**evidence.fence, 1: Token(2, 3, 3)}
    assert kinds(replace(evidence, fence=late)) == {"not the end"}


def test_what_should_not_be_there_at_all_is_found() -> None:
    evidence = good()
    assert kinds(replace(evidence, taken=[*evidence.taken, Taken(1, 9, 0, 1, 1)])) >= {"stray"}
    assert "stray" in kinds(replace(evidence, entries=[*evidence.entries, Entry(4, 7, 2, 4, Sums())]))
    late = {**evidence.state, 0: evidence.state[0]._replace(txid=5)}
    assert kinds(replace(evidence, state=late)) == {"stray"}


def test_a_process_that_was_left_is_a_violation() -> None:
    assert check(replace(good(), left=["123 java"])) == ["left hanging: 123 java"]


def test_many_violations_of_one_kind_are_told_in_short() -> None:
    violations = check(replace(good(), entries=[]))
    assert violations[-1].endswith(" more")
    assert len(violations) < 30
