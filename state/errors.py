"""What goes wrong with a store; each message names store, table and key, and the remedy."""

from __future__ import annotations

from stormline.topology.errors import DeclarationError, FailedException, StormlineError


class InvalidStore(DeclarationError):
    """A store, a map or a table that cannot be declared like this."""


class StoreUnavailable(FailedException):
    """The database does not answer, is locked or full: nothing is lost, the batch is replayed."""

    @property
    def why(self) -> str:
        """What has happened, in one line: for those who replay nothing."""
        return " ".join(str(self).partition("; the batch is replayed")[0].split())


class StoreMismatch(StormlineError):
    """The database and the topology's state are not of one history; nothing was changed."""


class StoreFailed(StormlineError):
    """The database refuses what a replay would ask for again."""


class RowRefused(StoreFailed):
    """The database refuses one of many rows, and does not say which."""


class TableMismatch(StormlineError):
    """A table is not what the map that stores in it declares."""


class NoSuchTable(StormlineError, LookupError):
    """A store holds no map's table of this name."""


class NoSuchKey(StormlineError, LookupError):
    """A table holds no row of this key."""


class CorruptRow(StormlineError, ValueError):
    """A row that the map cannot have written."""


class RefusedValue(StormlineError, TypeError):
    """A key or a value that its column does not take."""


class InvalidAggregate(DeclarationError):
    """An aggregate that cannot be declared, or stored, like this."""
