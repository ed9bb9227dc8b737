from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

import pytest

from stormline.runtime.errors import NewerState, StateCorrupt
from stormline.runtime.state.state_store import VALUE_BYTES_MAX
from stormline.runtime.state.stored_value import seal, unseal
from stormline.topology.serialization import PLAIN


class Malicious:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.path),)


def test_a_value_comes_back() -> None:
    assert unseal(seal({"a": (1, b"x")}, PLAIN), PLAIN, "/t/a") == {"a": (1, b"x")}


def test_every_flipped_bit_and_every_cut_is_noticed() -> None:
    data = seal({"position": 12345}, PLAIN)
    for i in range(len(data)):
        for bit in range(8):
            flipped = data[:i] + bytes([data[i] ^ 1 << bit]) + data[i + 1 :]
            with pytest.raises(StateCorrupt):
                unseal(flipped, PLAIN, "/t/a")
        with pytest.raises(StateCorrupt):
            unseal(data[:i], PLAIN, "/t/a")
    with pytest.raises(StateCorrupt, match="/t/a holds 30 bytes with a wrong checksum: changed or cut"):
        unseal(data + b"\0" * (30 - len(data)), PLAIN, "/t/a")


def test_what_is_larger_than_what_may_be_stored_is_refused_unread() -> None:
    largest = "x" * (VALUE_BYTES_MAX - len(seal("x" * 100_000, PLAIN)) + 100_000)
    data = seal(largest, PLAIN)
    assert len(data) == VALUE_BYTES_MAX
    assert unseal(data, PLAIN, "/t/a") == largest
    with pytest.raises(StateCorrupt, match=r"^/t/a holds 1,000,001 bytes, more than the 1,000,000 that Stormline writ"):
        unseal(seal(largest + "x", PLAIN), PLAIN, "/t/a")


def test_foreign_bytes_are_refused_with_path_and_remedy() -> None:
    with pytest.raises(StateCorrupt, match=r"/t/a holds 5 bytes that Stormline did not write: b'hello'.*another id"):
        unseal(b"hello", PLAIN, "/t/a")


def test_a_pickle_is_refused_and_not_run(tmp_path: Path) -> None:
    with pytest.raises(StateCorrupt, match="did not write"):
        unseal(pickle.dumps(Malicious(tmp_path / "run")), PLAIN, "/t/a")
    assert not (tmp_path / "run").exists()


def test_a_value_of_another_format_is_refused() -> None:
    class Other:
        def pack(self, value: Any) -> bytes:
            return b"\xc1"

    with pytest.raises(StateCorrupt, match="/t/a holds 1 bytes that Stormline did not write"):
        unseal(seal(0, Other()), PLAIN, "/t/a")  # type: ignore[arg-type]


def test_a_newer_schema_is_refused() -> None:
    with pytest.raises(NewerState, match="/t/a has schema version 2, this Stormline reads up to 1; run the topology"):
        unseal(seal(0, PLAIN, version=2), PLAIN, "/t/a")
