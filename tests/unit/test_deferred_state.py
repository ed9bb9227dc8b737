"""What of a bolt's state may travel to its commit as a copy, and what may not."""

from __future__ import annotations

import logging
import re
import signal
from collections import Counter, defaultdict, deque
from typing import Any, ClassVar

import pytest

from stormline.runtime.deferred_state import CannotTravel, pack_state, unpack_state
from tests import kit

log = logging.getLogger(__name__)
DATABASE: defaultdict[str, int] = defaultdict(int)
UNSET = object()


class Buffer:
    """Its rows are left out when it is pickled."""

    def __init__(self) -> None:
        self.rows: list[int] = []

    def __getstate__(self) -> dict[str, Any]:
        return {}


class Holder:
    shared: ClassVar[list[int]] = []

    def __init__(self, what: Any) -> None:
        self.what = what

    def method(self) -> Any:
        return DATABASE


class Singleton:
    instance: ClassVar[Any] = None


Singleton.instance = Singleton()


@pytest.mark.parametrize(
    ("what", "message"),
    [
        (DATABASE, "its 'what' is a defaultdict of its module or class"),
        (UNSET, "its 'what' is a object of its module or class"),
        (Holder.shared, "its 'what' is a list of its module or class"),
        (kit.LEDGERS, r"its 'what' is a \w+ of its module or class"),
        ([Singleton.instance], "it holds a Singleton of its module or class"),
        ([Buffer()], "it holds a Buffer with a __getstate__ of its own"),
    ],
)
def test_state_of_which_a_copy_will_not_do_cannot_travel(what: Any, message: str) -> None:
    with pytest.raises(CannotTravel, match=message):
        pack_state(Holder(what))


@pytest.mark.parametrize(
    "what", [re.compile("a"), kit.Fault("after"), (1, 2), log, signal.SIGINT, deque([1]), Counter("aab"), Holder]
)
def test_state_of_which_a_copy_does_travels(what: Any) -> None:
    other = Holder(None)
    unpack_state(other, pack_state(Holder(what)), {})
    assert other.what == what
