"""What goes wrong with StarRocks; that it is away, or busy, is `StoreUnavailable`, as for a store."""

from __future__ import annotations

from stormline.topology.errors import DeclarationError, StormlineError


class InvalidStarRocks(DeclarationError):
    """A server, a sink or a format of rows that cannot be declared like this."""


class StarRocksRefused(StormlineError):
    """StarRocks refuses what a replay would ask for again: a login, a table that is not there, rows that do not fit."""


class LabelTaken(StormlineError):
    """A transaction of this label runs, or is committed."""


class OutcomeUnknown(StormlineError):
    """Whether a transaction was committed cannot be found out any more."""


class RowUnwritable(StormlineError, ValueError):
    """A value that cannot be written in the format of the rows."""
