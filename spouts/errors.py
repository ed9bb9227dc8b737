"""What can be wrong with a source of rows."""

from __future__ import annotations

from stormline.topology.errors import DeclarationError, StormlineError


class CannotReplay(DeclarationError, TypeError):
    """A source that gives each row once is no source of a transactional spout."""

    WHY = (
        "a batch that fails, or whose driver dies, must be given again exactly, so it is not a fit for a transactional "
        "spout since it cannot replay"
    )
    WAY_OUT = (
        "pass a function source(start) that gives (position, row) after (position, row), beginning after position "
        "`start`, None at first; or a list of the rows; or write them first to where they can be read again, as to a "
        "file, Kafka or a Redis stream"
    )

    @classmethod
    def of(cls, what: str) -> CannotReplay:
        """Return the error for a source.

        Args:
            what (str): says what was given, and what it does with its rows.
        """
        return cls(f"{what}: {cls.WHY}; {cls.WAY_OUT}")


class SourceUnusable(StormlineError, ValueError):
    """A source gives something else than positions and rows."""


class SourceChanged(StormlineError, ValueError):
    """A source gives other rows than it gave for a stored batch, or fewer."""

    REMEDY = (
        "the same start must give the same rows for ever, new ones at the end only: let the source give what it gave, "
        "or begin anew under another topology id"
    )

    @classmethod
    def shrank(cls, who: str, start: object, stored: int, found: int) -> SourceChanged:
        """Return the error for a source that has lost rows.

        Args:
            who (str): the spout, for the message.
            start (object): position after which the batch begins, as shown.
            stored (int): number of rows that it had.
            found (int): number of rows that there are now.
        """
        return cls(f"{who} gave {stored} rows after position {start}, and now gives {found}; {cls.REMEDY}")

    @classmethod
    def other_rows(cls, who: str, start: object, stored: int) -> SourceChanged:
        """Return the error for a source that has as many rows, and other ones.

        Args:
            who (str): the spout, for the message.
            start (object): position after which the batch begins, as shown.
            stored (int): number of rows that the batch has.
        """
        return cls(
            f"{who} gives other rows after position {start} than the {stored} that it gave before, or gives them other "
            f"positions; {cls.REMEDY}. Does it begin after `start`, and is it the same in each process (no set, no "
            "clock, no random number)?"
        )
