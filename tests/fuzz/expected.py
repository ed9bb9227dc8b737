"""What bad input may raise; and one input given to several readers."""

from __future__ import annotations

from collections.abc import Callable

import click

from stormline.topology.errors import FailedException, StormlineError

EXPECTED = (StormlineError, FailedException, click.ClickException)
"""What bad input may raise: our own errors, "ask again later" of a coordinator, and the command line's."""


def read_by_all(*readers: Callable[[], object]) -> None:
    """Give an input to several readers; raise what one of them had against it."""
    found: Exception | None = None
    for read in readers:
        try:
            read()
        except EXPECTED as error:
            found = error
    if found is not None:
        raise found
