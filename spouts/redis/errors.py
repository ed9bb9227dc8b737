"""What can be wrong with Redis Streams and their entries."""

from __future__ import annotations

from stormline.topology.errors import DeclarationError, StormlineError


class InvalidRedisSpout(DeclarationError):
    """A `RedisStreamTransactionalSpout` was declared with arguments that do not go together."""


class RedisRefused(StormlineError):
    """The server does not let this client in, is too old, or has something else under the name of a stream."""


class EntriesLost(StormlineError, LookupError):
    """Entries that were to be read are not there any more. The message says what is known of them, and how to go on."""

    NEW_BATCH = (
        "pass on_lost='continue' to the spout to go on with what there is (each gap is logged and counted), or begin "
        "anew under another topology id; trim by MINID, below what is committed"
    )
    REPLAY = (
        "the batch was begun, and must be replayed with exactly these entries, so this state cannot go on; begin anew "
        "under another topology id, and let nothing trim or delete what is not committed"
    )

    @classmethod
    def of(cls, what: str, replay: bool) -> EntriesLost:
        """Return the error for entries that are gone.

        Args:
            what (str): says which, and of which stream.
            replay (bool): whether a batch needs them again.
        """
        return cls(f"{what}; {cls.REPLAY if replay else cls.NEW_BATCH}")


class BadEntry(StormlineError, ValueError):
    """An entry that cannot be read; the message names stream and id."""

    @classmethod
    def at(cls, stream: str, entry_id: str, problem: str) -> BadEntry:
        """Return the error for an entry.

        Args:
            stream (str): name of the stream.
            entry_id (str): id of the entry.
            problem (str): what is wrong with it.
        """
        return cls(
            f"stream {stream!r}, entry {entry_id}: {problem}; pass on_bad_entry='skip' to the spout to count, log and "
            "leave out such entries, or defaults={…} for fields that some lack"
        )
