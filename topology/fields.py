"""Fields, the names of a stream's values; Values, the values of a tuple."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, overload

from stormline.topology.errors import InvalidStream, UnknownField
from stormline.topology.storm_names import storm_names


@storm_names()
class Fields(Sequence[str]):
    """An ordered list of distinct field names: `Fields("id", "count")`, or of one list of them.

    Args:
        *names (str | Sequence[str]): names, or lists of names.

    Raises:
        InvalidStream: a name is empty, is no text, or is given twice.
    """

    __slots__ = ("_index", "_names")

    def __init__(self, *names: str | Sequence[str]) -> None:
        flat: list[Any] = []
        for name in names:
            if isinstance(name, str) or not isinstance(name, Sequence):
                flat.append(name)
            else:
                flat.extend(name)
        for name in flat:
            if not isinstance(name, str) or not name:
                raise InvalidStream(f"Fields{tuple(flat)}: got {name!r}, expected non-empty text for each field name")
        self._names: tuple[str, ...] = tuple(flat)
        self._index = {name: i for i, name in enumerate(self._names)}
        if len(self._index) != len(self._names):
            twice = next(name for name in self._names if self._names.count(name) > 1)
            raise InvalidStream(f"Fields{self._names}: field {twice!r} is given twice; give each field its own name")

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[str]: ...
    def __getitem__(self, index: int | slice) -> str | Sequence[str]:
        return self._names[index]

    def __len__(self) -> int:
        return len(self._names)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __contains__(self, name: object) -> bool:
        return name in self._index

    def __eq__(self, other: object) -> bool:
        return self._names == other._names if isinstance(other, Fields) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._names)

    def __reduce__(self) -> tuple[type[Fields], tuple[str, ...]]:
        return Fields, self._names

    def __repr__(self) -> str:
        return f"Fields({', '.join(map(repr, self._names))})"

    def field_index(self, name: str) -> int:
        """Return the position of a field, from 0.

        Args:
            name (str): name of the field.

        Raises:
            UnknownField: there is no such field; the message names those that exist.
        """
        try:
            return self._index[name]
        except (KeyError, TypeError):
            raise UnknownField.among(name, self._names, "this tuple") from None

    def get(self, i: int) -> str:
        """Return the name at a position.

        Args:
            i (int): the position, from 0.

        Raises:
            IndexError: there is no name there.
        """
        return self._names[i]

    def size(self) -> int:
        """Return the number of names."""
        return len(self._names)

    def contains(self, name: str) -> bool:
        """Return whether there is a field of a name.

        Args:
            name (str): the name.
        """
        return name in self._index

    def to_list(self) -> list[str]:
        """Return the names as a list."""
        return list(self._names)


class Values(list[Any]):
    """The values of one tuple, in the order of the declared fields: `Values(attempt, word, 1)`. A list is as good.

    Args:
        *items (Any): the values, the attempt first.
    """

    def __init__(self, *items: Any) -> None:
        super().__init__(items)
