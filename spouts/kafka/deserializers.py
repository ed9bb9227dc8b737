"""Deserialisers: what makes values of the bytes of keys and values. A callable of the user's does, too."""

from __future__ import annotations

import codecs
import importlib.util
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from stormline.spouts.kafka.errors import InvalidKafkaSpout, SchemaUnusable
from stormline.spouts.kafka.schema_registry import SchemaRegistry
from stormline.spouts.kafka.settings import Source
from stormline.topology.errors import MissingExtra

Decode = Callable[[bytes], Any]

_TYPES = {str: "string", int: "int64", float: "double", bool: "bool"}
_PARTS = {"timestamp": "int64", "topic": "string", "partition": "int64", "offset": "int64"}


def column_type(source: Source, key: Any, value: Any) -> str | None:
    """Return the name of pyarrow's type of a field's column; None where it is not known beforehand."""
    if source.name not in ("key", "value") and not source.of_value:
        return _PARTS.get(source.name)
    whole = key if source.name == "key" and not source.of_value else value
    if source.of_value:
        return whole.column_types().get(source.name) if isinstance(whole, Json) else None
    if whole is None:
        return "binary"
    return "string" if isinstance(whole, Text) else None


def all_fields_of(sources: Sequence[Source], value: Any) -> Callable[[Any], tuple[Any, ...]] | None:
    """Return what gives all fields of a decoded value at once; None where they are not just those of a typed Json."""
    if not isinstance(value, Json) or not value.types or [*sources] != [Source(name, True) for name in value.types]:
        return None
    from msgspec.structs import astuple

    return astuple


def decoder_of(deserializer: Any) -> Decode | None:
    """Return what decodes in this process; None: bytes stay as they are."""
    if deserializer is None:
        return None
    make = getattr(deserializer, "decoder", None)
    decode: Decode = make() if callable(make) else deserializer
    return decode


@dataclass(frozen=True)
class Text:
    """Text.

    Args:
        encoding (str): How it is encoded.
    """

    encoding: str = "utf-8"

    def __post_init__(self) -> None:
        try:
            codecs.lookup(self.encoding)
        except LookupError:
            raise InvalidKafkaSpout(
                f"encoding {self.encoding!r} is not known to Python; expected one such as 'utf-8'"
            ) from None

    def decoder(self) -> Decode:
        """Return what decodes."""
        encoding = self.encoding
        return lambda data: data.decode(encoding)


@dataclass(frozen=True)
class Json:
    """JSON in UTF-8.

    Args:
        types (Mapping[str, Any] | None): The fields to take from each object, with str, int, float, bool or, where it
            may be null or missing, a type such as `str | None`: a record that has another type there cannot be read.
            That is faster, and makes columns where bolts take record batches. None: any JSON; objects become dicts.
    """

    types: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        for name, kind in (self.types or {}).items():
            if not isinstance(name, str) or not name.isidentifier() or _plain(kind)[0] not in _TYPES:
                raise InvalidKafkaSpout(
                    f"types of Json holds {name!r}: {kind!r}, expected the name of a field and one of str, int, float, "
                    "bool, or that with | None"
                )
        if self.types and importlib.util.find_spec("msgspec") is None:
            raise MissingExtra.of("kafka", "Json(types=…)", "msgspec")

    def decoder(self) -> Decode:
        """Return what decodes."""
        if not self.types:
            return json.loads
        import msgspec

        fields = [(name, kind, None) if _plain(kind)[1] else (name, kind) for name, kind in self.types.items()]
        struct = msgspec.defstruct("Record", fields, kw_only=True, gc=False)
        return msgspec.json.Decoder(struct).decode

    def column_types(self) -> Mapping[str, str]:
        """Return the types of the fields; none where they are not given."""
        return {name: _TYPES[_plain(kind)[0]] for name, kind in (self.types or {}).items()}


def _plain(kind: Any) -> tuple[Any, bool]:
    """Return a type without `| None`, and whether it had that."""
    parts = [part for part in getattr(kind, "__args__", ()) if part is not type(None)]
    if len(parts) == 1 and kind == parts[0] | None:
        return parts[0], True
    return kind, False


@dataclass(frozen=True)
class MessagePack:
    """MessagePack; maps become dicts, and what is no plain value of it makes a record that cannot be read."""

    def decoder(self) -> Decode:
        """Return what decodes."""
        import msgpack

        return lambda data: msgpack.unpackb(data, ext_hook=_no_extension)


def _no_extension(code: int, data: bytes) -> Any:
    raise ValueError(f"extension type {code} is not known")


@dataclass(frozen=True)
class Avro:
    """Avro: one datum without a header, or with the five bytes of a schema registry before it.

    Args:
        schema (str | None): The schema as JSON. With a registry it is the reader's: what the writers' records are
            converted to. Without one it is the writers'.
        registry (SchemaRegistry | None): Where the writers' schemas are; they are fetched once.
    """

    schema: str | None = None
    registry: SchemaRegistry | None = None

    def __post_init__(self) -> None:
        if self.schema is None and self.registry is None:
            raise InvalidKafkaSpout("Avro needs a schema, or a registry: Avro('{…}'), Avro(registry=SchemaRegistry(…))")
        if importlib.util.find_spec("fastavro") is None:
            raise MissingExtra.of("avro", "Avro", "fastavro")
        if self.schema is not None:
            parsed_schema(self.schema, "given to Avro")

    def decoder(self) -> Decode:
        """Return what decodes."""
        import io

        from fastavro import schemaless_reader

        own = None if self.schema is None else parsed_schema(self.schema, "given to Avro")
        registry = self.registry
        if registry is None:
            return lambda data: _whole(schemaless_reader, io.BytesIO(data), own, None)
        known: dict[int, Any] = {}

        def framed(data: bytes) -> Any:
            if len(data) < 5 or data[0] != 0:
                raise ValueError("it does not begin with the id of a schema: 0, and four bytes")
            schema_id = int.from_bytes(data[1:5], "big")
            if schema_id not in known:
                known[schema_id] = parsed_schema(registry.schema(schema_id), f"{schema_id} of {registry.url}")
            return _whole(schemaless_reader, io.BytesIO(data[5:]), known[schema_id], own)

        return framed


def parsed_schema(schema: str, what: str) -> Any:
    """Return a schema of Avro's as fastavro wants it.

    Raises:
        SchemaUnusable: it is none.
    """
    from fastavro import parse_schema

    try:
        return parse_schema(json.loads(schema))
    except Exception as error:
        raise SchemaUnusable(f"the Avro schema {what} cannot be used: {type(error).__name__}: {error}") from error


def _whole(read: Callable[..., Any], data: Any, writer: Any, reader: Any) -> Any:
    found = read(data, writer, reader)
    if data.read(1):
        raise ValueError("more bytes than the schema says")
    return found


@dataclass(frozen=True)
class Protobuf:
    """Protocol Buffers: messages of one generated class. Take their fields by name; a message itself is no tuple's.

    Args:
        message (Any): The class, of a module that the executors can import.
    """

    message: Any = field()

    def __post_init__(self) -> None:
        if not callable(getattr(self.message, "FromString", None)):
            raise InvalidKafkaSpout(f"Protobuf is given {self.message!r}, expected a class generated by protoc")

    def decoder(self) -> Decode:
        """Return what decodes."""
        decode: Decode = self.message.FromString
        return decode
