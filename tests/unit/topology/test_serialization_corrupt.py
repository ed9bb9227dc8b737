"""Bytes that Stormline did not write give CorruptData: no other exception, no crash, no code run, no memory filled."""

from __future__ import annotations

import os
import pickle
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stormline.topology.errors import CorruptData, SerializationError
from stormline.topology.serialization import PLAIN
from tests.kits.serialized import EXAMPLES, REGISTRY, VALUES, identity

CODES = [*range(1, 14), 64]


def ext(code: int, data: Any) -> bytes:
    packed: bytes = msgpack.packb(msgpack.ExtType(code, data if isinstance(data, bytes) else msgpack.packb(data)))
    return packed


def read(data: bytes) -> None:
    """Read bytes: they give a value that can be written, or CorruptData."""
    try:
        value = REGISTRY.unpack(data)
    except CorruptData:
        return
    assert identity(REGISTRY.unpack(REGISTRY.pack(value))) == identity(value)


@settings(max_examples=500, deadline=None)
@given(st.binary(max_size=200))
def test_random_bytes(data: bytes) -> None:
    read(data)


@settings(max_examples=300, deadline=None)
@given(st.sampled_from([*CODES, 0, 14, 63, 65, 127]), st.binary(max_size=60))
def test_random_bytes_in_an_extension(code: int, data: bytes) -> None:
    read(ext(code, data))


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(CODES), VALUES)
def test_another_value_in_an_extension(code: int, value: Any) -> None:
    read(ext(code, REGISTRY.pack(value)))
    read(ext(64, REGISTRY.pack(["tests.kits.serialized.Derived", value])))


@settings(max_examples=300, deadline=None)
@given(VALUES, st.data())
def test_truncated_flipped_and_lengthened_bytes(value: Any, data: st.DataObject) -> None:
    packed = REGISTRY.pack(value)
    at = data.draw(st.integers(0, len(packed) - 1))
    with pytest.raises(CorruptData):
        REGISTRY.unpack(packed[:at])
    with pytest.raises(CorruptData, match="bytes that Stormline did not write"):
        REGISTRY.unpack(packed + b"\x00")
    read(packed[:at] + bytes([packed[at] ^ data.draw(st.integers(1, 255))]) + packed[at + 1 :])
    read(packed[:at] + data.draw(st.binary(max_size=9)) + packed[at:])


def test_every_flipped_bit_and_byte_of_the_examples() -> None:
    rng = random.Random(1)
    for value in EXAMPLES:
        packed = REGISTRY.pack(value)
        for at in range(min(len(packed), 200)):
            for wrong in {*(1 << bit for bit in range(8)), 255, rng.randrange(1, 256)}:
                read(packed[:at] + bytes([packed[at] ^ wrong]) + packed[at + 1 :])


WRONG: list[Any] = [
    None,
    True,
    -1,
    2**40,
    1.5,
    "x",
    b"x",
    [],
    [1],
    ["x"] * 9,
    {},
    {"x": 1},
    [[]],
    [None] * 9,
    [2**70] * 9,
]


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("data", WRONG, ids=repr)
def test_an_extension_takes_only_what_its_type_is_written_as(code: int, data: Any) -> None:
    read(ext(code, PLAIN.pack(data)))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "0 bytes that Stormline did not write (or that were cut): "),
        (b"\xc1", "1 bytes that Stormline did not write (or that were cut): "),
        (b"\x93\x01", "2 bytes that Stormline did not write (or that were cut): "),
        (ext(0, 1), "unknown msgpack extension type 0"),
        (ext(99, 1), "unknown msgpack extension type 99"),
        (ext(1, "abc"), "expected list, got 'abc'"),
        (ext(9, [1] * 16), "expected bytes, got [1, 1, 1, 1, 1, 1, ...]"),
        (ext(10, 3_000_000_000), "expected bytes, got 3000000000"),
        (ext(13, [1, "2"]), "expected a list of 2 whole numbers, got [1, '2']"),
        (ext(7, [1, 2]), "expected a list of 3 whole numbers, got [1, 2]"),
        (ext(64, ["os.system", "true"]), "an object of class 'os.system', which is not registered in this topology"),
        (ext(64, 5), "expected list, got 5"),
    ],
)
def test_the_message_says_what_was_wrong(data: bytes, message: str) -> None:
    with pytest.raises(CorruptData) as caught:
        PLAIN.unpack(data)
    assert str(caught.value).startswith(message)
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize(
    "key", ["Europe", "Nowhere/At_All", "../../etc/passwd", "/etc/passwd", "x" * 5000, "", "tzdata.zi", "\0", "\udc80"]
)
def test_a_time_zone_that_is_none_is_corrupt_and_opens_no_other_file(key: str) -> None:
    packed = msgpack.packb([2026, 1, 1, 0, 0, 0, 0, 0, key], unicode_errors="surrogatepass")
    with pytest.raises(CorruptData, match=r"^time zone '.*' is not known on this machine; install the package tzdata$"):
        PLAIN.unpack(ext(5, packed))


def test_extensions_nested_too_deeply_are_corrupt() -> None:
    data = msgpack.packb([1])
    for _ in range(65):
        data = ext(1, data if len(data) < 10 else msgpack.packb([msgpack.unpackb(data)]))
    with pytest.raises(CorruptData, match=r"^nested deeper than 64 levels$"):
        PLAIN.unpack(data)


@pytest.mark.parametrize("level", [b"\x91", b"\x81\xc0", b"\xdc\0\1", b"\xdd\0\0\0\1", b"\x92\xc0"])
def test_lists_and_dicts_nested_too_deeply_are_corrupt(level: bytes) -> None:
    with pytest.raises(CorruptData, match="bytes that Stormline did not write"):
        PLAIN.unpack(level * 1025 + b"\xc0")
    PLAIN.pack(PLAIN.unpack(level * 1000 + b"\xc0"))
    for code in {*CODES, 0, 99} - {4}:  # 4 takes any bytes: a whole number
        tall = ext(code, level * 1025 + b"\xc0")
        for data in (tall, ext(1, b"\x91" + tall), ext(64, b"\x92\xa1x" + tall)):
            with pytest.raises(CorruptData):
                REGISTRY.unpack(data)


def test_what_is_read_deeper_than_it_can_be_written_is_an_error_when_it_is_written() -> None:
    value = PLAIN.unpack(ext(1, b"\x91" * 1000 + b"\xc0"))
    with pytest.raises(SerializationError, match="nested deeper than 64 levels"):
        PLAIN.pack(value)


class Evil:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_pickle_is_never_executed(tmp_path: Path, protocol: int) -> None:
    made = tmp_path / "made"
    attack = pickle.dumps(Evil(made), protocol)
    with pytest.raises(CorruptData):
        REGISTRY.unpack(attack)
    for code in (*CODES, 0, 99):
        read(ext(code, attack))
        read(ext(code, msgpack.packb(attack)))
        read(ext(64, msgpack.packb(["tests.kits.serialized.Derived", {"x": attack, "y": 1}])))
    read(msgpack.packb({"x": attack}))
    assert not made.exists()
    pickle.loads(attack)
    assert made.exists()  # the attack was real


BOMBS = """
length = 1 << 20
head = length.to_bytes(4, "big")
nil = b"\\xc0"
bombs = {
    "an array of a million nils": b"\\xdd" + head + nil * length,
    "an array that says it is long": b"\\xdd\\x7f\\xff\\xff\\xff" + nil * 9,
    "arrays in arrays that say they are long": (b"\\xdd" + head) * 200_000 + nil * 99_999,
    "few of them and much data": (b"\\xdd" + head) * 500 + nil * length,
    "maps in maps": (b"\\xdf" + (1 << 19).to_bytes(4, "big") + nil) * 150_000 + nil * length,
    "text that says it is long": b"\\xdb\\x7f\\xff\\xff\\xff" + b"x" * 99,
    "bytes that say they are long": b"\\xc6\\xff\\xff\\xff\\xff",
    "an extension that says it is long": b"\\xc9\\xff\\xff\\xff\\xff\\x01",
    "a million levels": b"\\x91" * length,
    "a bytearray of a number": msgpack.packb(msgpack.ExtType(10, msgpack.packb(3 << 30))),
}
"""


@pytest.mark.skipif(sys.platform != "linux", reason="measures the memory of a process in kilobytes")
def test_no_bytes_fill_the_memory() -> None:
    code = f"""
import resource, msgpack
from stormline.topology.serialization import PLAIN
from stormline.topology.errors import CorruptData, SerializationError
{BOMBS}
nested = msgpack.packb([1])
for _ in range(60):
    nested = msgpack.packb([msgpack.ExtType(1, nested), b"x" * 15_000])
bombs["extensions in extensions"] = nested[:-1]
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for name, data in bombs.items():
    try:
        PLAIN.unpack(data)
        assert name == "an array of a million nils", name
    except CorruptData:
        pass
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 200_000, (name, grown)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
