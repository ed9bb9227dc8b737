"""The names of two-phase transactions: none is shared, each fits the narrowest resource, each can be read back."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from stormline.topology.transaction_label import TransactionLabel, label_scope

LABEL = TransactionLabel(label_scope("orders", "sink"), 17, 2, 1_000_000_005, 4, 0x1F)


def test_a_label_says_whose_it_is_and_can_be_read_back() -> None:
    """Operators read it in pg_prepared_xacts, the sweep reads it in a list."""
    assert re.fullmatch(r"orders_[0-9a-f]{8}-sink_[0-9a-f]{8}-17-2-1000000005-4-000000000000001f", LABEL.text)
    assert TransactionLabel.read(LABEL.text) == LABEL
    assert str(LABEL) == LABEL.text == f"{LABEL.scope}-{LABEL.number}"


@pytest.mark.parametrize("part", ["txid", "epoch", "attempt", "task", "execution"])
def test_labels_differ_by_each_of_their_parts(part: str) -> None:
    """R1: also two executions of one Spark task have two names."""
    assert replace(LABEL, **{part: getattr(LABEL, part) + 1}).text != LABEL.text


def test_the_longest_label_fits_the_narrowest_resources() -> None:
    """StarRocks takes 128 of [-\\w], XA twice 64 bytes, PostgreSQL 199 bytes."""
    scope = label_scope("t" * 128, "ä-" * 64)
    longest = TransactionLabel(scope, 10**12 - 1, 10**9 - 1, 10**16 - 1, 10**6 - 1, 2**64 - 1)
    assert re.fullmatch(r"[-A-Za-z0-9_]{1,128}", longest.text)
    assert len(longest.scope) <= 64
    assert len(longest.number) <= 64
    assert TransactionLabel.read(longest.text) == longest


def test_names_that_are_shortened_alike_have_other_scopes() -> None:
    """The checksum of the whole name tells them apart."""
    assert label_scope("a.b", "c") != label_scope("a-b", "c")
    assert label_scope("x" * 40, "c") != label_scope("x" * 41, "c")
    assert label_scope("a", "b") not in (label_scope("a2", "b"), label_scope("a", "b2"))


@pytest.mark.parametrize("text", ["", "someone's", LABEL.text + "-1", LABEL.text[:-1], f"x{LABEL.text}".upper()])
def test_what_is_none_of_ours_is_not_read(text: str) -> None:
    """It is left alone, whoever's it is."""
    assert TransactionLabel.read(text) is None
