"""What Spark's processes print: held back while Spark starts, then shown by whole lines to whoever asks."""

from __future__ import annotations

import os
import select
from collections.abc import Callable

import pytest

from stormline.runtime.spark.context import _readers, quiet
from tests.kits.components import eventually


def printed(verbose: bool, on_output: Callable[[str], None] | None) -> None:
    """Print as the JVM does: it was started within, so standard error is what it was then."""
    with quiet(verbose, on_output):
        child = os.dup(2)
        for text in (b"starting\n", b"almost\n"):  # the second one is read when the first one has been dealt with
            os.write(child, text)
            eventually(lambda: not select.select(_readers[-1:], [], [], 0)[0])
    os.write(child, b"warned\nhalf")
    os.write(child, b" a line \xff\n")
    os.close(child)


@pytest.mark.parametrize("verbose", [False, True])
def test_lines_go_to_who_asks_for_them_and_those_of_the_start_only_where_all_is_wanted(verbose: bool) -> None:
    lines: list[str] = []
    printed(verbose, lines.append)
    eventually(lambda: "half a line \N{REPLACEMENT CHARACTER}" in lines)
    assert ("starting" in lines) == verbose
    assert "warned" in lines


def test_a_line_that_nobody_takes_goes_to_standard_error(capfd: pytest.CaptureFixture[str]) -> None:
    def closed(line: str) -> None:
        raise ValueError("I/O operation on closed file.")

    assert shown(capfd, True, closed) == "starting\nalmost\nwarned\nhalf a line \N{REPLACEMENT CHARACTER}\n"


def test_without_anybody_who_asks_all_goes_to_standard_error_as_it_is(capfd: pytest.CaptureFixture[str]) -> None:
    assert "warned\nhalf a line" in shown(capfd, False, None)


def shown(capfd: pytest.CaptureFixture[str], verbose: bool, on_output: Callable[[str], None] | None) -> str:
    """Return what came to standard error, asked once all is there: what is written while capfd reads is lost."""
    before = set(_readers)
    printed(verbose, on_output)
    eventually(lambda: before >= set(_readers))
    return capfd.readouterr().err
