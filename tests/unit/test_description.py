from __future__ import annotations

from typing import Any

import pytest

from stormline.runtime.description import differences


@pytest.mark.parametrize(
    ("stored", "declared", "lines"),
    [
        ({"a": 1}, {"a": 1}, []),
        ({"a": 1, "b": [2]}, {"b": [2], "a": 1}, []),
        ({"a": 1}, {"a": True}, ["a 1 → True"]),
        ({"version": "1"}, {"version": "2"}, ["version '1' → '2'"]),
        ({"bolts": {"count": {"parallelism": 2}}}, {"bolts": {"count": {"parallelism": 3}}},
         ["bolt 'count': parallelism 2 → 3"]),
        ({"bolts": {}}, {"bolts": {"x": {"parallelism": 3}}}, ["bolt 'x' added"]),
        ({"bolts": {"x": {"parallelism": 3}}}, {"bolts": {}}, ["bolt 'x' removed"]),
        ({"bolts": {"x": {"inputs": {"words": ["shuffle"]}}}}, {"bolts": {"x": {"inputs": {"words": ["all"]}}}},
         ["bolt 'x': inputs.words ['shuffle'] → ['all']"]),
        ({"spout": "a"}, {"spout": {"id": "a"}}, ["spout 'a' → {'id': 'a'}"]),
        (1, 2, ["the description 1 → 2"]),
    ],
)  # fmt: skip
def test_differences_read_as_text(stored: Any, declared: Any, lines: list[str]) -> None:
    assert differences(stored, declared) == lines
