from __future__ import annotations

from typing import Any

import pytest
from redis.connection import PythonRespSerializer

from stormline.state import MemoryStore, NonTransactionalMap, OpaqueMap, StateMap, TransactionalMap
from stormline.state.redis_packing import ARGUMENTS_MIN, PIECE_BYTES, ManyArguments, packed_rows
from stormline.topology.serialization import PLAIN


def encode(argument: Any) -> bytes:
    return argument if isinstance(argument, bytes) else str(argument).encode()


@pytest.mark.parametrize("count", [1, ARGUMENTS_MIN, 3 * ARGUMENTS_MIN])
def test_many_arguments_go_over_the_wire_as_redis_py_sends_them(count: int) -> None:
    arguments = ["HSET", "words", *[part for i in range(count) for part in (f"wörd\r\n{i}", b"\x00$" * i, i)]]
    theirs = PythonRespSerializer(PIECE_BYTES, encode).pack(*arguments)
    assert b"".join(ManyArguments(PIECE_BYTES, encode).pack(*arguments)) == b"".join(theirs)


@pytest.mark.parametrize(
    ("kind", "more", "rest"),
    [
        (NonTransactionalMap, [], [None, None, None]),
        (TransactionalMap, [[3]], [3, None, None]),
        (OpaqueMap, [[3], [1], ["x"], [2]], [3, [1, "x"], 2]),
        (OpaqueMap, [[3], [None], [None], [None]], [3, None, None]),
    ],
)
def test_a_row_is_the_bytes_of_our_own_serialization(kind: type[StateMap], more: list[Any], rest: list[Any]) -> None:
    table = kind(MemoryStore(), "words", key={"word": str}, value={"n": int, "s": str}).spec
    assert packed_rows(table, [["cat"], [-(2**63) + 1], ["ö"], *more]) == [PLAIN.pack([[-(2**63) + 1, "ö"], *rest])]
