"""What tests of the simulation share: its thousands of warnings are not for them."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest


@pytest.fixture
def quiet() -> Iterator[None]:
    """Log nothing."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)
