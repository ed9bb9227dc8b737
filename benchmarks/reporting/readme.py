"""Puts the table into README.md, between two markers."""

from __future__ import annotations

BEGIN = "<!-- benchmarks: begin; written by python -m benchmarks.report -->"
END = "<!-- benchmarks: end -->"


class NoMarkers(ValueError):
    """The README has no place for the table."""


def with_table(readme: str, table: str) -> str:
    """Return the README with `table` in place of what stands between the markers.

    Raises:
        NoMarkers: there is not exactly one pair of markers.
    """
    if readme.count(BEGIN) != 1 or readme.count(END) != 1 or readme.index(BEGIN) > readme.index(END):
        raise NoMarkers(f"README.md needs one line {BEGIN!r} and, below it, one line {END!r}")
    before, rest = readme.split(BEGIN)
    _, after = rest.split(END)
    return f"{before}{BEGIN}\n{table.strip()}\n{END}{after}"
