"""What every unit test finds as new: the ledgers and events that the bolts of `tests.kit` share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.kit import EVENTS, LEDGERS


@pytest.fixture(autouse=True)
def fresh_kit() -> Iterator[None]:
    for shared in (LEDGERS, EVENTS):
        shared.clear()
    yield
    for shared in (LEDGERS, EVENTS):
        shared.clear()
