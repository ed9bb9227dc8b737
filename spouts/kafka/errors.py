"""What can be wrong with a Kafka spout, its topics and its records."""

from __future__ import annotations

from stormline.topology.errors import DeclarationError, StormlineError


class InvalidKafkaSpout(DeclarationError):
    """A Kafka spout was declared with arguments that do not go together."""


class KafkaRefused(StormlineError, PermissionError):
    """The brokers do not let this client in, or not at a topic."""

    @classmethod
    def of(cls, what: str, reason: str) -> KafkaRefused:
        """Return the error for a request that is not allowed.

        Args:
            what (str): what was asked for.
            reason (str): what the brokers, or the client's own library, say.
        """
        return cls(
            f"{what} was refused: {reason}; check the settings given as client={{…}} (security.protocol, sasl.…, "
            "ssl.…), and that this user may Read and Describe the topics"
        )


class KafkaFailed(StormlineError):
    """The brokers, or the client's library, gave an error that trying again does not mend."""


class BrokersAway(StormlineError, ConnectionError):
    """The brokers do not answer one who only asks them, and does not wait until they do."""

    @classmethod
    def of(cls, servers: str, reason: str) -> BrokersAway:
        """Return the error for brokers that do not answer.

        Args:
            servers (str): where they should be.
            reason (str): what was asked for, and what the client's library says.
        """
        return cls(
            f"the brokers at {servers} do not answer: {reason}; start them, correct the servers given to the spout, or "
            "give it a longer timeout_secs"
        )


class TopicMissing(StormlineError, LookupError):
    """A topic that the spout was told to read does not exist."""

    @classmethod
    def named(cls, topic: str, servers: str) -> TopicMissing:
        """Return the error for a topic that is not there.

        Args:
            topic (str): its name.
            servers (str): where it was looked for.
        """
        return cls(
            f"topic {topic!r} does not exist at {servers}, or this user may not Describe it; create it, correct the "
            "name, or give a pattern (re.compile), which may match nothing yet"
        )


class CompactedTopic(StormlineError, ValueError):
    """A topic that does not keep its records cannot give the same batch again."""

    @classmethod
    def named(cls, topic: str, policy: str) -> CompactedTopic:
        """Return the error for a topic that is compacted.

        Args:
            topic (str): its name.
            policy (str): its cleanup.policy.
        """
        return cls(
            f"topic {topic!r} has cleanup.policy={policy}: compaction takes records out of batches that may have to be "
            "replayed, which KafkaTransactionalSpout cannot allow; use OpaqueKafkaTransactionalSpout, which needs a "
            "batch again only while it commits, or set cleanup.policy=delete"
        )


class RecordsLost(StormlineError, LookupError):
    """Records that were to be read are not there any more. The message says which, and how to go on."""

    NEW_BATCH = (
        "pass on_lost='continue' to the spout to go on with what there is (each gap is logged and counted), or begin "
        "anew under another topology id with start=…"
    )
    REPLAY = (
        "the batch was begun, and must be replayed with exactly these records, so this state cannot go on; begin anew "
        "under another topology id with start=…, and let retention be longer than the topology may stand still"
    )

    @classmethod
    def retention(cls, place: str, start: int, earliest: int, replay: bool) -> RecordsLost:
        """Return the error for records older than the oldest that is kept.

        Args:
            place (str): topic and partition.
            start (int): position from which to read, an offset.
            earliest (int): the first position that is there, an offset.
            replay (bool): whether a batch needs them again.
        """
        return cls(
            f"{place}: the offsets {start} to {earliest - 1} are gone, deleted by retention or by hand before they "
            f"were read; the first that is there is {earliest}; {cls.REPLAY if replay else cls.NEW_BATCH}"
        )

    @classmethod
    def truncated(cls, place: str, start: int, end: int, replay: bool) -> RecordsLost:
        """Return the error for a log that ends before what was read of it.

        Args:
            place (str): topic and partition.
            start (int): position that was reached, an offset.
            end (int): position where the log ends now, an offset.
            replay (bool): whether a batch needs them again.
        """
        return cls(
            f"{place}: the log was truncated: it ends at offset {end}, and was read up to {start} before; what stood "
            f"at {end} to {start - 1} was counted, and other records may come in its place (a disk was lost, or a "
            f"replica that lagged behind became leader); {cls.REPLAY if replay else cls.NEW_BATCH}"
        )

    @classmethod
    def made_anew(cls, topic: str, stored: str, found: str | None, replay: bool) -> RecordsLost:
        """Return the error for a topic that is another one than before.

        Args:
            topic (str): its name.
            stored (str): the id under which it was read.
            found (str | None): its id now; None: there is none.
            replay (bool): whether a batch needs records of the old one again.
        """
        now = "was deleted" if found is None else f"was deleted and made anew (its id is {found})"
        return cls(
            f"topic {topic!r} {now}; the stored positions are of the one with the id {stored}, and what had not been "
            f"read of it is lost; {cls.REPLAY if replay else cls.NEW_BATCH}"
        )

    @classmethod
    def fewer(cls, place: str, start: int, end: int, stored: int, found: int) -> RecordsLost:
        """Return the error for a range that gives another number of records than before.

        Args:
            place (str): topic and partition.
            start (int): its first position, an offset.
            end (int): the position after its last.
            stored (int): number of records that it had.
            found (int): number of records that it has now.
        """
        return cls(
            f"{place}: the offsets {start} to {end - 1} gave {stored} records, and now give {found}: the topic was "
            f"compacted or rewritten; {cls.REPLAY}"
        )


class UnreadableRecord(StormlineError, ValueError):
    """A record that cannot be read; the message says which, and why."""

    @classmethod
    def at(cls, place: str, offset: int, problem: str) -> UnreadableRecord:
        """Return the error for a record.

        Args:
            place (str): topic and partition.
            offset (int): its position in the partition.
            problem (str): what is wrong with it.
        """
        return cls(
            f"{place}, offset {offset}: {problem}; pass on_unreadable='skip' to the spout to count, log and leave out "
            "such records, or 'emit' to have them on its stream 'unreadable'"
        )


class SchemaUnusable(StormlineError, ValueError):
    """A schema, or a schema registry, with which nothing can be read."""
