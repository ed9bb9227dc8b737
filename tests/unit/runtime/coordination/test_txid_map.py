"""A map of consecutive txids: as a dict of them, and no copy changes another."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stormline.runtime.coordination.txid_map import CHUNK, TxidMap


@given(st.integers(1, 3 * CHUNK), st.lists(st.sampled_from(["more", "change", "commit"]), max_size=60), st.randoms())
def test_it_holds_what_a_dict_would_and_earlier_copies_stay(first: int, steps: list[str], random: object) -> None:
    of: dict[int, str] = {}
    here: TxidMap[str] = TxidMap(first)
    before: list[tuple[TxidMap[str], dict[int, str]]] = []
    committed = first - 1
    for n, step in enumerate(steps):
        before.append((here, dict(of)))
        count = random.randint(1, 2 * CHUNK)  # type: ignore[attr-defined]
        if step == "more":
            changed = {committed + len(of) + 1 + i: f"{n}: new {i}" for i in range(count)}
        elif step == "change":
            changed = dict.fromkeys(list(of)[-count:], f"{n}: changed")
        else:
            changed = {}
            for txid in list(of)[:count]:
                del of[txid]
                here = here.without_first()
                committed = txid
        of.update(changed)
        here = here.updated(changed)
    for copy, expected in [*before, (here, of)]:
        assert dict(copy) == expected
        assert list(copy) == list(expected)
        assert len(copy) == len(expected)
        assert copy == expected


def test_what_is_not_there_is_not_found_and_no_gap_can_come_to_be() -> None:
    here = TxidMap[str](5).updated({5: "a", 6: "b"})
    for txid in (0, 4, 7, 5 - CHUNK):
        with pytest.raises(KeyError):
            here[txid]
        assert here.get(txid) is None
    with pytest.raises(AssertionError):
        here.updated({8: "c"})
    assert dict(here.without_first()) == {6: "b"}
    with pytest.raises(KeyError):
        here.without_first()[5]


def test_an_empty_one_goes_on_where_it_was_emptied() -> None:
    here = TxidMap[str](5)
    assert (here.first, here.following) == (5, 5)
    here = here.updated({5: "a"}).without_first()
    assert (here.first, here.following, len(here)) == (6, 6, 0)
    with pytest.raises(AssertionError):
        here.updated({5: "a"})


def test_a_copy_shares_the_chunks_that_it_does_not_change() -> None:
    here = TxidMap[int](1).updated({txid: txid for txid in range(1, 100 * CHUNK)})
    there = here.updated({5: 0})
    shared = [number for number in here._chunks if here._chunks[number] is there._chunks[number]]
    assert len(shared) == len(here._chunks) - 1
