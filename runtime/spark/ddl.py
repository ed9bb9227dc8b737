"""Schemas of data sources as the DDL that Spark writes, read without Spark: a topology is declared before it starts."""

from __future__ import annotations

import re

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
    VariantType,
)

_TOKEN = re.compile(r"\s*(`(?:[^`]|``)*`|'(?:[^'\\]|\\.)*'|\w+|[<>(),:])")
_ATOMS: dict[str, type[DataType]] = {
    **dict.fromkeys(("boolean",), BooleanType),
    **dict.fromkeys(("tinyint", "byte"), ByteType),
    **dict.fromkeys(("smallint", "short"), ShortType),
    **dict.fromkeys(("int", "integer"), IntegerType),
    **dict.fromkeys(("bigint", "long"), LongType),
    **dict.fromkeys(("float", "real"), FloatType),
    **dict.fromkeys(("double",), DoubleType),
    **dict.fromkeys(("string",), StringType),
    **dict.fromkeys(("binary",), BinaryType),
    **dict.fromkeys(("date",), DateType),
    **dict.fromkeys(("timestamp", "timestamp_ltz"), TimestampType),
    **dict.fromkeys(("timestamp_ntz",), TimestampNTZType),
    **dict.fromkeys(("variant",), VariantType),
}


class _Parser:
    def __init__(self, text: str) -> None:
        self._tokens: list[str] = []
        end = 0
        while found := _TOKEN.match(text, end):
            self._tokens.append(found[1])
            end = found.end()
        if text[end:].strip():
            raise ValueError(f"{text[end:].strip()[:20]!r} is not understood")
        self._tokens.reverse()

    def struct(self, closing: str) -> StructType:
        """Return the fields up to `closing`; "": up to the end."""
        struct = StructType()
        while self._peek() != closing:
            name = self._next()
            if self._peek() == ":":
                self._next()
            kind = self._type()
            nullable = not self._skip("not", "null")
            comment = self._next()[1:-1] if self._skip("comment") else None
            struct.add(name.strip("`").replace("``", "`"), kind, nullable, {"comment": comment} if comment else None)
            if self._peek() != ",":
                break
            self._next()
        self._expect(closing)
        return struct

    def _type(self) -> DataType:
        name = self._next().lower()
        if name in _ATOMS:
            return _ATOMS[name]()
        if name in ("varchar", "char"):
            self._arguments()
            return StringType()
        if name in ("decimal", "dec", "numeric"):
            return DecimalType(*self._arguments())
        if name not in ("array", "map", "struct"):
            raise ValueError(f"type {name!r} is not known")
        self._expect("<")
        if name == "struct":
            return self.struct(">")
        first = self._type()
        if name == "array":
            self._expect(">")
            return ArrayType(first)
        self._expect(",")
        second = self._type()
        self._expect(">")
        return MapType(first, second)

    def _arguments(self) -> list[int]:
        found: list[int] = []
        if self._peek() == "(":
            while self._next() in ("(", ","):
                found.append(int(self._next()))
        return found

    def _peek(self) -> str:
        return self._tokens[-1] if self._tokens else ""

    def _next(self) -> str:
        if not self._tokens:
            raise ValueError("it ends too early")
        return self._tokens.pop()

    def _skip(self, *words: str) -> bool:
        if [token.lower() for token in self._tokens[: -len(words) - 1 : -1]] != list(words):
            return False
        del self._tokens[-len(words) :]
        return True

    def _expect(self, token: str) -> None:
        if self._peek() != token:
            raise ValueError(f"{self._peek() or 'the end'!r} stands where {token or 'the end'!r} is expected")
        if token:
            self._next()


def schema_of(text: str) -> StructType:
    """Return the schema that a DDL text such as "a INT, b ARRAY<STRING>" says.

    Raises:
        ValueError: it is not understood.
    """
    return _Parser(text).struct("")
