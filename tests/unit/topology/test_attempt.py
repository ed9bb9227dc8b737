"""TransactionAttempt: a small value."""

import dataclasses
import pickle

import pytest

from stormline import TransactionAttempt


def test_attempts_are_equal_on_both_ids_and_hash_alike() -> None:
    assert TransactionAttempt(1, 2) == TransactionAttempt(1, 2)
    assert TransactionAttempt(1, 2) != TransactionAttempt(1, 3)
    assert TransactionAttempt(1, 2) != TransactionAttempt(2, 2)
    assert len({TransactionAttempt(1, 2), TransactionAttempt(1, 2), TransactionAttempt(2, 1)}) == 2


def test_an_attempt_prints_as_txid_colon_attempt() -> None:
    assert str(TransactionAttempt(12, 3)) == "12:3"
    assert repr(TransactionAttempt(12, 3)) == "TransactionAttempt(transaction_id=12, attempt_id=3)"


def test_an_attempt_cannot_be_changed() -> None:
    attempt = TransactionAttempt(1, 1)
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'attempt_id'"):
        attempt.attempt_id = 2  # type: ignore[misc]
    assert not hasattr(attempt, "__dict__")


def test_an_attempt_answers_to_storms_getters() -> None:
    attempt = TransactionAttempt(12, 3)
    assert (attempt.get_transaction_id(), attempt.get_attempt_id()) == (12, 3)


def test_attempts_sort_by_txid_first() -> None:
    first, second, third = TransactionAttempt(1, 9), TransactionAttempt(2, 1), TransactionAttempt(2, 10)
    assert sorted([third, first, second]) == [first, second, third]


def test_an_attempt_can_be_pickled() -> None:
    assert pickle.loads(pickle.dumps(TransactionAttempt(1, 2))) == TransactionAttempt(1, 2)
