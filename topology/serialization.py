"""msgpack with registered types: what kryo was to Storm.

The value and its type survive the round trip. Bytes are never unpickled (law 8, no unpickling);
what is not ours is `CorruptData`.
"""

from __future__ import annotations

import reprlib
from collections.abc import Iterable
from itertools import chain
from typing import Any

from stormline.topology.built_in_types import BUILT_IN, BUILT_IN_DECODERS, Encoder, only
from stormline.topology.errors import (
    CorruptData,
    InvalidRegistration,
    SerializationError,
    UnregisteredClass,
    shown,
)
from stormline.topology.packing import msgpack
from stormline.topology.plain_values import plain_remedy
from stormline.topology.process_bound import ProcessBound
from stormline.topology.registration import Registration

_REGISTERED = 64
DEPTH_MAX = 64
"""How many extensions (a tuple, a set, an object of a class) stand in each other, written as well as read.

Lists and dicts are counted anew in each extension, and outside of all: msgpack 1.2 writes and reads up to 1,024. In an
extension no more than these 64 are written; to count them when reading would take longer than reading does.
"""

_KEPT_BYTES_MAX = 1 << 16
"""A packer keeps the memory of its largest value: one that has packed more is made anew."""

_BUFFERS = frozenset({bytearray, memoryview})
_NESTING = frozenset({list, dict})
_LISTS = frozenset({list})
_SETS = frozenset({set, frozenset})
_LOOKED_FOR = _BUFFERS | _NESTING


def _too_deep() -> SerializationError:
    return SerializationError(f"a value is nested deeper than {DEPTH_MAX} levels, or holds itself")


def _holds_buffers(value: Any, levels_max: int | None) -> bool:
    """Return whether a bytearray or memoryview stands in the lists and dicts of `value`: msgpack would make it bytes.

    Raises:
        SerializationError: there are more than `levels_max` lists and dicts inside each other.
    """
    if type(value) is list and (
        _LOOKED_FOR.isdisjoint(map(type, value))
        or (_LISTS.issuperset(map(type, value)) and _LOOKED_FOR.isdisjoint(map(type, chain.from_iterable(value))))
    ):
        return False  # what most values are: rows of a block, and one row
    found, levels, level = False, 0, [value]
    while not _LOOKED_FOR.isdisjoint(map(type, level)):
        if levels_max is not None and levels > levels_max:
            raise _too_deep()
        levels += 1
        found = found or not _BUFFERS.isdisjoint(map(type, level))
        # Each object once a level: lists that hold a list twice, over and over, do not grow.
        inner = {id(item): item for item in level if type(item) in _NESTING}.values()
        lists = [item if type(item) is list else [*item, *item.values()] for item in inner]
        if _LOOKED_FOR.isdisjoint(map(type, chain.from_iterable(lists))):
            return found
        level = list(chain.from_iterable(lists))
    return found


def _with_buffers(value: Any) -> Any:
    kind = type(value)
    if kind is bytearray:
        return msgpack.ExtType(BUILT_IN[bytearray][0], _packb(bytes(value)))
    if kind is memoryview:
        raise UnregisteredClass("a memoryview cannot be written; make it bytes")
    if kind is list:
        return [_with_buffers(item) for item in value]
    if kind is dict:
        return {_with_buffers(key): _with_buffers(item) for key, item in value.items()}
    return value


def _packer(default: Encoder | None) -> Any:
    return msgpack.Packer(default=default, strict_types=True, use_bin_type=True, unicode_errors="surrogatepass")


def _packb(value: Any, default: Encoder | None = None) -> bytes:
    packed: bytes = _packer(default).pack(value)
    return packed


def _remedy(kind: type) -> str:
    bound = ProcessBound.of(kind)
    if bound is not None:
        return f"it belongs to this process and cannot travel: {bound.instead}"
    plain = plain_remedy(kind)
    if plain is not None:
        return f"{plain}; or config.register_serialization({kind.__qualname__}, serializer)"
    return f"call config.register_serialization({kind.__qualname__})"


class Registry:
    """The wire format of one topology: msgpack, the built-in types, and the registered classes.

    Raises:
        InvalidRegistration: two different classes, or serializers, claim one name.
    """

    def __init__(self, registrations: Iterable[Registration] = ()) -> None:
        self._by_name: dict[str, Registration] = {}
        self._by_class: dict[type, Registration] = {}
        for registration in registrations:
            other = self._by_name.setdefault(registration.name, registration)
            if other.cls is not registration.cls:
                raise InvalidRegistration(
                    f"two different classes are registered as {registration.name!r}; rename one, or define it once"
                )
            if type(other.serializer) is not type(registration.serializer):
                raise InvalidRegistration(
                    f"class {registration.name!r} is registered with the serializers {type(other.serializer).__name__} "
                    f"and {type(registration.serializer).__name__}; keep one"
                )
            self._by_class[registration.cls] = registration
        self._packers: list[Any] = []
        self.plain = not self._by_name
        """Whether no class is registered, so that packing and unpacking runs none of the user's code."""

    def __getstate__(self) -> dict[str, Any]:
        """Let a copy have packers of its own: they cannot be copied."""
        return {**self.__dict__, "_packers": []}

    def pack(self, value: Any) -> bytes:
        """Return `value` as bytes.

        Raises:
            UnregisteredClass: it holds an object of a class that was not registered.
            SerializationError: it is nested too deeply.
        """
        try:
            packed = self._packed(value)
            # Without the first byte of a bin there is none: no need to look.
            if (b"\xc4" in packed or b"\xc5" in packed or b"\xc6" in packed) and _holds_buffers(value, None):
                return self._packed(_with_buffers(value))
            return packed
        except UnregisteredClass:
            raise
        except (ValueError, OverflowError, RecursionError) as error:
            raise SerializationError(f"a {type(value).__name__} cannot be written: {error}") from error

    def _packed(self, value: Any) -> bytes:
        # Made anew for each value a packer took as long as packing. One that packs is not in the list: not for another
        # thread, nor where a serializer packs in turn.
        try:
            packer = self._packers.pop()
        except IndexError:
            packer = _packer(self._encode_outermost)
        packed: bytes = packer.pack(value)
        if len(packed) <= _KEPT_BYTES_MAX:
            self._packers.append(packer)
        return packed

    def _pack_inner(self, value: Any, depth: int) -> bytes:
        # msgpack bounds its own recursion, but not that of one call in another: the C stack would overflow.
        if depth > DEPTH_MAX:
            raise _too_deep()
        if _holds_buffers(value, DEPTH_MAX):
            value = _with_buffers(value)
        return _packb(value, lambda inner: self._encode(inner, depth + 1))

    def unpack(self, data: bytes) -> Any:
        """Return the value that `pack` gave `data` for.

        Raises:
            CorruptData: `data` is nothing that `pack` writes, or names a class that is not registered here.
        """
        try:
            return self._unpack(data, 0)
        except CorruptData:
            raise
        except Exception as error:
            raise CorruptData(
                f"{len(data)} bytes that Stormline did not write (or that were cut): {type(error).__name__}: {error}"
            ) from error

    def _unpack(self, data: bytes, depth: int) -> Any:
        if depth > DEPTH_MAX:
            raise CorruptData(f"nested deeper than {DEPTH_MAX} levels")
        return msgpack.unpackb(
            data,
            ext_hook=lambda code, payload: self._decode(code, payload, depth + 1),
            strict_map_key=False,
            raw=False,
            unicode_errors="surrogatepass",
        )

    def _encode_outermost(self, value: Any) -> Any:
        return self._encode(value, 1)

    def _encode(self, value: Any, depth: int) -> Any:
        kind = type(value)
        built_in = BUILT_IN.get(kind)
        if built_in is not None:
            code, encode, _ = built_in
            data = encode(value)
            if kind in _SETS:  # their order differs from process to process, and the bytes are compared
                data.sort(key=lambda item: self._pack_inner(item, depth))
            return msgpack.ExtType(code, data if kind is int else self._pack_inner(data, depth))
        registration = self._by_class.get(kind)
        if registration is None:
            raise UnregisteredClass(
                f"class {kind.__module__}.{kind.__qualname__} is not registered (value {shown(value)}); {_remedy(kind)}"
            )
        data = [registration.name, registration.serializer.to_data(value)]
        return msgpack.ExtType(_REGISTERED, self._pack_inner(data, depth))

    def _decode(self, code: int, payload: bytes, depth: int) -> Any:
        if code == 4:
            return BUILT_IN_DECODERS[4](payload)
        if code == 10:  # `_with_buffers` writes it at the last level too
            return BUILT_IN_DECODERS[10](msgpack.unpackb(payload))
        data = self._unpack(payload, depth)
        if code == _REGISTERED:
            return self._registered(*only(list, data))
        decode = BUILT_IN_DECODERS.get(code)
        if decode is None:
            raise CorruptData(f"unknown msgpack extension type {code}")
        return decode(data)

    def _registered(self, name: str, data: Any) -> Any:
        registration = self._by_name.get(name)
        if registration is None:
            raise CorruptData(f"an object of class {name!r}, which is not registered in this topology")
        try:
            return registration.serializer.from_data(data)
        except CorruptData:
            raise
        except Exception as error:
            raise CorruptData(
                f"the serializer of {name!r} cannot read {reprlib.repr(data)}: {type(error).__name__}: {error}"
            ) from error


PLAIN = Registry()
