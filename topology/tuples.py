"""Tuple: what a bolt receives."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

from stormline.topology.errors import UnknownPosition, WrongValueType
from stormline.topology.fields import Fields
from stormline.topology.grouping import GlobalStreamId
from stormline.topology.storm_names import storm_names

V = TypeVar("V")


class TupleSource:
    """Who emitted a tuple: shared by all tuples of one (component, stream, task)."""

    __slots__ = ("component", "fields", "stream", "task")

    def __init__(self, component: str, stream: str, task: int, fields: Fields) -> None:
        self.component = component
        self.stream = stream
        self.task = task
        self.fields = fields

    def __reduce__(self) -> tuple[type[TupleSource], tuple[str, str, int, Fields]]:
        return TupleSource, (self.component, self.stream, self.task, self.fields)


@storm_names(getSourceGlobalStreamid="get_source_global_stream_id")
class Tuple:
    """An ordered list of named values; the first one is the `TransactionAttempt` of its batch.

    `values` is that list. The typed getters (`get_string`, `get_integer`, …) check and do not convert; None stays None,
    as with the casts of Storm 1.2.4's TupleImpl. Bolts are given tuples; `Tuple.of` makes one for a test.

    Args:
        values (list[Any]): the values, in the order of the fields.
        source (TupleSource): who emitted it, and the names of the fields.
    """

    __slots__ = ("_source", "values")

    values: list[Any]

    def __init__(self, values: list[Any], source: TupleSource) -> None:
        self.values = values
        self._source = source

    @classmethod
    def of(
        cls,
        values: Sequence[Any],
        fields: Sequence[str],
        component: str = "test",
        stream: str = "default",
        task: int = 1,
    ) -> Tuple:
        """Return a tuple made by hand, as tests of bolts need it.

        Args:
            values (Sequence[Any]): the values, the attempt first.
            fields (Sequence[str]): a name for each value.
            component (str): id of the component that is to have emitted it.
            stream (str): id of the stream.
            task (int): number of the task.

        Raises:
            InvalidStream: a field name is empty, is no text, or is given twice.
        """
        return cls(list(values), TupleSource(component, stream, task, Fields(*fields)))

    @property
    def fields(self) -> Fields:
        """Names of the values."""
        return self._source.fields

    @property
    def source_component(self) -> str:
        """Id of the component that emitted this tuple."""
        return self._source.component

    @property
    def source_stream_id(self) -> str:
        """Stream that it was emitted to."""
        return self._source.stream

    @property
    def source_task(self) -> int:
        """Id of the task that emitted it."""
        return self._source.task

    @property
    def source_global_stream_id(self) -> GlobalStreamId:
        """Component and stream that it came from."""
        return GlobalStreamId(self._source.component, self._source.stream)

    def get_source_component(self) -> str:
        """Return `source_component`."""
        return self._source.component

    def get_source_stream_id(self) -> str:
        """Return `source_stream_id`."""
        return self._source.stream

    def get_source_task(self) -> int:
        """Return `source_task`."""
        return self._source.task

    def get_source_global_stream_id(self) -> GlobalStreamId:
        """Return `source_global_stream_id`."""
        return self.source_global_stream_id

    def get_fields(self) -> Fields:
        """Return `fields`."""
        return self._source.fields

    def get_values(self) -> list[Any]:
        """Return `values`."""
        return self.values

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.values)

    def __getitem__(self, key: int | str) -> Any:
        if isinstance(key, str):
            return self.values[self._source.fields.field_index(key)]
        try:
            return self.values[key]
        except IndexError:
            source = self._source
            raise UnknownPosition(
                f"a tuple of stream {source.stream!r} of {source.component!r} has no value at position {key}; it has "
                f"{len(self.values)}: {source.fields.to_list()}"
            ) from None

    def __repr__(self) -> str:
        source = self._source
        return f"Tuple(source={source.component}:{source.task}, stream={source.stream}, {self.values!r})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Tuple):
            return NotImplemented
        mine, its = self._source, other._source
        return (self.values, mine.component, mine.stream, mine.task) == (
            other.values,
            its.component,
            its.stream,
            its.task,
        )

    __hash__ = None  # type: ignore[assignment]

    def size(self) -> int:
        """Return the number of values."""
        return len(self.values)

    def contains(self, field: str) -> bool:
        """Return whether the tuple has a field.

        Args:
            field (str): its name.
        """
        return field in self._source.fields

    def field_index(self, name: str) -> int:
        """Return the position of a field, from 0.

        Args:
            name (str): name of the field.

        Raises:
            UnknownField: the tuple has no such field; the message names those that exist.
        """
        return self._source.fields.field_index(name)

    def select(self, fields: Sequence[str]) -> list[Any]:
        """Return the values of some fields, in the order in which they are named.

        Args:
            fields (Sequence[str]): names of fields.

        Raises:
            UnknownField: the tuple has none of one of these names.
        """
        index = self._source.fields.field_index
        return [self.values[index(name)] for name in fields]

    def get_value(self, i: int) -> Any:
        """Return the value at a position.

        Args:
            i (int): the position, from 0; the attempt is at 0.

        Raises:
            UnknownPosition: there is no value there.
        """
        return self[i]

    def get_value_by_field(self, name: str) -> Any:
        """Return the value of a field.

        Args:
            name (str): name of the field.

        Raises:
            UnknownField: the tuple has no such field.
        """
        return self.values[self._source.fields.field_index(name)]

    def _typed(self, key: int | str, kind: type[V]) -> V | Any:
        try:
            value = self.values[key] if type(key) is int else self[key]
        except IndexError:
            value = self[key]  # which says what is there
        if type(value) is kind:
            return value
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            if value is None:
                return None
            source, position = self._source, key if isinstance(key, int) else self.field_index(key)
            raise WrongValueType(
                f"field {source.fields[position]!r} of stream {source.stream!r} of {source.component!r}: got "
                f"{value!r} ({type(value).__name__}), expected {kind.__name__}; typed getters do not convert, "
                f"use get_value({position}) and convert yourself"
            )
        return value

    def get_string(self, i: int) -> str | Any:
        """Return the text at a position; None where the value is None.

        Args:
            i (int): the position, from 0.

        Raises:
            UnknownPosition: there is no value there.
            WrongValueType: the value is no text.
        """
        return self._typed(i, str)

    def get_integer(self, i: int) -> int | Any:
        """Return the whole number at a position, of any size; None where the value is None.

        Args:
            i (int): the position, from 0.

        Raises:
            UnknownPosition: there is no value there.
            WrongValueType: the value is no int, or a bool.
        """
        return self._typed(i, int)

    get_long = get_short = get_byte = get_integer

    def get_double(self, i: int) -> float | Any:
        """Return the float at a position; None where the value is None.

        Args:
            i (int): the position, from 0.

        Raises:
            UnknownPosition: there is no value there.
            WrongValueType: the value is no float.
        """
        return self._typed(i, float)

    get_float = get_double

    def get_boolean(self, i: int) -> bool | Any:
        """Return the bool at a position; None where the value is None.

        Args:
            i (int): the position, from 0.

        Raises:
            UnknownPosition: there is no value there.
            WrongValueType: the value is no bool.
        """
        return self._typed(i, bool)

    def get_binary(self, i: int) -> bytes | Any:
        """Return the bytes at a position; None where the value is None.

        Args:
            i (int): the position, from 0.

        Raises:
            UnknownPosition: there is no value there.
            WrongValueType: the value is no bytes.
        """
        return self._typed(i, bytes)

    def get_string_by_field(self, name: str) -> str | Any:
        """Return the text of a field; None where the value is None.

        Args:
            name (str): name of the field.

        Raises:
            UnknownField: the tuple has no such field.
            WrongValueType: the value is no text.
        """
        return self._typed(name, str)

    def get_integer_by_field(self, name: str) -> int | Any:
        """Return the whole number of a field, of any size; None where the value is None.

        Args:
            name (str): name of the field.

        Raises:
            UnknownField: the tuple has no such field.
            WrongValueType: the value is no int, or a bool.
        """
        return self._typed(name, int)

    get_long_by_field = get_short_by_field = get_byte_by_field = get_integer_by_field

    def get_double_by_field(self, name: str) -> float | Any:
        """Return the float of a field; None where the value is None.

        Args:
            name (str): name of the field.

        Raises:
            UnknownField: the tuple has no such field.
            WrongValueType: the value is no float.
        """
        return self._typed(name, float)

    get_float_by_field = get_double_by_field

    def get_boolean_by_field(self, name: str) -> bool | Any:
        """Return the bool of a field; None where the value is None.

        Args:
            name (str): name of the field.

        Raises:
            UnknownField: the tuple has no such field.
            WrongValueType: the value is no bool.
        """
        return self._typed(name, bool)

    def get_binary_by_field(self, name: str) -> bytes | Any:
        """Return the bytes of a field; None where the value is None.

        Args:
            name (str): name of the field.

        Raises:
            UnknownField: the tuple has no such field.
            WrongValueType: the value is no bytes.
        """
        return self._typed(name, bytes)
