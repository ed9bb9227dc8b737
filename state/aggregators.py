"""Aggregators: how many values become one, by parts that are combined, and combined with what is stored."""

from __future__ import annotations

import contextlib
import copy
import heapq
from abc import ABC, abstractmethod
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from stormline.state.errors import InvalidAggregate, RefusedValue
from stormline.state.order_check import depends_on_order


class Aggregator(ABC):
    """Makes one value of many. Subclass it, or take `Reduce`, for what is not here.

    A partial result is whatever tuples can hold; None is that of no values at all. None among the values is passed
    over, as in SQL.

    Args:
        field (str | None): The field of the tuples that is aggregated; None: the tuples themselves.

    Raises:
        InvalidAggregate: `field` is no name.
    """

    def __init__(self, field: str | None) -> None:
        if field is not None and (not isinstance(field, str) or not field):
            raise InvalidAggregate(f"{type(self).__name__} aggregates field {field!r}, expected the name of a field")
        self.field = field

    @abstractmethod
    def columns(self, name: str) -> dict[str, type]:
        """Return the columns in which a result is stored: enough to go on from there.

        Args:
            name (str): What the user calls the result.
        """

    @abstractmethod
    def first(self, value: Any) -> Any:
        """Return the partial result of one value.

        Args:
            value (Any): The value, not None.
        """

    @abstractmethod
    def combine(self, one: Any, other: Any) -> Any:
        """Return the partial result of two together, never None; in whatever order they come, the same.

        Args:
            one (Any): A partial result, which may be changed.
            other (Any): Another one, which may not.
        """

    def named(self) -> str:
        """Return what messages call `combine`."""
        return f"{type(self).__name__}.combine"

    def stored(self, partial: Any) -> tuple[Any, ...]:
        """Return a partial result as values of the columns.

        Args:
            partial (Any): It; None where there were no values.
        """
        return (partial,)

    def loaded(self, values: tuple[Any, ...]) -> Any:
        """Return the partial result that was stored.

        Args:
            values (tuple[Any, ...]): Those of the columns.
        """
        return values[0]


def _ordered(aggregator: Aggregator, value: Any) -> Any:
    """Return a value that is equal to itself: NaN is not, and what is made of it depends on the order of tuples."""
    if value != value:
        raise RefusedValue(
            f"{type(aggregator).__name__} of field {aggregator.field!r} is given {value!r}, which compares with "
            "nothing, not even itself; leave it out, or emit None in its place"
        )
    return value


class Count(Aggregator):
    """How many tuples there are, or how many values of a field that are not None.

    Args:
        field (str | None): The field; None: all tuples count.
    """

    def __init__(self, field: str | None = None) -> None:
        super().__init__(field)

    def columns(self, name: str) -> dict[str, type]:
        """Return one column."""
        return {name: int}

    def first(self, value: Any) -> int:
        """Return 1."""
        return 1

    def combine(self, one: Any, other: Any) -> int:
        """Return both counts together."""
        return int(one + other)

    def stored(self, partial: Any) -> tuple[Any, ...]:
        """Return the count; of no values 0, as in SQL."""
        return (partial or 0,)


class _OfNumbers(Aggregator):
    """Makes one column of a field.

    Args:
        field (str): The field.
        type (type): Its values' type, and the column's: int, float, Decimal; of `Min` and `Max` any that a column has.
    """

    def __init__(self, field: str, type: type = int) -> None:
        super().__init__(field)
        self.type = type

    def columns(self, name: str) -> dict[str, type]:
        """Return one column."""
        return {name: self.type}

    def first(self, value: Any) -> Any:
        """Return the value."""
        return value

    def stored(self, partial: Any) -> tuple[Any, ...]:
        """Return it as its column has it: an int is stored as the float or Decimal that it is, a bool as the int."""
        if type(partial) in _EXACT.get(self.type, ()):
            with contextlib.suppress(OverflowError):  # the column says that it does not take it
                partial = self.type(partial)
        return (partial,)


_EXACT: dict[type, tuple[type, ...]] = {int: (bool,), float: (bool, int), Decimal: (bool, int)}
"""The other types whose values a column's type has too."""


class Sum(_OfNumbers):
    """The sum of a field's values."""

    def combine(self, one: Any, other: Any) -> Any:
        """Return the sum of both."""
        return one + other


class Min(_OfNumbers):
    """The least of a field's values."""

    def first(self, value: Any) -> Any:
        """Return the value, which is no NaN."""
        return _ordered(self, value)

    def combine(self, one: Any, other: Any) -> Any:
        """Return the lesser."""
        return min(one, other)


class Max(_OfNumbers):
    """The greatest of a field's values."""

    def first(self, value: Any) -> Any:
        """Return the value, which is no NaN."""
        return _ordered(self, value)

    def combine(self, one: Any, other: Any) -> Any:
        """Return the greater."""
        return max(one, other)


class Mean(Aggregator):
    """The mean of a field's numbers, with their sum and count beside it, from which it goes on.

    Args:
        field (str): The field, of int or float.
    """

    def __init__(self, field: str) -> None:
        super().__init__(field)

    def columns(self, name: str) -> dict[str, type]:
        """Return three columns."""
        return {name: float, f"{name}_sum": float, f"{name}_count": int}

    def first(self, value: Any) -> tuple[float, int]:
        """Return sum and count."""
        return (float(value), 1)

    def combine(self, one: Any, other: Any) -> tuple[float, int]:
        """Return sums and counts added up."""
        return (one[0] + other[0], one[1] + other[1])

    def stored(self, partial: Any) -> tuple[Any, ...]:
        """Return mean, sum and count."""
        return (None, None, None) if partial is None else (partial[0] / partial[1], *partial)

    def loaded(self, values: tuple[Any, ...]) -> tuple[float, int] | None:
        """Return sum and count."""
        return None if values[2] is None else (values[1], values[2])


class Distinct(Aggregator):
    """How many different values a field has, with the values themselves beside it: for what fits into one row.

    Args:
        field (str): The field, of values that can be in a set.
    """

    def __init__(self, field: str) -> None:
        super().__init__(field)

    def columns(self, name: str) -> dict[str, type]:
        """Return two columns."""
        return {name: int, f"{name}_values": object}

    def first(self, value: Any) -> set[Any]:
        """Return a set of it."""
        return {_ordered(self, value)}

    def combine(self, one: set[Any], other: set[Any]) -> set[Any]:
        """Return both together."""
        one |= other
        return one

    def stored(self, partial: set[Any] | None) -> tuple[Any, ...]:
        """Return how many there are, and the set."""
        return (None, None) if partial is None else (len(partial), partial)

    def loaded(self, values: tuple[Any, ...]) -> Any:
        """Return the set."""
        return values[1]


class Top(Aggregator):
    """The greatest values of a field, the greatest first, as a list.

    Args:
        count (int): The number of values at most.
        field (str): The field, of values that compare with one another.

    Raises:
        InvalidAggregate: `count` is no number from 1 on.
    """

    def __init__(self, count: int, field: str) -> None:
        super().__init__(field)
        if type(count) is not int or count < 1:
            raise InvalidAggregate(f"Top keeps {count!r} values of {field!r}, expected a number from 1 on")
        self.count = count

    def columns(self, name: str) -> dict[str, type]:
        """Return one column."""
        return {name: object}

    def first(self, value: Any) -> list[Any]:
        """Return a list of it."""
        return [_ordered(self, value)]

    def combine(self, one: list[Any], other: list[Any]) -> list[Any]:
        """Return the greatest of both."""
        return heapq.nlargest(self.count, [*one, *other])


READY = frozenset({Count, Sum, Min, Max, Mean, Distinct, Top})
"""Aggregators that never change: bolts of all attempts may share one."""

_UNCHANGING = frozenset({int, float, str, bytes, bool, Decimal, datetime, date})


class Reduce(Aggregator):
    """What a function of yours makes of a field's values.

    Args:
        field (str): The field.
        combine (Callable[[Any, Any], Any]): Returns one value of two, in whatever order they come, and however they are
            put together, the same: it is tried with the first values. It travels to the executors.
        type (type): The column's.
        identity (Any): What stands for no values at all; None: nothing is stored then.

    Raises:
        InvalidAggregate: `combine` is no function.
    """

    def __init__(self, field: str, combine: Callable[[Any, Any], Any], type: type = object, identity: Any = None):
        super().__init__(field)
        if not callable(combine):
            raise InvalidAggregate(f"Reduce of field {field!r} is given {combine!r}, expected a function of two values")
        self._combine = combine
        self._tried = False
        self.type = type
        self.identity = identity

    def columns(self, name: str) -> dict[str, type]:
        """Return one column."""
        return {name: self.type}

    def first(self, value: Any) -> Any:
        """Return the value; a copy where the function might change it, which is the tuple's."""
        return value if type(value) in _UNCHANGING else copy.deepcopy(value)

    def combine(self, one: Any, other: Any) -> Any:
        """Return what the function makes of both.

        Args:
            one (Any): A partial result, which may be changed.
            other (Any): Another one, which may not.

        Raises:
            InvalidAggregate: What it makes depends on their order; nothing of the transaction is stored.
        """
        if not self._tried and one != other:
            self._tried = True
            how = depends_on_order(self._combine, one, other)
            if how is not None:
                raise InvalidAggregate(
                    f"{self.named()} of field {self.field!r} {how}: what is stored would depend on which task is "
                    "faster; let it make the same in whatever order, or store by a committer of your own"
                )
        return self._combine(one, other)

    def named(self) -> str:
        """Return what messages call it."""
        return f"the function {getattr(self._combine, '__qualname__', self._combine)} of Reduce"

    def stored(self, partial: Any) -> tuple[Any, ...]:
        """Return the value, or what stands for none."""
        return (self.identity if partial is None else partial,)
