"""Seeded mutations of bytes, and of values made of lists and dicts."""

from __future__ import annotations

import copy
import pickle
import struct
from collections.abc import Sequence
from random import Random
from typing import Any


class PickleExecuted(BaseException):
    """A pickle that came in from outside was run: nothing may catch this."""


def executed() -> None:
    """Be called by each pickle below, if anything ever unpickles it."""
    raise PickleExecuted


class _Evil:
    def __reduce__(self) -> Any:
        return executed, ()


PICKLES = [pickle.dumps(_Evil(), protocol) for protocol in range(pickle.HIGHEST_PROTOCOL + 1)]

_HUGE = [0x7F, 0xFF, 0x7FFF, 0xFFFF, 0x10000, 0x7FFFFFFF, 0xFFFFFFFF, 1 << 24, 1 << 20]
_HEADS = b"\xdc\xdd\xde\xdf\xd9\xda\xdb\xc4\xc5\xc6\xc7\xc8\xc9\xd4\xd5\xd6\xd7\xd8\xce\xcf\xd3\xcb\xc1"


def mutated(rng: Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """Return `data` with one to four things wrong in it."""
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        data = _MUTATIONS[rng.randrange(len(_MUTATIONS))](rng, data, others)
    return data


def _flip(rng: Random, data: bytes, others: Sequence[bytes]) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 8)) if data else 0):
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def _byte(rng: Random, data: bytes, others: Sequence[bytes]) -> bytes:
    at = rng.randrange(len(data) + 1)
    return data[:at] + bytes([rng.randrange(256)]) + data[at + 1 :]


def _truncate(rng: Random, data: bytes, others: Sequence[bytes]) -> bytes:
    return data[: rng.randrange(len(data) + 1)]


def _cut_out(rng: Random, data: bytes, others: Sequence[bytes]) -> bytes:
    start, end = sorted(rng.randrange(len(data) + 1) for _ in range(2))
    return data[:start] + data[end:]


def _double(rng: Random, data: bytes, others: Sequence[bytes]) -> bytes:
    start, end = sorted(rng.randrange(len(data) + 1) for _ in range(2))
    return data[:end] + data[start:end] * rng.choice((1, 2, 20)) + data[end:]


def _splice(rng: Random, data: bytes, others: Sequence[bytes]) -> bytes:
    other = rng.choice(others)
    at, start = rng.randrange(len(data) + 1), rng.randrange(len(other) + 1)
    return data[:at] + other[start:] + (data[at:] if rng.random() < 0.5 else b"")


def _length(rng: Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """Claim a huge count: behind a type byte of msgpack, or wherever, in either byte order."""
    at = rng.randrange(len(data) + 1)
    form = rng.choice((">I", "<I", ">H", "<i", ">Q", "<q"))
    number = struct.pack(form, rng.choice(_HUGE) % (1 << (8 * struct.calcsize(form) - 1)))
    head = bytes([rng.choice(_HEADS)]) if rng.random() < 0.5 else b""
    return data[:at] + head + number + data[at + len(head) + len(number) :]


def _nest(rng: Random, data: bytes, others: Sequence[bytes]) -> bytes:
    at = rng.randrange(len(data) + 1)
    level = rng.choice((b"\x91", b"\x81\xa1a", b"\xdd\0\0\0\1", b"[", b'{"a":', b'"', b"("))
    return data[:at] + level * rng.choice((2, 70, 600, 3000)) + data[at:]


def _extension(rng: Random, data: bytes, others: Sequence[bytes]) -> bytes:
    at = rng.randrange(len(data) + 1)
    payload = rng.choice((b"\x90", b"\xc0", b"\x2a", data[:40], rng.choice(PICKLES)))[:255]
    return data[:at] + bytes([0xC7, len(payload), rng.choice((*range(15), 64, 127, 255))]) + payload + data[at:]


def _pickle(rng: Random, data: bytes, others: Sequence[bytes]) -> bytes:
    attack = rng.choice(PICKLES)
    if rng.random() < 0.3:
        return attack
    at = rng.randrange(len(data) + 1)
    return data[:at] + bytes([0xC4, len(attack)]) + attack + data[at:]


def _noise(rng: Random, data: bytes, others: Sequence[bytes]) -> bytes:
    at = rng.randrange(len(data) + 1)
    return data[:at] + rng.randbytes(rng.choice((1, 4, 40))) + data[at:]


_MUTATIONS = (
    _flip, _flip, _byte, _byte, _truncate, _cut_out, _double, _splice, _length, _length,
    _nest, _extension, _pickle, _noise,
)  # fmt: skip


def _deep(levels: int) -> Any:
    value: Any = None
    for _ in range(levels):
        value = [value]
    return value


STRANGE: list[Any] = [
    None, True, False, 0, 1, -1, 2**31, 2**63, -(2**63), 2**64, 2**200, 0.5, -0.0, 1e308, float("inf"), float("nan"),
    "", "\0", "a\nb", "../../etc/passwd", "/dev/zero", "/", "\u202e", "\udc80", "x" * 5000,
    "env:NOBODY", "file:/dev/zero", "1", "[", b"", b"\xff", b"x" * 14, PICKLES[-1], [], [[]], {}, {"a": 1},
    (), (1, 2), _deep(50), [None] * 9, [0] * 300,
]  # fmt: skip


def restructured(rng: Random, value: Any) -> Any:
    """Return a copy of `value` with one to three things in it replaced, dropped, doubled or exchanged."""
    value = copy.deepcopy(value)
    for _ in range(rng.choice((1, 1, 2, 3))):
        value = _restructured(rng, value)
    return value


def _restructured(rng: Random, value: Any) -> Any:
    if not isinstance(value, (dict, list)) or not value or rng.random() < 0.1:
        return copy.deepcopy(rng.choice(STRANGE))
    keys: list[Any] = list(value) if isinstance(value, dict) else list(range(len(value)))
    key = rng.choice(keys)
    way = rng.random()
    if way < 0.6:
        value[key] = _restructured(rng, value[key])
    elif way < 0.7:
        del value[key]
    elif way < 0.8:
        value[key] = copy.deepcopy(value[rng.choice(keys)])
    elif isinstance(value, dict):
        value[rng.choice(("x", "", 3, None, "__class__"))] = copy.deepcopy(rng.choice(STRANGE))
    else:
        value.insert(key, copy.deepcopy(rng.choice(STRANGE)))
    return value
